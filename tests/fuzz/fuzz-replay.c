/* SPDX-License-Identifier: MIT */
/*
 * A conversation of any lines through the shim's memory of it, with losses anywhere. A line is the
 * client's unless it begins with who says it: 'd' the daemon, 'r' a client that is refused, 'l'
 * nobody, for the daemon is lost and another one takes over.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/replay.h"
#include "common/cleanup.h"
#include "common/jscan.h"
#include "common/wire.h"
#include "tests/fuzz/fuzz.h"

/* A daemon is believed: what it says broken may be repeated so. */
static bool is_believable;

/* What the shim says of its own must be messages, line by line. */
static void check_said(struct buf *said) {
	for (size_t at = 0; is_believable && at < said->len;) {
		char *line = said->data + at, *newline = memchr(line, '\n', said->len - at);
		size_t len;

		if (!newline)
			abort();
		len = (size_t)(newline - line);
		if (jscan_check(line, len, WIRE_MAX_DEPTH, NULL) != JSCAN_OK)
			abort();
		at += len + 1;
	}
	buf_clear(said);
}

static void say(struct replay *r, const char *line, size_t len) {
	auto_buf struct buf said = BUF_NULL;

	switch (len ? line[0] : '\0') {
	case 'd':
		is_believable &= jscan_look(line + 1, len - 1, WIRE_MAX_DEPTH) == JSCAN_OK;
		(void)replay_on_daemon_line(r, line + 1, len - 1);
		break;
	case 'r':
		replay_refuse(r, line + 1, len - 1, "a \"reason\"", &said);
		break;
	case 'l':
		replay_lose(r, &said);
		check_said(&said);
		replay_begin(r, &said);
		if (replay_is_settled(r))
			replay_end(r, &said);
		break;
	default:
		(void)replay_on_client_line(r, line, len);
	}
	check_said(&said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct replay *r = replay_new();

	if (!r)
		abort();
	is_believable = true;
	for (size_t at = 0; at < size;) {
		const uint8_t *newline = memchr(data + at, '\n', size - at);
		size_t len = newline ? (size_t)(newline - data) - at : size - at;
		/* Of the exact size, so that a sanitizer sees a byte too many. */
		auto_free char *line = malloc(len ? len : 1);

		if (!line)
			abort();
		if (len)
			memcpy(line, data + at, len);
		say(r, line, len);
		at += len + 1;
	}
	replay_free(r);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a session's lines. Whatever comes, what is sent are whole JSON messages, and a
 * request is answered at most once.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/jscan.h"
#include "common/wire.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/fake-daemon.h"

static void require(bool condition, const char *what, const char *line, size_t len) {
	if (condition)
		return;
	fprintf(stderr, "%s: %.*s\n", what, (int)len, line);
	abort();
}

/* Looks at what was sent because of one line. */
static void check_sent(void) {
	char *at = fake.sent.data, *end = at ? at + fake.sent.len : NULL;

	while (at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)(newline - at);
		struct jspan message;

		require(jscan_check(at, len, WIRE_MAX_DEPTH, NULL) == JSCAN_OK,
			"sent what is no JSON", at, len);
		message = jscan_value(at, len);
		require(jspan_is_array(message) ||
				jspan_equals(jscan_get(message, "jsonrpc"), "2.0"),
			"sent what is no message", at, len);
		at = newline + 1;
	}
	buf_clear(&fake.sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct frame frame;
	size_t len;
	char *line;

	fake_reset();
	frame_init(&frame, fake.daemon.settings.max_message_bytes);
	if (size && frame_push(&frame, data, size) < 0)
		abort();
	for (;;) {
		enum frame_result result = frame_next(&frame, &line, &len);

		if (result == FRAME_MORE)
			break;
		if (result == FRAME_LINE) {
			protocol_dispatch(&fake.session, line, len);
		} else {
			protocol_refuse_too_long(&fake.session, frame.data + frame.start,
				frame_pending(&frame));
			frame_skip(&frame);
		}
		check_sent();
	}
	frame_deinit(&frame);

	/* All but the call in the queue have been answered or dropped; then that one is, too. */
	require(fake.n_requests <= 1, "requests were forgotten", "", 0);
	if (fake.has_call) {
		protocol_drop(&fake.daemon, &fake.call);
		fake_forget_call();
	}
	require(!fake.n_requests, "a request was forgotten", "", 0);
	check_sent();
	fake_reset();
	return 0;
}

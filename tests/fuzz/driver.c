/* SPDX-License-Identifier: MIT */
/*
 * Fuzzing without a Fuzzer
 *
 * Reads the files it is given, takes from each what a conversation sends (lines that begin with ">
 * "), and hands that to the fuzzer: as it is, and then damaged in many ways that are the same in
 * each run. A fault ends the program, so the result is one line of TAP for each file.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "tests/fuzz/fuzz.h"

enum { N_DAMAGED = 100 };

static uint32_t state = 1;

/* xorshift: what matters is that it is the same everywhere. */
static uint32_t next_random(uint32_t below) {
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

static bool read_sent(const char *path, struct buf *ret) {
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (!f)
		return false;
	while ((len = getline(&line, &cap, f)) > 0) {
		/* "> …", or "B: > …" for another session than the first. */
		const char *sent = len > 3 && line[1] == ':' ? line + 3 : line;

		if (!strncmp(sent, "> ", 2))
			buf_add_str(ret, sent + 2);
	}
	free(line);
	fclose(f);
	return true;
}

/* One damage: bytes that JSON cares about, something cut out, or something twice. */
static void damage(struct buf *b) {
	static const char bytes[] = "{}[]\",:\\0-1eu\n \xff";
	uint32_t at = next_random((uint32_t)b->len), len = 1 + next_random(40);

	if (at + len > b->len)
		len = (uint32_t)b->len - at;
	switch (next_random(4)) {
	case 0:
	case 1:
		b->data[at] = bytes[next_random(sizeof(bytes))];
		break;
	case 2:
		memmove(b->data + at, b->data + at + len, b->len - at - len);
		b->len -= len;
		break;
	default:
		if (!buf_reserve(b, len))
			return;
		memmove(b->data + at + len, b->data + at, b->len - at);
		b->len += len;
		break;
	}
}

static void play(const struct buf *sent) {
	for (int i = 0; i <= N_DAMAGED; i++) {
		struct buf copy = BUF_NULL;

		buf_add(&copy, sent->data, sent->len);
		for (int k = 0; k < i && k < 8 && copy.len; k++)
			damage(&copy);
		LLVMFuzzerTestOneInput((const uint8_t *)copy.data, copy.len);
		buf_deinit(&copy);
	}
}

int main(int argc, char **argv) {
	int n_failed = 0;

	printf("1..%d\n", argc - 1);
	for (int i = 1; i < argc; i++) {
		struct buf sent = BUF_NULL;
		const char *name = strstr(argv[i], "tests/");
		bool is_read = read_sent(argv[i], &sent);

		if (is_read)
			play(&sent);
		printf("%sok %d - %s\n", is_read ? "" : "not ", i, name ? name : argv[i]);
		fflush(stdout);
		n_failed += !is_read;
		buf_deinit(&sent);
	}
	return n_failed != 0;
}

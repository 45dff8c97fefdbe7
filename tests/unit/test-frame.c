/* SPDX-License-Identifier: MIT */
#include <stdbool.h>

#include "common/frame.h"
#include "common/cleanup.h"
#include "tests/lib/check.h"

#define auto_frame __attribute__((cleanup(frame_deinit)))

/* Whether the next line is `expected`. */
static bool next_is(struct frame *f, const char *expected) {
	char *line;
	size_t len;

	return frame_next(f, &line, &len) == FRAME_LINE && len == strlen(expected) &&
		!memcmp(line, expected, len);
}

static bool has_more(struct frame *f) {
	char *line;
	size_t len;

	return frame_next(f, &line, &len) != FRAME_MORE;
}

static void test_frame_splits_lines(void) {
	auto_frame struct frame f;

	frame_init(&f, 100);
	CHECK(!has_more(&f));
	CHECK(frame_push(&f, "one\ntwo\r\n\n\r\nthr", 15) == 0);
	CHECK(next_is(&f, "one"));
	CHECK(next_is(&f, "two"));
	CHECK(next_is(&f, ""));
	CHECK(next_is(&f, ""));
	CHECK(!has_more(&f) && !has_more(&f));
	CHECK(frame_pending(&f) == 3);
	CHECK(frame_push(&f, "ee\r", 3) == 0);
	CHECK(!has_more(&f));
	CHECK(frame_push(&f, "\n", 1) == 0);
	CHECK(next_is(&f, "three"));
	CHECK(frame_pending(&f) == 0);
}

static void test_frame_takes_any_split(void) {
	static const char text[] = "{\"a\":1}\nsecond\r\n\nlast\n";

	for (size_t step = 1; step < sizeof(text); step++) {
		auto_frame struct frame f;
		static const char *const lines[] = { "{\"a\":1}", "second", "", "last" };
		size_t n = 0;

		frame_init(&f, 100);
		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			size_t len = sizeof(text) - 1 - at;
			char *line;

			CHECK(frame_push(&f, text + at, len < step ? len : step) == 0);
			while (frame_next(&f, &line, &len) == FRAME_LINE) {
				CHECK(n < ARRAY_LEN(lines));
				CHECK(len == strlen(lines[n]) && !memcmp(line, lines[n], len));
				n++;
			}
		}
		CHECK(n == ARRAY_LEN(lines));
	}
}

static void test_frame_bounds_lines(void) {
	auto_frame struct frame f;
	char *line;
	size_t len;

	frame_init(&f, 5);
	CHECK(frame_push(&f, "12345\n123456\nok\n", 16) == 0);
	CHECK(next_is(&f, "12345"));
	CHECK(frame_next(&f, &line, &len) == FRAME_TOO_LONG);
	CHECK(frame_next(&f, &line, &len) == FRAME_TOO_LONG);
	frame_skip(&f);
	CHECK(next_is(&f, "ok"));

	/* The end of the long line is still to come. */
	CHECK(frame_push(&f, "abcdefgh", 8) == 0);
	CHECK(frame_next(&f, &line, &len) == FRAME_TOO_LONG);
	frame_skip(&f);
	CHECK(!has_more(&f));
	CHECK(frame_pending(&f) == 0);
	for (int i = 0; i < 1000; i++) {
		CHECK(frame_push(&f, "xxxxxxxxxxxxxxxx", 16) == 0);
		CHECK(!has_more(&f));
	}
	CHECK(f.cap <= 8192);
	CHECK(frame_push(&f, "\nnext\n", 6) == 0);
	CHECK(next_is(&f, "next"));
}

static void test_frame_gives_memory_back(void) {
	auto_frame struct frame f;
	enum { GIANT = 4 * 1024 * 1024 };

	frame_init(&f, GIANT);
	for (size_t done = 0; done < GIANT; done += 65536) {
		char *at = frame_reserve(&f, 65536);

		CHECK(at);
		memset(at, 'x', 65536);
		frame_commit(&f, 65536);
		CHECK(!has_more(&f));
	}
	CHECK(frame_push(&f, "\nsmall\n", 7) == 0);
	CHECK(has_more(&f));
	CHECK(next_is(&f, "small"));
	CHECK(!has_more(&f));
	CHECK(f.cap == 0);
	CHECK(frame_push(&f, "again\n", 6) == 0);
	CHECK(next_is(&f, "again"));
}

static void test_frame_moves_what_is_left(void) {
	auto_frame struct frame f;

	/* Lines that always leave a piece behind must not make the buffer grow. */
	frame_init(&f, 1000);
	CHECK(frame_push(&f, "head", 4) == 0);
	for (int i = 0; i < 100000; i++) {
		CHECK(frame_push(&f, "tail\nhead", 9) == 0);
		CHECK(next_is(&f, "headtail"));
		CHECK(!has_more(&f));
	}
	CHECK(f.cap <= 4096);
}

int main(void) {
	RUN(test_frame_splits_lines);
	RUN(test_frame_takes_any_split);
	RUN(test_frame_bounds_lines);
	RUN(test_frame_gives_memory_back);
	RUN(test_frame_moves_what_is_left);
	return check_done();
}

/* SPDX-License-Identifier: MIT */
/* Cleaning and collecting: bytes of a stream to the text that an answer shows. */

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/utf8.h"
#include "daemon/clean.h"
#include "tests/lib/check.h"

/* What is left of a stream. */
struct outcome {
	char *head, *tail;
	uint64_t omitted;
};

static void outcome_deinit(struct outcome *o) {
	free(o->head);
	free(o->tail);
}

#define auto_outcome __attribute__((cleanup(outcome_deinit))) struct outcome

/* Feeds `len` bytes, `piece` at a time. */
static struct outcome feed(const char *bytes, size_t len, size_t piece, size_t max_head,
	bool is_raw) {
	struct clean s = { .is_raw = is_raw };
	struct collect c;
	struct outcome o;
	struct buf head, tail;

	collect_init(&c, max_head, max_head / 4);
	for (size_t at = 0; at < len; at += piece)
		clean_feed(&s, &c, bytes + at, len - at < piece ? len - at : piece);
	clean_end(&s, &c);
	if (!collect_take(&c, &head, &tail, &o.omitted))
		abort();
	o.head = buf_take(&head, NULL);
	o.tail = buf_take(&tail, NULL);
	collect_deinit(&c);
	return o;
}

static const struct {
	const char *bytes, *text;
} cases[] = {
	{ "plain\n", "plain\n" },
	{ "", "" },
	{ "\x1b[31mred\x1b[0m \x1b[A\x1b[2K\x1b[?25lend\n", "red end\n" },
	{ "a\x1b]0;title\x07" "b\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\c", "ablinkc" },
	{ "a\x1bP1;2|sixel\ndata\x1b\\b", "ab" },
	{ "a\x1b(Bb\x1b=c\x1b" "7d", "abcd" },
	{ "unterminated \x1b]0;title\nnext", "unterminated \nnext" },
	{ "a\xc2\x9b" "1mb\xc2\x85" "c", "ab\xc2\x85" "c" },
	{ "\r0/3\r1/3\r2/3\r3/3", "3/3" },
	{ "longer\rab\n", "ab\n" },
	{ "kept\r\nnext\r\r\n", "kept\nnext\n" },
	{ "kept\r", "kept" },
	{ "kept\r\x1b[K", "kept" },
	{ "ab\bc", "ac" },
	{ "\b\ba", "a" },
	{ "one\n\b\btwo", "one\ntwo" },
	{ "bell\a tab\t", "bell tab\t" },
	{ "caf\xe9!", "caf\xef\xbf\xbd!" },
	{ "\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd" },
	{ "cut \xe2\x82", "cut \xef\xbf\xbd" },
	{ "\xe2\x82" "a", "\xef\xbf\xbd" "a" },
	/* An encoded surrogate, an overlong form, more than U+10FFFF: each byte that cannot be. */
	{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xf0\x9f\x98\x80 \xe4\xb8\xad", "\xf0\x9f\x98\x80 \xe4\xb8\xad" },
	{ "\x1b[31", "" },
	{ "a\x1b", "a" },
	{ "\x1b[3\xe4\xb8\xad", "\xe4\xb8\xad" },
};

static void test_clean_leaves_what_a_terminal_shows(void) {
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_outcome o = feed(cases[i].bytes, strlen(cases[i].bytes), 1000, 1000, false);

		CHECK_STR(o.head, cases[i].text);
		CHECK(o.omitted == 0);
	}
}

static void test_clean_does_not_depend_on_the_reads(void) {
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t piece = 1; piece <= strlen(cases[i].bytes); piece++) {
			auto_outcome o =
				feed(cases[i].bytes, strlen(cases[i].bytes), piece, 1000, false);

			CHECK_STR(o.head, cases[i].text);
		}
}

static void test_clean_keeps_nul(void) {
	struct clean s = { 0 };
	struct collect c;
	auto_buf struct buf head, tail;
	uint64_t omitted;

	collect_init(&c, 100, 25);
	clean_feed(&s, &c, "a\0b\n", 4);
	CHECK(collect_take(&c, &head, &tail, &omitted));
	CHECK(head.len == 4 && !memcmp(head.data, "a\0b\n", 4));
}

static void test_clean_raw_keeps_all_but_bad_utf8(void) {
	const char *bytes = "\x1b[31mred\r\b\xff\n";
	auto_outcome o = feed(bytes, strlen(bytes), 3, 100, true);

	CHECK_STR(o.head, "\x1b[31mred\r\b\xef\xbf\xbd\n");
}

static void test_collect_counts_exactly(void) {
	auto_outcome o = feed("0123456789abcdef", 16, 16, 8, false);
	auto_outcome short_tail = feed("0123456789", 10, 3, 9, false);
	auto_outcome wide = feed("ääääöööö", 16, 16, 4, false);

	CHECK_STR(o.head, "01234567");
	CHECK_STR(o.tail, "ef");
	CHECK(o.omitted == 8);
	/* The tail never overlaps the head. */
	CHECK_STR(short_tail.head, "012345678");
	CHECK_STR(short_tail.tail, "9");
	CHECK(short_tail.omitted == 1);
	CHECK_STR(wide.head, "ääää");
	CHECK_STR(wide.tail, "ö");
	CHECK(wide.omitted == 4);
}

/* A line far longer than all bounds is overwritten: it must leave no trace. */
static void test_collect_forgets_an_overwritten_line(void) {
	auto_buf struct buf b = BUF_NULL;

	buf_add_str(&b, "first\n");
	for (int i = 0; i < 10000; i++)
		buf_add_str(&b, "long");
	buf_add_str(&b, "\rshort\nlast");
	for (size_t piece = 1; piece < 50000; piece = piece * 7 + 1) {
		auto_outcome o = feed(b.data, b.len, piece, 100, false);

		CHECK_STR(o.head, "first\nshort\nlast");
		CHECK(o.omitted == 0);
	}
}

/* Against the definition: the cleaned text whole, then cut. */
static void test_collect_agrees_with_its_definition(void) {
	static const char *const pieces[] = { "word ", "\n", "\r", "ü", "\x1b[1m", "\xff",
		"longer piece of text", "\r\n", "x" };

	srand(7);
	for (int round = 0; round < 300; round++) {
		auto_buf struct buf b = BUF_NULL;
		size_t max = 1 + (size_t)rand() % 60, n_text, head, tail;

		for (int i = rand() % 60; i >= 0; i--)
			buf_add_str(&b, pieces[(size_t)rand() % ARRAY_LEN(pieces)]);
		{
			auto_outcome whole = feed(b.data, b.len, b.len, 1000000, false);
			auto_outcome cut = feed(b.data, b.len, 1 + (size_t)rand() % 9, max, false);

			n_text = utf8_count(whole.head, strlen(whole.head));
			CHECK(cut.omitted == (n_text > max ? n_text - max : 0));
			head = utf8_prefix(whole.head, strlen(whole.head), max);
			CHECK(strlen(cut.head) == head && !memcmp(cut.head, whole.head, head));
			tail = utf8_count(cut.tail, strlen(cut.tail));
			CHECK(tail == (cut.omitted < max / 4 ? cut.omitted : max / 4));
			CHECK(!strcmp(cut.tail,
				whole.head + strlen(whole.head) - strlen(cut.tail)));
		}
	}
}

static void test_collect_shows_the_last_line(void) {
	struct clean s = { 0 };
	struct collect c;
	const char *line;
	size_t len;

	collect_init(&c, 10, 2);
	CHECK(!collect_last_line(&c, &line, &len));
	clean_feed(&s, &c, "one\ntwo\n\n", 9);
	CHECK(collect_last_line(&c, &line, &len) && len == 3 && !memcmp(line, "two", 3));
	CHECK(!collect_last_line(&c, &line, &len));
	clean_feed(&s, &c, "50%", 3);
	CHECK(collect_last_line(&c, &line, &len) && len == 3 && !memcmp(line, "50%", 3));
	/* A line that comes in pieces is one line. */
	clean_feed(&s, &c, "\nh", 2);
	clean_feed(&s, &c, "al", 2);
	clean_feed(&s, &c, "f\n", 2);
	CHECK(collect_last_line(&c, &line, &len) && len == 4 && !memcmp(line, "half", 4));
	clean_feed(&s, &c, "  ", 2);
	clean_feed(&s, &c, "whole\n", 6);
	CHECK(collect_last_line(&c, &line, &len));
	CHECK(len >= 5 && !memcmp(line + len - 5, "whole", 5));
	collect_deinit(&c);
}

int main(void) {
	RUN(test_clean_leaves_what_a_terminal_shows);
	RUN(test_clean_does_not_depend_on_the_reads);
	RUN(test_clean_keeps_nul);
	RUN(test_clean_raw_keeps_all_but_bad_utf8);
	RUN(test_collect_counts_exactly);
	RUN(test_collect_forgets_an_overwritten_line);
	RUN(test_collect_agrees_with_its_definition);
	RUN(test_collect_shows_the_last_line);
	return check_done();
}

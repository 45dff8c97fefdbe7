/* SPDX-License-Identifier: MIT */
#include "common/utf8.h"
#include "tests/lib/check.h"

/* Encodes by the book, so that decoding is not tested against itself. */
static size_t encode(unsigned code, char out[4]) {
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

static void test_utf8_decodes_every_code_point(void) {
	for (unsigned code = 0; code <= 0x10ffff; code++) {
		char bytes[4];
		size_t len = encode(code, bytes);
		unsigned got = 0;

		if (code >= 0xd800 && code < 0xe000) {
			CHECK(utf8_decode(bytes, len, &got) == 0);
			continue;
		}
		CHECK(utf8_decode(bytes, len, &got) == len && got == code);
		for (size_t cut = 0; cut < len; cut++)
			CHECK(utf8_decode(bytes, cut, &got) == 0);
	}
}

static void test_utf8_refuses_what_is_none(void) {
	static const char *const bad[] = { "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80",
		"\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80", "\xff", "\xc3(", "\xe2\x82(", "\xf0\x9f\x98(" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		unsigned code;

		CHECK(utf8_decode(bad[i], strlen(bad[i]), &code) == 0);
	}
}

static void test_utf8_counts_code_points(void) {
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";

	CHECK(utf8_count(text, sizeof(text) - 1) == 5);
	CHECK(utf8_prefix(text, sizeof(text) - 1, 0) == 0);
	CHECK(utf8_prefix(text, sizeof(text) - 1, 1) == 1);
	CHECK(utf8_prefix(text, sizeof(text) - 1, 2) == 3);
	CHECK(utf8_prefix(text, sizeof(text) - 1, 3) == 6);
	CHECK(utf8_prefix(text, sizeof(text) - 1, 4) == 10);
	CHECK(utf8_prefix(text, sizeof(text) - 1, 5) == 11);
	CHECK(utf8_prefix(text, sizeof(text) - 1, 99) == 11);
	CHECK(utf8_count("", 0) == 0);
}

int main(void) {
	RUN(test_utf8_decodes_every_code_point);
	RUN(test_utf8_refuses_what_is_none);
	RUN(test_utf8_counts_code_points);
	return check_done();
}

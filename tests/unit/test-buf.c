/* SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "tests/lib/check.h"

static void test_buf_grows(void) {
	auto_buf struct buf b = BUF_NULL;
	auto_free char *text = NULL;
	size_t len = 0;

	for (int i = 0; i < 1000; i++)
		buf_addf(&b, "%03d,", i);
	buf_add(&b, NULL, 0);
	CHECK(!b.has_failed && b.len == 4000);
	CHECK(!memcmp(b.data + 3996, "999,", 4));
	text = buf_take(&b, &len);
	CHECK(text && len == 4000 && strlen(text) == 4000);
	CHECK(!b.data && !b.len && !b.cap);
}

static void test_buf_takes_an_empty_text(void) {
	auto_buf struct buf b = BUF_NULL;
	auto_free char *text = buf_take(&b, NULL);

	CHECK_STR(text, "");
}

static void test_buf_remembers_failure(void) {
	auto_buf struct buf b = BUF_NULL;

	buf_add_str(&b, "kept");
	CHECK(!buf_reserve(&b, SIZE_MAX - 2));
	CHECK(b.has_failed);
	buf_add_str(&b, "lost");
	CHECK(b.len == 4);
	CHECK(!buf_take(&b, NULL));
	CHECK(!b.has_failed);
}

/* The JSON string of `len` bytes, owned by the caller. */
static char *json(const char *s, size_t len) {
	struct buf b = BUF_NULL;

	buf_add_json_string(&b, s, len);
	return buf_take(&b, NULL);
}

static void test_buf_escapes_json(void) {
	static const struct {
		const char *text;
		size_t len;
		const char *expected;
	} cases[] = {
		{ "", 0, "\"\"" },
		{ "plain \x7f", 7, "\"plain \\u007f\"" },
		{ "a\"b\\c", 5, "\"a\\\"b\\\\c\"" },
		{ "\n\r\t\b\f\0\x1f", 7, "\"\\n\\r\\t\\b\\f\\u0000\\u001f\"" },
		{ "\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
		{ "\xc2\x85\xe2\x80\xa8\xe2\x80\xa9", 8, "\"\\u0085\\u2028\\u2029\"" },
		{ "\xff\xed\xa0\x80\xc3", 5,
			"\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = json(cases[i].text, cases[i].len);

		CHECK_STR(text, cases[i].expected);
	}
}

int main(void) {
	RUN(test_buf_grows);
	RUN(test_buf_takes_an_empty_text);
	RUN(test_buf_remembers_failure);
	RUN(test_buf_escapes_json);
	return check_done();
}

/* SPDX-License-Identifier: MIT */
#include "common/jscan.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/wire.h"
#include "tests/lib/check.h"

/* Checks a copy of `text`; what became of it is in `checked`. */
static char checked[4096];

static enum jscan_result check_n_bytes(const char *text, size_t len, unsigned max_depth) {
	memcpy(checked, text, len);
	checked[len] = '\0';
	return jscan_check(checked, len, max_depth, NULL);
}

static enum jscan_result check_text(const char *text) {
	return check_n_bytes(text, strlen(text), WIRE_MAX_DEPTH);
}

static struct jspan span(const char *text) {
	return jscan_value(text, strlen(text));
}

static void test_jscan_accepts_json(void) {
	static const char *const good[] = { "0", "-0", "-1.5e+10", "1E5", "true", "false", "null",
		"\"\"", " {} ", "[]", "[ ]", "{ }", "[1,2 , 3]", "{\"a\":[{},[]],\"b\":null}",
		"\"caf\xc3\xa9\"", "\"\\u0000\"", "\"\\ud83d\\ude00\"", "\t\r\n1\n", "\"\x7f\"",
		"\"\xf0\x9f\x98\x80\"", "123456789012345678901234567890123",
		"[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (check_text(good[i]) != JSCAN_OK)
			printf("# %s\n", good[i]);
		CHECK(check_text(good[i]) == JSCAN_OK);
		CHECK_STR(checked, good[i]);
	}
}

static void test_jscan_refuses_what_is_no_json(void) {
	static const char *const bad[] = { "", " ", "01", "-", "1.", ".5", "1e", "+1", "nul",
		"nulll", "truefalse", "1 2", "[", "]", "[1,]", "[,1]", "[1 2]", "{", "}", "{,}",
		"{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:2}", "{\"a\":1 \"b\":2}", "[1}",
		"{\"a\":1]", "\"", "\"a", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
		"\"\\u\x12\x34\x35\x36\"", "\"\n\"", "\"\t\"", "\xef\xbb\xbf{}", "\"\xff\"",
		"\"\xed\xa0\x80\"", "\"\xc0\x80\"", "\"\xc3\"", "NaN", "Infinity", "'a'",
		"{\"a\":1}}", "[]]", "// x\n1", "\"\\", "\"\\u", "\"\\ud83d\\" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (check_text(bad[i]) != JSCAN_SYNTAX)
			printf("# %s\n", bad[i]);
		CHECK(check_text(bad[i]) == JSCAN_SYNTAX);
	}
	CHECK(check_n_bytes("\"a\0b\"", 5, 9) == JSCAN_SYNTAX);
	CHECK(check_n_bytes("1\0", 2, 9) == JSCAN_SYNTAX);
}

static void test_jscan_tells_where(void) {
	char text[] = "{\"a\": oops}";
	size_t offset = 0;

	CHECK(jscan_check(text, strlen(text), 5, &offset) == JSCAN_SYNTAX);
	CHECK(offset == 6);
}

static void test_jscan_bounds_depth(void) {
	CHECK(check_n_bytes("[[[]]]", 6, 3) == JSCAN_OK);
	CHECK(check_n_bytes("[[[]]]", 6, 2) == JSCAN_TOO_DEEP);
	CHECK(check_n_bytes("1", 1, 0) == JSCAN_OK);
	CHECK(check_n_bytes("[]", 2, 0) == JSCAN_TOO_DEEP);
	CHECK(check_n_bytes("[[],[],{\"a\":{}}]", 16, 3) == JSCAN_OK);

	memset(checked, '[', 2048);
	CHECK(jscan_check(checked, 2048, 100000, NULL) == JSCAN_TOO_DEEP);
	memset(checked, '[', 512);
	memset(checked + 512, ']', 512);
	CHECK(jscan_check(checked, 1024, WIRE_MAX_DEPTH, NULL) == JSCAN_OK);
}

static void test_jscan_refuses_duplicate_names(void) {
	CHECK(check_text("{\"a\":1,\"a\":2}") == JSCAN_DUPLICATE);
	CHECK(check_text("{\"id\":1,\"\\u0069d\":2}") == JSCAN_DUPLICATE);
	CHECK(check_text("{\"p\":{\"a\":1,\"a\":2}}") == JSCAN_DUPLICATE);
	CHECK(check_text("[{\"a\":1,\"a\":2}]") == JSCAN_DUPLICATE);
	CHECK(check_text("{\"a\":{\"a\":1},\"b\":{\"a\":1}}") == JSCAN_OK);
	CHECK(check_text("[{\"a\":1},{\"a\":1}]") == JSCAN_OK);
	/* Deeper down it is the parser's business. */
	CHECK(check_text("[[{\"a\":1,\"a\":2}]]") == JSCAN_OK);
	CHECK(check_text("{\"\":1,\"\":2}") == JSCAN_DUPLICATE);
}

static void test_jscan_knows_many_names(void) {
	auto_buf struct buf b = BUF_NULL;
	enum { N = 20000 };

	buf_add_char(&b, '{');
	for (int i = 0; i < N; i++)
		buf_addf(&b, "%s\"name%d\":%d", i ? "," : "", i, i);
	buf_add_str(&b, ",\"name7\":1}");
	CHECK(jscan_check(b.data, b.len, 9, NULL) == JSCAN_DUPLICATE);
	b.len -= strlen(",\"name7\":1}");
	buf_add_char(&b, '}');
	CHECK(jscan_check(b.data, b.len, 9, NULL) == JSCAN_OK);
}

static void test_jscan_mends_surrogates(void) {
	CHECK(check_text("\"\\ud800\"") == JSCAN_OK);
	CHECK_STR(checked, "\"\\ufffd\"");
	CHECK(check_text("\"\\udc00x\"") == JSCAN_OK);
	CHECK_STR(checked, "\"\\ufffdx\"");
	CHECK(check_text("\"\\ud83d\\ud83d\\ude00\"") == JSCAN_OK);
	CHECK_STR(checked, "\"\\ufffd\\ud83d\\ude00\"");
	CHECK(check_text("{\"\\uDBFF\":\"\\uD83D\\n\"}") == JSCAN_OK);
	CHECK_STR(checked, "{\"\\ufffd\":\"\\ufffd\\n\"}");
}

static void test_jscan_finds_special_bytes_anywhere(void) {
	/*
	 * Strings are read eight bytes at a time: each offset, each kind of byte that stops a run.
	 */
	static const char stops[] = { '\n', '\x1f', '\xff', '\x01' };

	for (size_t len = 1; len < 40; len++) {
		for (size_t at = 0; at < len; at++) {
			char text[64] = "\"";

			memset(text + 1, 'x', len);
			strcpy(text + 1 + len, "\"");
			CHECK(check_text(text) == JSCAN_OK);
			text[1 + at] = '"';
			CHECK(check_text(text) == JSCAN_SYNTAX);
			for (size_t i = 0; i < sizeof(stops); i++) {
				text[1 + at] = stops[i];
				CHECK(check_text(text) == JSCAN_SYNTAX);
			}
		}
	}
}

static void test_jscan_flattens_wide_numbers(void) {
	char text[] = "[9223372036854775807,9223372036854775808,-9223372036854775809,1e400,"
		      "\"9223372036854775808\",1.5,-9223372036854775808,1e308]";
	char flat[] = "[9223372036854775807,0                  ,0                   ,0    ,"
		      "\"9223372036854775808\",1.5,-9223372036854775808,1e308]";

	jscan_flatten_numbers(text, strlen(text));
	CHECK_STR(text, flat);
}

static void test_jscan_gets_members(void) {
	struct jspan object =
		span(" {\"a\" : 1 , \"b\":\"x\\\"},\",\"c\":{\"d\":[1,{\"e\":2}]},\"\\u0066\":5} ");
	struct jspan value;

	CHECK(jspan_is_object(object));
	value = jscan_get(object, "a");
	CHECK(value.len == 1 && value.at[0] == '1');
	value = jscan_get(object, "b");
	CHECK(jspan_is_string(value) && value.len == 7);
	value = jscan_get(jscan_get(object, "c"), "d");
	CHECK(jspan_is_array(value) && value.len == 11);
	value = jscan_get(object, "f");
	CHECK(value.at && value.at[0] == '5');
	CHECK(!jscan_get(object, "e").at);
	CHECK(!jscan_get(value, "a").at);
	CHECK(!jscan_get(JSPAN_NULL, "a").at);
	CHECK(!jscan_value("  ", 2).at);
}

static void test_jscan_steps_through_arrays(void) {
	struct jspan array = span("[1, \"a,]\" ,[2,[3]],{\"a\":1}, null]"), value;
	static const char *const expected[] = { "1", "\"a,]\"", "[2,[3]]", "{\"a\":1}", "null" };
	size_t pos = 0, n = 0;

	for (; jscan_next(array, &pos, &value); n++) {
		auto_free char *copy = jspan_copy(value);

		CHECK(n < ARRAY_LEN(expected));
		CHECK_STR(copy, expected[n]);
	}
	CHECK(n == ARRAY_LEN(expected));
	pos = 0;
	CHECK(!jscan_next(span("[]"), &pos, &value));
	CHECK(!jscan_next(span("{}"), &pos, &value));
}

static void test_jspan_compares_and_decodes(void) {
	auto_free char *text = NULL;
	size_t len = 0;

	CHECK(jspan_equals(span("\"tools/call\""), "tools/call"));
	CHECK(jspan_equals(span("\"tools\\/call\""), "tools/call"));
	CHECK(jspan_equals(span("\"t\\u006fols/call\""), "tools/call"));
	CHECK(!jspan_equals(span("\"tools/cal\""), "tools/call"));
	CHECK(!jspan_equals(span("\"tools/calls\""), "tools/call"));
	CHECK(!jspan_equals(span("\"a\\u0000\""), "a"));
	CHECK(!jspan_equals(span("5"), "5"));
	CHECK(jspan_hash(span("\"\\u0069d\"")) == jspan_hash(span("\"id\"")));
	CHECK(jspan_hash(span("\"id\"")) != jspan_hash(span("\"di\"")));

	text = jspan_decode(span("\"a\\n\\u00e9\\ud83d\\ude00\\u0000\\\"z\""), &len);
	CHECK(text && len == 11);
	CHECK(!memcmp(text, "a\n\xc3\xa9\xf0\x9f\x98\x80\0\"z", 11));
	CHECK(!jspan_decode(span("17"), NULL));
	CHECK(!jspan_copy(JSPAN_NULL));
}

static void test_jspan_knows_integers(void) {
	CHECK(jspan_is_integer(span("0")) && jspan_is_integer(span("-12")));
	CHECK(jspan_is_integer(span("123456789012345678901234567890")));
	CHECK(!jspan_is_integer(span("1.0")) && !jspan_is_integer(span("1e3")) &&
		!jspan_is_integer(span("-")));
	CHECK(!jspan_is_integer(span("\"1\"")) && !jspan_is_integer(JSPAN_NULL));
}

static bool recovers(const char *text, const char *id) {
	struct jspan span = jscan_recover_id(text, strlen(text));

	if (!id)
		return !span.at;
	return span.at && span.len == strlen(id) && !memcmp(span.at, id, span.len);
}

static void test_jscan_recovers_ids(void) {
	CHECK(recovers("{\"id\":5,\"method\":oops}", "5"));
	CHECK(recovers(
		"{\"method\":\"x\",\"params\":{\"id\":9,\"a\":[1,2}],\"id\":\"k\"", "\"k\""));
	CHECK(recovers("{\"params\":{\"id\":9},\"id\":\"k\", \"bad\":\x01}", "\"k\""));
	CHECK(recovers("{\"id\":12", NULL));
	CHECK(recovers("{\"id\":1.5,\"a\"", NULL));
	CHECK(recovers("{\"id\":null}", NULL));
	CHECK(recovers("{\"id\":\"\\ud800\"}", NULL));
	CHECK(recovers("{\"id\":\"\xff\"}", NULL));
	CHECK(recovers("{\"id\":\"open", NULL));
	CHECK(recovers("[1]", NULL));
	CHECK(recovers("", NULL));
}

static void test_jscan_survives_any_prefix_and_change(void) {
	static const char message[] =
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0041\",\"method\":\"tools/call\","
		"\"params\":{\"n\":[1,-2.5e3,true,null],\"s\":\"\\ud83d\\ude00\xc3\xa9\"}}";
	const size_t len = sizeof(message) - 1;
	struct jspan name, value;

	/*
	 * What matters is that nothing is read beyond the text: exact allocations, under a
	 * sanitizer.
	 */
	for (size_t n = 0; n <= len; n++) {
		auto_free char *text = malloc(n ? n : 1);
		size_t pos = 0;

		CHECK(text);
		memcpy(text, message, n);
		(void)jscan_recover_id(text, n);
		while (jscan_next_member(jscan_value(text, n), &pos, &name, &value)) {
			free(jspan_decode(value, NULL));
			(void)jspan_hash(name);
		}
		jscan_flatten_numbers(text, n);
		CHECK(jscan_check(text, n, 9, NULL) == (n == len ? JSCAN_OK : JSCAN_SYNTAX));
	}
	for (size_t n = 0; n < len; n++) {
		for (int c = 0; c < 256; c++) {
			char *text = malloc(len);
			size_t pos = 0;

			CHECK(text);
			memcpy(text, message, len);
			text[n] = (char)c;
			(void)jscan_recover_id(text, len);
			while (jscan_next_member(jscan_value(text, len), &pos, &name, &value))
				(void)jspan_equals(value, "tools/call");
			(void)jscan_check(text, len, 9, NULL);
			free(text);
		}
	}
}

int main(void) {
	RUN(test_jscan_accepts_json);
	RUN(test_jscan_refuses_what_is_no_json);
	RUN(test_jscan_tells_where);
	RUN(test_jscan_bounds_depth);
	RUN(test_jscan_refuses_duplicate_names);
	RUN(test_jscan_knows_many_names);
	RUN(test_jscan_mends_surrogates);
	RUN(test_jscan_finds_special_bytes_anywhere);
	RUN(test_jscan_flattens_wide_numbers);
	RUN(test_jscan_gets_members);
	RUN(test_jscan_steps_through_arrays);
	RUN(test_jspan_compares_and_decodes);
	RUN(test_jspan_knows_integers);
	RUN(test_jscan_recovers_ids);
	RUN(test_jscan_survives_any_prefix_and_change);
	return check_done();
}

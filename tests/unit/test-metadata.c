/* SPDX-License-Identifier: MIT */
/* An environment's metadata: what is written, what is taken for equal, what is refused. */

#include <jansson.h>

#include "common/cleanup.h"
#include "common/sha256.h"
#include "daemon/python/metadata.h"
#include "tests/lib/check.h"

static void test_sha256(void) {
	char hex[SHA256_HEX + 1], text[200];

	sha256_hex("", 0, hex);
	CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256_hex("abc", 3, hex);
	CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	/* One that leaves no room for the length in its last block, and one of several blocks. */
	sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
	CHECK_STR(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(text, 'a', sizeof(text));
	sha256_hex(text, sizeof(text), hex);
	CHECK_STR(hex, "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5");
}

static void test_metadata_content(void) {
	auto_free char *text =
		metadata_write(13, "[\"a>=1\",\"b @ https://u:p@h/\\u00e9\\ud83d\\ude00\"]");
	json_t *object = text ? json_loads(text, 0, NULL) : NULL;

	CHECK(object && json_object_size(object) == 5);
	CHECK(json_integer_value(json_object_get(object, "format")) == 1);
	CHECK_STR(json_string_value(json_object_get(object, "python")), "3.13");
	CHECK(json_is_false(json_object_get(object, "system_site_packages")));
	CHECK_STR(json_string_value(json_array_get(json_object_get(object, "requirements"), 1)),
		"b @ ***h/\xc3\xa9\xf0\x9f\x98\x80");
	/* Of ["a>=1","b @ ***h/\u00e9\ud83d\ude00"] */
	CHECK_STR(json_string_value(json_object_get(object, "requirements_fingerprint")),
		"2a709e883a5e102ac13d67cfeb7419047bebad2d6788a172751496e14df6b0aa");
	json_decref(object);
}

/* Whether `text` fits an environment of Python 3.12 with `requirements`. */
static bool matches(const char *text, const char *requirements, const char **ret_complaint) {
	return metadata_matches(text, strlen(text), 12, requirements, ret_complaint);
}

static void test_metadata_matches_itself(void) {
	static const char *const requirements[] = { "[]", "[\"a\",\"b>=1\"]",
		"[\"a @ https://u:p@h/a.whl\"]" };

	for (size_t i = 0; i < ARRAY_LEN(requirements); i++) {
		auto_free char *text = metadata_write(12, requirements[i]);
		const char *complaint;

		CHECK(matches(text, requirements[i], &complaint));
		CHECK(!complaint);
	}
}

static void test_metadata_takes_another_spelling(void) {
	char hex[SHA256_HEX + 1], text[512];
	static const char array[] = "[\"x@ https://h/x.whl\"]";
	const char *complaint;

	sha256_hex(array, strlen(array), hex);
	snprintf(text, sizeof(text),
		"{\"format\":1,\"python\":\"3.12\",\"requirements\":%s,"
		"\"requirements_fingerprint\":\"%s\",\"system_site_packages\":false}",
		array, hex);
	CHECK(matches(text, "[\"x @ https://h/x.whl\"]", &complaint));
	CHECK(!matches(text, "[\"x @ https://h/y.whl\"]", &complaint));
}

/* Replaces the first `from` in `text`; owned by the caller. */
static char *edit(const char *text, const char *from, const char *to) {
	const char *at = strstr(text, from);
	char *edited;

	if (!at || asprintf(&edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) < 0)
		abort();
	return edited;
}

static void test_metadata_refuses_what_differs(void) {
	static const struct {
		const char *from, *to, *complaint;
	} edits[] = {
		{ "\"format\": 1", "\"format\": 2", "format" },
		{ "\"format\": 1", "\"format\": true", "format" },
		{ "\"3.12\"", "\"3.11\"", "Python" },
		{ "\"a\"", "\"b\"", "fingerprint" },
		{ "\"a\"", "1", "fingerprint" },
		{ "false", "true", "differs" },
		{ "\"format\": 1", "\"format\": 1, \"more\": 1", "differs" },
		{ "{", "[", "JSON" },
	};
	auto_free char *text = metadata_write(12, "[\"a\"]");
	const char *complaint;

	CHECK(!matches(text, "[]", &complaint) && strstr(complaint, "requirements"));
	CHECK(!matches(text, "[\"a\",\"b\"]", &complaint) && strstr(complaint, "requirements"));
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		auto_free char *edited = edit(text, edits[i].from, edits[i].to);

		CHECK(!matches(edited, "[\"a\"]", &complaint));
		CHECK(strstr(complaint, edits[i].complaint));
	}
}

int main(void) {
	RUN(test_sha256);
	RUN(test_metadata_content);
	RUN(test_metadata_matches_itself);
	RUN(test_metadata_takes_another_spelling);
	RUN(test_metadata_refuses_what_differs);
	return check_done();
}

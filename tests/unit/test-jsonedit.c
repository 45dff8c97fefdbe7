/* SPDX-License-Identifier: MIT */

#include "client/jsonedit.h"
#include "tests/lib/check.h"

static const char *const path[] = { "servers", "py", NULL };

/* Texts live until the end: a case compares them, and each is small. */
static char *texts_made[64];
static size_t n_texts_made;

static char *made(struct buf *out) {
	char *text = out->len ? buf_take(out, NULL) : strdup("");

	texts_made[n_texts_made++] = text;
	return text;
}

static void free_texts(void) {
	while (n_texts_made)
		free(texts_made[--n_texts_made]);
}

static char *set(const char *text, const char *value) {
	struct buf out = BUF_NULL;

	if (jsonedit_set(text, strlen(text), path, value, &out) != JSONEDIT_OK)
		return NULL;
	return made(&out);
}

static char *removed(const char *text) {
	struct buf out = BUF_NULL;

	if (jsonedit_remove(text, strlen(text), path, &out) != JSONEDIT_OK)
		return NULL;
	return made(&out);
}

static void test_set_makes_a_file_from_nothing(void) {
	CHECK_STR(set("", "{\n\t\"a\": 1\n}"),
		"{\n  \"servers\": {\n    \"py\": {\n      \"a\": 1\n    }\n  }\n}\n");
	CHECK_STR(set("// mine\n", "1"), "// mine\n{\n  \"servers\": {\n    \"py\": 1\n  }\n}\n");
	CHECK_STR(set("{}", "1"), "{\n  \"servers\": {\n    \"py\": 1\n  }\n}");
}

static void test_set_keeps_the_rest(void) {
	CHECK_STR(set("{\n\t\"z\": [1, 2], // note\n\t\"servers\": {\n\t\t\"x\": {}\n\t}\n}\n",
			  "{\n\t\"a\": 1\n}"),
		"{\n\t\"z\": [1, 2], // note\n\t\"servers\": {\n\t\t\"x\": {},\n\t\t\"py\": "
		"{\n\t\t\t\"a\": 1\n\t\t}\n\t}\n}\n");
	CHECK_STR(set("{\n    \"a\": 1 /* one */ // last\n}\n", "2"),
		"{\n    \"a\": 1, /* one */ // last\n    \"servers\": {\n        \"py\": 2\n    "
		"}\n}\n");
	CHECK_STR(set("{\n  \"servers\": {\n    \"x\": 1,\n  },\n}\n", "2"),
		"{\n  \"servers\": {\n    \"x\": 1,\n    \"py\": 2,\n  },\n}\n");
}

static void test_set_in_one_line(void) {
	CHECK_STR(set("{\"a\": 1}", "2"), "{\"a\": 1,\n  \"servers\": {\n    \"py\": 2\n  }\n}");
	CHECK_STR(set("{\"servers\": {}}", "2"), "{\"servers\": {\n  \"py\": 2\n}}");
	CHECK_STR(set("{\n  \"servers\": {\n    // none yet\n  }\n}", "2"),
		"{\n  \"servers\": {\n    // none yet\n    \"py\": 2\n  }\n}");
}

static void test_set_replaces_in_place(void) {
	CHECK_STR(set("{\n  \"servers\": {\n    \"py\": [ 1 ], // old\n    \"x\": 1\n  }\n}",
			  "{\n\t\"a\": 1\n}"),
		"{\n  \"servers\": {\n    \"py\": {\n      \"a\": 1\n    }, // old\n    \"x\": 1\n "
		" }\n}");
}

static void test_remove_undoes_set(void) {
	static const char *const texts[] = {
		"{\n  \"servers\": {\n    \"x\": 1\n  }\n}\n",
		"{\n  \"servers\": {\n    \"x\": 1,\n  },\n}\n",
		"{\n  \"servers\": {\n    // none yet\n  }\n}",
		"{\"servers\": {}}",
		"{\n\t\"servers\": {\n\t\t\"x\": 1 // one\n\t},\n\t\"y\": 2\n}\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_STR(removed(set(texts[i], "{\n\t\"a\": [1, {}]\n}")), texts[i]);
}

static void test_remove_at_each_place(void) {
	CHECK_STR(removed("{\"servers\": {\"py\": 1, \"b\": 2}}"), "{\"servers\": { \"b\": 2}}");
	CHECK_STR(removed("{\"servers\": {\"a\": 1, \"py\": 1, \"b\": 2}}"),
		"{\"servers\": {\"a\": 1, \"b\": 2}}");
	CHECK_STR(removed("{\"servers\": {\"a\": 1, \"py\": 1}}"), "{\"servers\": {\"a\": 1}}");
	CHECK_STR(removed("{\"servers\": {\"a\": 1,\n// why\n\"py\": 1}}"),
		"{\"servers\": {\"a\": 1\n// why\n}}");
}

static void test_absent_and_wrong(void) {
	struct buf out = BUF_NULL;
	size_t start, end;

	CHECK(jsonedit_remove("{}", 2, path, &out) == JSONEDIT_ABSENT);
	CHECK(jsonedit_remove("", 0, path, &out) == JSONEDIT_ABSENT);
	CHECK(jsonedit_set("[]", 2, path, "1", &out) == JSONEDIT_NOT_OBJECT);
	CHECK(jsonedit_set("{\"servers\": 1}", 14, path, "1", &out) == JSONEDIT_NOT_OBJECT);
	CHECK(jsonedit_find("{\"a\" 1}", 7, path, &start, &end) == JSONEDIT_SYNTAX && start == 5);
	CHECK(jsonedit_find("{\"a\": \"x", 8, path, &start, &end) == JSONEDIT_SYNTAX);
	CHECK(jsonedit_find("{ /* ", 5, path, &start, &end) == JSONEDIT_SYNTAX);
	CHECK(jsonedit_find("{} x", 4, path, &start, &end) == JSONEDIT_SYNTAX);
	CHECK(jsonedit_find("{\"servers\":{\"py\": 12}}", 22, path, &start, &end) == JSONEDIT_OK);
	CHECK(start == 18 && end == 20);
	CHECK(!out.len);
}

int main(void) {
	RUN(test_set_makes_a_file_from_nothing);
	RUN(test_set_keeps_the_rest);
	RUN(test_set_in_one_line);
	RUN(test_set_replaces_in_place);
	RUN(test_remove_undoes_set);
	RUN(test_remove_at_each_place);
	RUN(test_absent_and_wrong);
	free_texts();
	return check_done();
}

/* SPDX-License-Identifier: MIT */
/* No secret is shown: variables' values, credentials of requirements, credentials in any URL. */

#include "common/cleanup.h"
#include "daemon/python/redact.h"
#include "tests/lib/check.h"

static struct settings with(const char *variables, const char *requirements) {
	return (struct settings){
		.environment_variables = (char *)variables,
		.environment_requirements = (char *)requirements,
	};
}

#define CHECK_REDACTED(variables, requirements, text, expected)                                    \
	do {                                                                                       \
		struct settings s_ = with((variables), (requirements));                            \
		auto_free char *shown_ = redact_text(&s_, (text), strlen(text));                   \
                                                                                                   \
		CHECK_STR(shown_, (expected));                                                     \
	} while (0)

static void test_redact_urls(void) {
	static const char *const cases[][2] = {
		{ "", "" },
		{ "no url: a@b", "no url: a@b" },
		{ "https://h/x@y", "https://h/x@y" },
		{ "https://u:p@h/x", "***h/x" },
		{ "see https://token@h.", "see ***h." },
		{ "git+ssh://git@h/a@v1", "***h/a@v1" },
		{ "(https://u:p@q@h)", "(***h)" },
		{ "a://b://c:d@e", "a://***e" },
		{ "https://u:p@h1 http://u:p@h2", "***h1 ***h2" },
		{ "https://u:p", "https://u:p" },
		{ "://u:p@h", "***h" },
		{ "https://u?p@h", "https://u?p@h" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *shown = redact_urls(cases[i][0], strlen(cases[i][0]));

		CHECK_STR(shown, cases[i][1]);
	}
}

static void test_redact_variables(void) {
	CHECK_REDACTED("{\"A\":\"abc\",\"B\":\"abcd\",\"C\":\"\"}", "[]", "abcabcdxab",
		"******xab");
	CHECK_REDACTED("{\"A\":\"postgres://u:p@h/db\"}", "[]", "at postgres://u:p@h/db.",
		"at ***.");
	CHECK_REDACTED("{\"A\":\"\\u00e4\\n\"}", "[]", "x\xc3\xa4\ny", "x***y");
	CHECK_REDACTED("{}", "[]", "\xff\xfe stays", "\xff\xfe stays");
}

static void test_redact_requirements(void) {
	/* Where a fault makes a program see the URL otherwise, its parts must not show either. */
	CHECK_REDACTED("{}", "[\"x @ https://user:s3c/r3t@h/x.whl\"]",
		"bad port in https://user:s3c/r3t@h/x.whl", "bad port in ***h/x.whl");
	CHECK_REDACTED("{}", "[\"x @ https://user:s3cr3t@h/x.whl\"]", "password s3cr3t refused",
		"password *** refused");
	CHECK_REDACTED("{}", "[\"x @ https://user:a%40b@h/x.whl\"]", "a%40b and a@b",
		"*** and ***");
	CHECK_REDACTED("{}", "[\"six\", \"x @ https://h/x@1\"]", "six at h/x@1", "six at h/x@1");
}

static void test_redact_longest(void) {
	struct settings s = with("{\"A\":\"abc\",\"B\":\"abcdef\"}", "[\"x @ https://u:p@h\"]");
	struct settings none = with("{}", "[]");

	CHECK(redact_longest(&s) == 6);
	CHECK(redact_longest(&none) == 0);
}

int main(void) {
	RUN(test_redact_urls);
	RUN(test_redact_variables);
	RUN(test_redact_requirements);
	RUN(test_redact_longest);
	return check_done();
}

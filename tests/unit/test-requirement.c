/* SPDX-License-Identifier: MIT */
/*
 * Requirements in their one spelling. With --filter it is no test but the tool of one: a
 * requirement a line in, its spelling or "!" out (test-requirement-reference.py compares with
 * `packaging`).
 */

#include "common/cleanup.h"
#include "daemon/requirement.h"
#include "tests/lib/check.h"

/* Requirements that are valid, and how the reference implementation writes them. */
static const char *const valid[][2] = {
	{ "foo", "foo" },
	{ "  Foo_Bar.x-1\t", "Foo_Bar.x-1" },
	{ "foo[b , a,a]", "foo[a,b]" },
	{ "foo[]", "foo" },
	{ "foo>=1,<2", "foo<2,>=1" },
	{ "foo (>= 1 , != 1.*)", "foo!=1.*,>=1" },
	{ "foo ==1.0,==1.0.0,", "foo==1.0" },
	{ "foo~=1.0,~=1.0.0", "foo~=1.0,~=1.0.0" },
	{ "foo==v1.0-ALPHA.1,==1a1", "foo==1a1" },
	{ "foo==1.0+Ubuntu_01,==1+ubuntu.1", "foo==1+ubuntu.1" },
	{ "foo==1.0-1,==1.post1", "foo==1.0-1" },
	{ "foo>0!1,>1", "foo>0!1" },
	{ "foo===any+thing~", "foo===any+thing~" },
	{ "x@ https://h/x.whl", "x @ https://h/x.whl" },
	{ "x @ https://u:p@h/x.whl ; os_name=='nt'",
		"x @ https://u:p@h/x.whl ; os_name == \"nt\"" },
	{ "x@https://h/x;y", "x @ https://h/x;y" },
	{ "x;python_version<'3.9'", "x; python_version < \"3.9\"" },
	{ "x;os.name=='a' and (sys.platform=='b')",
		"x; os_name == \"a\" and sys_platform == \"b\"" },
	{ "x;(os.name=='a' or (os.name=='b'and os.name=='c'))",
		"x; os_name == \"a\" or (os_name == \"b\" and os_name == \"c\")" },
	{ "x;python_implementation not  in 'a\"b'",
		"x; platform_python_implementation not in 'a\"b'" },
	{ "x;extra=='Foo_.Bar'", "x; extra == \"foo-bar\"" },
	{ "x;'A_B' in extras", "x; \"a-b\" in extras" },
};

static const char *const invalid[] = { "", " ", "-foo", "foo bar", "foo-", "foo.", "foo[", "foo[a",
	"foo[a b]", "foo[a,]", "foo[.]", "foo=1", "foo>", "foo>=1.*", "foo~=1", "foo==1..2",
	"foo>=1+local", "foo,", "foo>=1,,<2", "foo>=1 <2", "foo===a b", "foo(>=1", "foo>=1)",
	"foo==1.*.1", "foo==1.0a1.*", "x@", "x@ ", "x @ a b", "x;", "x; os_name",
	"x; os_name ==", "x; os_nam == 'a'", "x; os_name == 'a", "x; os_name = 'a'",
	"x; os_name == 'a' and", "x; (os_name == 'a'", "x; os_name == 'a')", "x; os_name not 'a'",
	"x; os_name notin 'a'", "x; os_name == 'a\\n'", "x; os_name == 'a'or", "foo\n>=1;",
	"x@https://h ,y" };

static void test_requirement_is_spelled_one_way(void) {
	for (size_t i = 0; i < ARRAY_LEN(valid); i++) {
		const char *complaint = NULL;
		auto_free char *text = requirement_canonical(valid[i][0], &complaint);

		CHECK_STR(text, valid[i][1]);
		CHECK(!complaint);
	}
}

static void test_requirement_is_stable(void) {
	for (size_t i = 0; i < ARRAY_LEN(valid); i++) {
		const char *complaint;
		auto_free char *text = requirement_canonical(valid[i][1], &complaint);

		CHECK_STR(text, valid[i][1]);
	}
}

static void test_requirement_refuses(void) {
	for (size_t i = 0; i < ARRAY_LEN(invalid); i++) {
		const char *complaint = NULL;
		auto_free char *text = requirement_canonical(invalid[i], &complaint);

		if (text)
			printf("# accepted: %s\n", invalid[i]);
		CHECK(!text && complaint);
	}
}

static void test_requirement_bounds_nesting(void) {
	char text[4096] = "x;";
	const char *complaint = NULL;
	auto_free char *canonical = NULL;

	memset(text + 2, '(', 1000);
	canonical = requirement_canonical(text, &complaint);
	CHECK(!canonical && strstr(complaint, "parentheses"));
}

static int filter(void) {
	auto_free char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	while ((len = getline(&line, &cap, stdin)) > 0) {
		const char *complaint;
		auto_free char *text = NULL;

		line[len - 1] = '\0';
		text = requirement_canonical(line, &complaint);
		puts(text ? text : "!");
	}
	return 0;
}

int main(int argc, char **argv) {
	if (argc == 2 && !strcmp(argv[1], "--filter"))
		return filter();
	RUN(test_requirement_is_spelled_one_way);
	RUN(test_requirement_is_stable);
	RUN(test_requirement_refuses);
	RUN(test_requirement_bounds_nesting);
	return check_done();
}

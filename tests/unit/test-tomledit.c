/* SPDX-License-Identifier: MIT */

#include "client/tomledit.h"
#include "tests/lib/check.h"

static const struct tomledit_pair pairs[] = {
	{ "command", "\"c\"", false },
	{ "limit", "60", true },
	{ 0 },
};

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

static char *set(const char *text) {
	struct buf out = BUF_NULL;

	if (tomledit_set(text, strlen(text), "srv", "py", pairs, &out) != TOMLEDIT_OK)
		return NULL;
	return made(&out);
}

static char *removed(const char *text) {
	struct buf out = BUF_NULL;

	if (tomledit_remove(text, strlen(text), "srv", "py", &out) != TOMLEDIT_OK)
		return NULL;
	return made(&out);
}

static enum tomledit_result found(const char *text) {
	size_t start, end;

	return tomledit_find(text, strlen(text), "srv", "py", &start, &end);
}

static void test_set_appends(void) {
	CHECK_STR(set(""), "[srv.py]\ncommand = \"c\"\nlimit = 60\n");
	CHECK_STR(set("a = 1"), "a = 1\n\n[srv.py]\ncommand = \"c\"\nlimit = 60\n");
	CHECK_STR(set("a = \"\"\"\n[srv.py]\n\"\"\"\n[x]\n"),
		"a = \"\"\"\n[srv.py]\n\"\"\"\n[x]\n\n[srv.py]\ncommand = \"c\"\nlimit = 60\n");
}

static void test_set_changes_in_place(void) {
	CHECK_STR(set("[srv.py] # mine\ncommand = [\n  'a', # ]\n] # old\nlimit = 5\n\n# "
		      "next\n[x]\n"),
		"[srv.py] # mine\ncommand = \"c\" # old\nlimit = 5\n\n# next\n[x]\n");
	CHECK_STR(set("[ srv . \"py\" ]\nenv = { A = \"b\" }\n[srv.py.env]\nC = 1\n"),
		"[ srv . \"py\" ]\nenv = { A = \"b\" }\ncommand = \"c\"\nlimit = "
		"60\n[srv.py.env]\nC = 1\n");
	CHECK_STR(set("[srv.py]"), "[srv.py]\ncommand = \"c\"\nlimit = 60\n");
}

static void test_remove_undoes_set(void) {
	static const char *const texts[] = {
		"",
		"a = 1\n",
		"# c\n\n[x]\ny = '''\n[srv.py]'''\n",
		"[[t]]\nq = [\n1,\n]\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_STR(removed(set(texts[i])), texts[i]);
}

static void test_remove_takes_what_is_below(void) {
	CHECK_STR(
		removed("[a]\nb = 1\n\n[srv.py]\nc = 1\n\n[srv.py.env]\nD = 2\n\n# about z\n[z]\n"),
		"[a]\nb = 1\n\n# about z\n[z]\n");
	CHECK_STR(removed("[srv.py]\n[srv.pyx]\na = 1\n[srv.py.tools.\"x y\"]\nb = 1\n"),
		"[srv.pyx]\na = 1\n");
}

static void test_other_forms_are_left_alone(void) {
	CHECK(found("srv = { py = { command = 1 } }\n") == TOMLEDIT_FOREIGN);
	CHECK(found("srv.py.command = 1\n") == TOMLEDIT_FOREIGN);
	CHECK(found("[srv]\npy = { command = 1 }\n") == TOMLEDIT_FOREIGN);
	CHECK(found("[srv]\npyx = { command = 1 }\n") == TOMLEDIT_ABSENT);
	CHECK(found("[x]\nsrv.py.command = 1\n") == TOMLEDIT_ABSENT);
	CHECK(found("[srv.\"py\"]\n") == TOMLEDIT_OK);
	CHECK(found("[srv.'py']\r\na = 1\r\n") == TOMLEDIT_OK);
}

static void test_what_cannot_be_read(void) {
	CHECK(found("a = [1\n") == TOMLEDIT_SYNTAX);
	CHECK(found("a = \"x\nb = 1\n") == TOMLEDIT_SYNTAX);
	CHECK(found("a\n") == TOMLEDIT_SYNTAX);
	CHECK(found("[a\n") == TOMLEDIT_SYNTAX);
	CHECK(found("a = ]\n") == TOMLEDIT_SYNTAX);
	CHECK(found("a = '''x") == TOMLEDIT_SYNTAX);
}

int main(void) {
	RUN(test_set_appends);
	RUN(test_set_changes_in_place);
	RUN(test_remove_undoes_set);
	RUN(test_remove_takes_what_is_below);
	RUN(test_other_forms_are_left_alone);
	RUN(test_what_cannot_be_read);
	free_texts();
	return check_done();
}

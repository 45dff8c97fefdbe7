/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fingerprint.h"
#include "common/project.h"
#include "common/rendezvous.h"
#include "tests/lib/check.h"

static char top[] = "/tmp/project-XXXXXX";

/* A path below this run's directory; valid until the fourth call from here. */
static const char *in_top(const char *name) {
	static char paths[4][256];
	static unsigned which;

	which = (which + 1) % 4;
	snprintf(paths[which], sizeof(paths[which]), "%s/%s", top, name);
	return paths[which];
}

static void make_directory(const char *name) {
	(void)mkdir(in_top(name), 0700);
}

static void make_file(const char *name, mode_t mode) {
	int fd = open(in_top(name), O_CREAT | O_WRONLY, mode);

	if (fd >= 0)
		close(fd);
}

static void test_project_finds_its_root(void) {
	auto_free char *git = NULL, *pyproject = NULL, *venv = NULL, *none = NULL;

	make_directory("a");
	make_directory("a/.git");
	make_directory("a/src");
	make_directory("a/src/deep");
	git = project_root(in_top("a/src/deep"));
	CHECK_STR(git, in_top("a"));

	make_file("a/src/pyproject.toml", 0600);
	pyproject = project_root(in_top("a/src/deep"));
	CHECK_STR(pyproject, in_top("a/src"));

	make_directory("a/src/deep/.venv");
	venv = project_root(in_top("a/src/deep"));
	CHECK_STR(venv, in_top("a/src/deep"));

	make_directory("plain");
	none = project_root(in_top("plain"));
	CHECK(!none);
	CHECK(!project_root("/"));
	CHECK(!project_root("relative/path"));
}

static void test_project_is_never_the_home_directory(void) {
	auto_free char *root = NULL;

	make_directory("home");
	make_directory("home/.git");
	make_directory("home/work");
	setenv("HOME", in_top("home"), 1);
	root = project_root(in_top("home/work"));
	CHECK(!root);
	setenv("HOME", in_top("a"), 1);
}

static void test_project_tree(void) {
	auto_free char *root = NULL, *plain = NULL, *home = NULL, *above = NULL, *all = NULL;

	make_directory("tree");
	make_directory("tree/.git");
	make_directory("tree/src");
	make_directory("plain");
	make_directory("plain/home");
	setenv("HOME", in_top("plain/home"), 1);
	root = project_tree(in_top("tree/src"));
	CHECK_STR(root, in_top("tree"));
	make_directory("lone");
	plain = project_tree(in_top("lone"));
	CHECK_STR(plain, in_top("lone"));
	home = project_tree(in_top("plain/home"));
	above = project_tree(in_top("plain"));
	all = project_tree("/");
	CHECK(!home && !above && !all);
	unsetenv("HOME");
}

static void test_project_names_are_names(void) {
	static const char *const directories[] = { "My App", "caf\xc3\xa9", "-._", "x.y-z_1",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	static const char *const starts[] = { "MyApp-", "caf-", "project-", "x.y-z_1-",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-" };

	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		auto_free char *name = NULL, *again = NULL, *message = NULL;
		char git[160];

		make_directory(directories[i]);
		snprintf(git, sizeof(git), "%s/.git", directories[i]);
		make_directory(git);
		name = project_name(in_top(directories[i]));
		again = project_name(in_top(git));
		CHECK_STR(again, name);
		CHECK(!strncmp(name, starts[i], strlen(starts[i])));
		CHECK(strlen(name) == strlen(starts[i]) + 8);
		CHECK(rendezvous_check_name(name, &message));
	}
}

static void test_project_names_differ_by_path(void) {
	auto_free char *first = NULL, *second = NULL, *none = NULL;

	make_directory("one");
	make_directory("one/app");
	make_directory("one/app/.git");
	make_directory("two");
	make_directory("two/app");
	make_directory("two/app/.git");
	first = project_name(in_top("one/app"));
	second = project_name(in_top("two/app"));
	CHECK(first && second && strcmp(first, second));
	none = project_name(in_top("plain"));
	CHECK_STR(none, "default");
}

static void test_project_chooses_an_interpreter(void) {
	auto_free char *option = NULL, *configured = NULL, *active = NULL, *nearest = NULL,
		       *none = NULL;

	make_directory("p");
	make_directory("p/.venv");
	make_directory("p/.venv/bin");
	make_directory("p/src");
	make_directory("v");
	make_directory("v/bin");
	make_file("p/.venv/bin/python", 0700);
	make_file("v/bin/python", 0700);

	unsetenv("IPYTHON_MCP_PYTHON");
	unsetenv("VIRTUAL_ENV");
	none = project_python(NULL, in_top("plain"));
	CHECK(!none);
	CHECK(!project_python(NULL, NULL));
	nearest = project_python(NULL, in_top("p/src"));
	CHECK_STR(nearest, in_top("p/.venv/bin/python"));
	setenv("VIRTUAL_ENV", in_top("v"), 1);
	active = project_python(NULL, in_top("p/src"));
	CHECK_STR(active, in_top("v/bin/python"));
	setenv("IPYTHON_MCP_PYTHON", "/opt/python", 1);
	configured = project_python(NULL, in_top("p/src"));
	CHECK_STR(configured, "/opt/python");
	option = project_python("python3.12", in_top("p/src"));
	CHECK_STR(option, "python3.12");
	unsetenv("IPYTHON_MCP_PYTHON");
}

static void test_project_passes_over_a_broken_environment(void) {
	auto_free char *python = NULL;

	/* An activated environment that has been deleted since. */
	setenv("VIRTUAL_ENV", in_top("gone"), 1);
	python = project_python(NULL, in_top("p/src"));
	CHECK_STR(python, in_top("p/.venv/bin/python"));
	unsetenv("VIRTUAL_ENV");
}

static char *fingerprint(const char **environment) {
	struct buf b = BUF_NULL;

	fingerprint_write(&b, (char **)environment);
	return buf_take(&b, NULL);
}

static void test_fingerprint_names_startup_variables(void) {
	const char *mixed[] = { "HOME=/root", "IPYTHON_MCP_MAX_RESULTS=5",
		"IPYTHON_MCP_PROFILE=text", "IPYTHON_MCP_HISTORY=on", "IPYTHON_MCP_RUNTIME_DIR=/x",
		"IPYTHON_MCP_SOCKET=/y", "IPYTHON_MCP_LOG=debug", "IPYTHON_MCP_MAX_RESULTS=6",
		NULL };
	const char *sorted[] = { "IPYTHON_MCP_HISTORY=on", "IPYTHON_MCP_MAX_RESULTS=5", NULL };
	const char *changed[] = { "IPYTHON_MCP_HISTORY=on", "IPYTHON_MCP_MAX_RESULTS=6", NULL };
	const char *none[] = { "PATH=/bin", "IPYTHON_MCP_PROFILE=full", "IPYTHON_MCPX=1", NULL };
	auto_free char *a = fingerprint(mixed), *b = fingerprint(sorted), *c = fingerprint(changed);
	auto_free char *d = fingerprint(none);

	CHECK_STR(a, b);
	CHECK(b && c && strcmp(b, c));
	CHECK_STR(d, "{}");
	CHECK(strstr(b, "{\"IPYTHON_MCP_HISTORY\":\"") == b);
	CHECK(fingerprint_has_any((char **)mixed) && !fingerprint_has_any((char **)none));
}

int main(void) {
	char command[128];

	if (!mkdtemp(top))
		return 99;
	RUN(test_project_finds_its_root);
	RUN(test_project_is_never_the_home_directory);
	RUN(test_project_tree);
	RUN(test_project_names_are_names);
	RUN(test_project_names_differ_by_path);
	RUN(test_project_chooses_an_interpreter);
	RUN(test_project_passes_over_a_broken_environment);
	RUN(test_fingerprint_names_startup_variables);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	if (system(command) != 0)
		printf("# %s was left behind\n", top);
	return check_done();
}

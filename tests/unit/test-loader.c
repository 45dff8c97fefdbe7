/* SPDX-License-Identifier: MIT */
/*
 * Asking an interpreter and remembering the answer. There is no Python half beside this program, so
 * that every start ends there; what comes before is what is tested.
 */

#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/answer.h"
#include "daemon/loader.h"
#include "tests/lib/check.h"

static char directory[] = "/tmp/test-loader.XXXXXX";

/* The message of a start with that interpreter; owned by the caller. */
static char *message(const char *python) {
	struct shell_interpreter interpreter;
	const struct shell_ops *ops;
	char *text = NULL;

	return loader_open(python, directory, &ops, &interpreter, &text) < 0 ? text : NULL;
}

/* Whether the start with that interpreter got as far as loading the Python half. */
static bool gets_through(const char *python) {
	auto_free char *text = message(python);

	return text && strstr(text, "The Python half cannot be loaded");
}

/* The remembered answers' file; NULL when there is none. Owned by the caller. */
static char *cache(void) {
	DIR *d = opendir(directory);
	struct dirent *entry;
	char *path = NULL;

	while (d && (entry = readdir(d)))
		if (!path && !strncmp(entry->d_name, "python-", 7))
			path = answer_message("%s/%s", directory, entry->d_name);
	if (d)
		closedir(d);
	return path;
}

static size_t read_text(const char *path, char *text, size_t size) {
	auto_close int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	return strlen(text);
}

static void write_text(const char *path, const char *text, mode_t mode) {
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
}

static void test_loader_names_what_is_not_there(void) {
	auto_free char *absent = message("/no/such/python"), *relative = message("no-such-python");

	CHECK(absent && strstr(absent, "no Python interpreter /no/such/python") &&
		strstr(absent, "IPYTHON_MCP_PYTHON"));
	CHECK(relative && strstr(relative, "no-such-python"));
}

static void test_loader_shows_what_a_program_complains(void) {
	auto_free char *script = answer_message("%s/broken", directory), *text = NULL;

	write_text(script, "#!/bin/sh\necho first >&2\necho 'last words' >&2\nexit 7\n", 0755);
	text = message(script);
	CHECK(text && strstr(text, "exit status 7") && strstr(text, "last words") &&
		!strstr(text, "first"));
	unlink(script);
}

static void test_loader_remembers_a_binary(void) {
	auto_free char *path = NULL;
	char text[8192], *line;
	size_t len;

	CHECK(gets_through(NULL));
	path = cache();
	CHECK(path);
	len = read_text(path, text, sizeof(text));
	CHECK(len && strstr(text, "\ncpython\n") && strstr(text, DEFAULT_PYTHON));

	/* An answer for another binary, or with a library that is gone, is not believed. */
	text[0] ^= 1;
	write_text(path, text, 0600);
	CHECK(gets_through(NULL));
	CHECK(read_text(path, text, sizeof(text)) == len);
	line = strstr(text, "libpython");
	line[0] = 'X';
	write_text(path, text, 0600);
	CHECK(gets_through(NULL));
	read_text(path, text, sizeof(text));
	CHECK(strstr(text, "libpython"));

	/* One for this binary is, without asking. */
	line = strstr(text, "\ncpython\n");
	line[1] = 'X';
	write_text(path, text, 0600);
	CHECK(gets_through(NULL));
	unlink(path);
}

static void test_loader_asks_a_script_each_time(void) {
	auto_free char *script = answer_message("%s/shim", directory), *path = NULL;
	auto_free char *text = answer_message("#!/bin/sh\nexec '%s' \"$@\"\n", DEFAULT_PYTHON);

	write_text(script, text, 0755);
	CHECK(gets_through(script));
	path = cache();
	CHECK(!path);
	unlink(script);
}

int main(void) {
	if (!mkdtemp(directory))
		return 1;
	RUN(test_loader_names_what_is_not_there);
	RUN(test_loader_shows_what_a_program_complains);
	RUN(test_loader_remembers_a_binary);
	RUN(test_loader_asks_a_script_each_time);
	rmdir(directory);
	return check_done();
}

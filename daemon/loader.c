/* SPDX-License-Identifier: MIT */
/*
 * Loader
 *
 * One build serves every CPython of the stable ABI: at start the chosen interpreter is asked for
 * its version and its libpython, that library is opened for everybody (extension modules expect
 * Python's symbols to be global), and then the Python half, which was linked against none.
 *
 * Asking costs as much as starting Python, so the answer is kept in a small file beside the socket,
 * keyed by the binary's identity. A script's answer is never kept: it may depend on anything.
 *
 * Runs on the Python thread, before Python exists there.
 */

#include <config.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/interpreter.h"
#include "daemon/loader.h"

#define LEAST_VERSION 0x030b0000u

static bool is_executable(const char *path) {
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/*
 * `name` as an absolute path: as it is, below the current directory, or from PATH like a command.
 */
static char *find_interpreter(const char *name) {
	const char *path = getenv("PATH");
	char *full = NULL;

	if (strchr(name, '/')) {
		auto_free char *cwd = *name == '/' ? NULL : getcwd(NULL, 0);

		if (*name == '/')
			full = strdup(name);
		else if (cwd && asprintf(&full, "%s/%s", cwd, name) < 0)
			full = NULL;
		if (full && is_executable(full))
			return full;
		free(full);
		return NULL;
	}
	while (path && *path) {
		int len = (int)strcspn(path, ":");

		if (len && asprintf(&full, "%.*s/%s", len, path, name) >= 0) {
			if (is_executable(full))
				return full;
			free(full);
		}
		path += len + (path[len] == ':');
	}
	return NULL;
}

/*
 * The cache: a file for each interpreter's path. Its first line tells which binary answered; any
 * difference makes it worthless.
 */

static char *cache_path(const char *directory, const char *python) {
	uint64_t hash = 0xcbf29ce484222325u;
	char *path;

	for (const char *c = python; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	if (asprintf(&path, "%s/python-%016" PRIx64, directory, hash) < 0)
		return NULL;
	return path;
}

/* The first line; NULL when this interpreter's answer must not be kept. */
static char *cache_key(const char *python) {
	auto_free char *real = realpath(python, NULL);
	auto_close int fd = real ? open(real, O_RDONLY | O_CLOEXEC) : -1;
	char magic[4], *key;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || read(fd, magic, 4) != 4 || memcmp(magic, "\177ELF", 4))
		return NULL;
	if (strchr(python, '\n') || strchr(real, '\n'))
		return NULL;
	if (asprintf(&key, PACKAGE_VERSION " %s %s %llu %llu %lld %lld.%09ld\n", python, real,
		    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
		    (long long)st.st_size, (long long)st.st_mtim.tv_sec,
		    (long)st.st_mtim.tv_nsec) < 0)
		return NULL;
	return key;
}

static bool cache_read(const char *path, const char *key, struct interpreter *ret_interpreter) {
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t key_len = strlen(key);
	auto_interpreter struct interpreter f = { 0 };
	char text[3 * PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || !S_ISREG(st.st_mode))
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n < (ssize_t)key_len || memcmp(text, key, key_len))
		return false;
	text[n] = '\0';
	if (!interpreter_parse(text + key_len, &f) || access(f.libpython, R_OK) < 0)
		return false;
	*ret_interpreter = f;
	f = (struct interpreter){ 0 };
	return true;
}

/* Only a convenience: whatever fails here costs the next start its time and nothing else. */
static void cache_write(const char *path, const char *key, const struct interpreter *f) {
	auto_free char *draft = NULL;
	auto_buf struct buf text = BUF_NULL;
	auto_close int fd = -1;

	if (asprintf(&draft, "%s.XXXXXX", path) < 0) {
		draft = NULL;
		return;
	}
	fd = mkostemp(draft, O_CLOEXEC);
	if (fd < 0)
		return;
	buf_addf(&text, "%s%s\n%u\n%s\n%s\n%s\n", key, f->implementation, f->version, f->executable,
		f->flags, f->libpython);
	if (text.has_failed || write(fd, text.data, text.len) != (ssize_t)text.len ||
		rename(draft, path) < 0)
		unlink(draft);
}

/* Refuses what cannot serve. */
static int check(const char *python, const struct interpreter *f, char **ret_message) {
	unsigned major = f->version >> 24, minor = f->version >> 16 & 0xff,
		 micro = f->version >> 8 & 0xff;

	if (strcmp(f->implementation, "cpython"))
		return interpreter_refuse(ret_message,
			"%s is %s, and only CPython has the libpython that is needed", python,
			f->implementation);
	if (f->version < LEAST_VERSION)
		return interpreter_refuse(ret_message,
			"%s is Python %u.%u.%u, and 3.11 is the oldest that is supported", python,
			major, minor, micro);
	if (strchr(f->flags, 't'))
		return interpreter_refuse(ret_message,
			"%s is a free-threaded build of Python %u.%u.%u, which has no stable ABI; "
			"python%u.%u has one, python%u.%ut has none",
			python, major, minor, micro, major, minor, major, minor);
	if (!*f->libpython)
		return interpreter_refuse(ret_message,
			"%s (Python %u.%u.%u) has no shared libpython. On Debian: apt install "
			"libpython%u.%u. With pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv "
			"install --force %u.%u.%u. Built by hand: configure --enable-shared",
			python, major, minor, micro, major, minor, major, minor, micro);
	return 0;
}

/* The Python half lies beside the program in a build tree, else where it was installed. */
static void *open_half(char **ret_message) {
	static const char *const beside[] = { ".libs/shell.so", "shell.so" };
	char program[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	auto_free char *path = NULL;
	void *half;

	program[n > 0 ? n : 0] = '\0';
	slash = strrchr(program, '/');
	for (size_t i = 0; slash && !path && i < ARRAY_LEN(beside); i++) {
		if (asprintf(&path, "%.*s/%s", (int)(slash - program), program, beside[i]) < 0)
			path = NULL;
		if (path && access(path, R_OK) < 0) {
			free(path);
			path = NULL;
		}
	}
	half = dlopen(path ? path : PKGLIBDIR "/shell.so", RTLD_NOW | RTLD_LOCAL);
	if (!half)
		*ret_message = answer_message("The Python half cannot be loaded: %s. Install "
					      "ipython-mcp again",
			dlerror());
	return half;
}

int loader_open(const char *python, const char *cache_directory, const struct shell_ops **ret_ops,
	struct shell_interpreter *ret_interpreter, char **ret_message) {
	const char *name = python ? python : DEFAULT_PYTHON;
	auto_free char *path = find_interpreter(name), *key = NULL, *cache = NULL;
	auto_interpreter struct interpreter f = { 0 };
	const struct shell_ops *ops;
	shell_entry_fn *entry;
	void *half;

	if (!path)
		return interpreter_refuse(ret_message, "There is no Python interpreter %s", name);
	key = cache_directory ? cache_key(path) : NULL;
	cache = key ? cache_path(cache_directory, path) : NULL;
	if (!cache || !cache_read(cache, key, &f)) {
		if (interpreter_ask(path, &f, ret_message) < 0 || check(path, &f, ret_message) < 0)
			return -1;
		if (cache)
			cache_write(cache, key, &f);
	}
	log_debug("Python is %s with %s", f.executable, f.libpython);

	if (!dlopen(f.libpython, RTLD_NOW | RTLD_GLOBAL))
		return interpreter_refuse(ret_message, "%s cannot be loaded for %s: %s",
			f.libpython, path, dlerror());
	half = open_half(ret_message);
	if (!half)
		return -1;
	entry = (shell_entry_fn *)dlsym(half, SHELL_ENTRY);
	ops = entry ? entry() : NULL;
	if (!ops || ops->abi != SHELL_ABI) {
		*ret_message = answer_message("The Python half is of another version than the "
					      "daemon. Install ipython-mcp again");
		return -1;
	}

	*ret_ops = ops;
	*ret_interpreter = (struct shell_interpreter){
		.executable = take(f.executable),
		.libpython = take(f.libpython),
		.version = f.version,
	};
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Loader
 *
 * One build serves every CPython of the stable ABI: at start the chosen interpreter is asked for
 * its version and its libpython, that library is opened for everybody (extension modules expect
 * Python's symbols to be global), and then the Python half, which was linked against none.
 *
 * What the interpreter says of itself is what counts. A virtual environment's python is called by
 * the path that was given, so it stays the environment's; a shell-script shim names the interpreter
 * behind it as sys.executable.
 *
 * Asking costs as much as starting Python, so the answer is kept in a small file beside the socket,
 * keyed by the binary's identity. A script's answer is never kept: it may depend on anything.
 *
 * Runs on the Python thread, before Python exists there.
 */

#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/loader.h"

/* An interpreter that says nothing for so long never will. */
enum { ASK_LIMIT_MS = 60000 };

#define LEAST_VERSION 0x030b0000u

#define WAY_OUT \
	"set IPYTHON_MCP_PYTHON (or --python) to a CPython 3.11 or later with a shared libpython"

/*
 * Five lines: implementation, version, sys.executable, ABI flags, libpython or nothing. The usual
 * places are tried first because importing sysconfig takes as long as all the rest.
 */
static const char question[] =
	"import sys, posix\n"
	"def there(p):\n"
	"    try: posix.stat(p)\n"
	"    except Exception: return False\n"
	"    return True\n"
	"flags = getattr(sys, 'abiflags', '')\n"
	"arch = getattr(sys.implementation, '_multiarch', '')\n"
	"base = getattr(sys, 'base_exec_prefix', sys.exec_prefix)\n"
	"name = 'libpython%d.%d%s.so.1.0' % (sys.version_info[0], sys.version_info[1], flags)\n"
	"paths = ['%s/%s/%s' % (base, d, name)\n"
	"         for d in ('lib', 'lib/' + arch, getattr(sys, 'platlibdir', 'lib'))]\n"
	"found = [p for p in paths if there(p)]\n"
	"if not found and sys.version_info >= (3, 11):\n"
	"    import sysconfig\n"
	"    var = lambda n: sysconfig.get_config_var(n) or ''\n"
	"    paths = ['/'.join(p) for f in (var('INSTSONAME'), var('LDLIBRARY')) if '.so' in f\n"
	"             for p in ((var('LIBDIR'), f), (var('LIBDIR'), var('MULTIARCH'), f),\n"
	"                       (var('LIBPL'), f))]\n"
	"    found = [p for p in paths if there(p)]\n"
	"print('\\n'.join([sys.implementation.name, str(sys.hexversion), sys.executable, flags,\n"
	"                 found[0] if found else '']))\n";

/* What the interpreter said. */
struct facts {
	char *implementation, *executable, *flags, *libpython;
	unsigned version;
};

#define auto_facts __attribute__((cleanup(facts_deinit)))

static void facts_deinit(struct facts *f) {
	free(f->implementation);
	free(f->executable);
	free(f->flags);
	free(f->libpython);
	*f = (struct facts){ 0 };
}

/* Writes *ret_message and returns -1, so that a refusal is one statement. */
__attribute__((format(printf, 2, 3))) static int refuse(char **ret_message, const char *format,
	...) {
	va_list args;

	va_start(args, format);
	if (vasprintf(ret_message, format, args) < 0)
		*ret_message = NULL;
	va_end(args);
	return -1;
}

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

/* Takes the next line of *text, without its newline; NULL at the end or when memory is short. */
static char *next_line(char **text) {
	char *line = *text, *end = line ? strchr(line, '\n') : NULL;

	if (!end)
		return NULL;
	*end = '\0';
	*text = end + 1;
	return strdup(line);
}

static bool facts_parse(char *text, struct facts *ret_facts) {
	auto_facts struct facts f = { 0 };
	auto_free char *version = NULL;

	f.implementation = next_line(&text);
	version = next_line(&text);
	f.executable = next_line(&text);
	f.flags = next_line(&text);
	f.libpython = next_line(&text);
	if (!f.implementation || !version || !f.executable || !f.flags || !f.libpython)
		return false;
	f.version = (unsigned)strtoul(version, NULL, 10) >> 8 << 8;
	*ret_facts = f;
	f = (struct facts){ 0 };
	return true;
}

static int64_t now_ms(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads both pipes to their end, at most until the limit. False when time ran out. */
static bool read_both(int out_fd, int err_fd, struct buf *out, struct buf *err) {
	struct pollfd fds[] = { { out_fd, POLLIN, 0 }, { err_fd, POLLIN, 0 } };
	struct buf *into[] = { out, err };
	int64_t end = now_ms() + ASK_LIMIT_MS;

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		int64_t left = end - now_ms();

		if (left <= 0)
			return false;
		if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
			return false;
		for (int i = 0; i < 2; i++) {
			char bytes[4096];
			ssize_t n;

			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			n = read(fds[i].fd, bytes, sizeof(bytes));
			if (n > 0 && into[i]->len < 64 * 1024)
				buf_add(into[i], bytes, (size_t)n);
			else if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
				fds[i].fd = -1;
		}
	}
	return true;
}

/* Starts the interpreter with descriptors 0 to 2 replaced. 0 or a positive errno. */
static int spawn_interpreter(const char *python, int out_fd, int err_fd, pid_t *ret_pid) {
	char *argv[] = { (char *)python, (char *)"-I", (char *)"-S", (char *)"-c", (char *)question,
		NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r)
		return r;
	r = posix_spawnattr_init(&attributes);
	if (r) {
		posix_spawn_file_actions_destroy(&actions);
		return r;
	}
	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
	if (!r)
		r = posix_spawnattr_setsigmask(&attributes, &none);
	if (!r)
		r = posix_spawnattr_setsigdefault(&attributes, &all);
	if (!r)
		r = posix_spawnattr_setflags(&attributes,
			POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!r)
		r = posix_spawn(ret_pid, python, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* The last line of what the interpreter complained, which is where Python puts the error. */
static const char *last_line(struct buf *err) {
	const char *newline;

	while (err->len && err->data[err->len - 1] == '\n')
		err->len--;
	buf_add_char(err, '\0');
	if (err->has_failed)
		return "";
	newline = strrchr(err->data, '\n');
	return newline ? newline + 1 : err->data;
}

static int ask(const char *python, struct facts *ret_facts, char **ret_message) {
	auto_close int out_r = -1, out_w = -1, err_r = -1, err_w = -1;
	auto_buf struct buf out = BUF_NULL, err = BUF_NULL;
	int fds[2], status = 0, r;
	bool is_done;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return refuse(ret_message, "No pipe to ask %s: %m", python);
	out_r = fds[0], out_w = fds[1];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return refuse(ret_message, "No pipe to ask %s: %m", python);
	err_r = fds[0], err_w = fds[1];

	r = spawn_interpreter(python, out_w, err_w, &pid);
	if (r)
		return refuse(ret_message, "%s cannot be run: %s; " WAY_OUT, python, strerror(r));
	close(take_fd(&out_w));
	close(take_fd(&err_w));
	is_done = read_both(out_r, err_r, &out, &err);
	if (!is_done)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!is_done)
		return refuse(ret_message,
			"%s did not say within %d s which Python it is; " WAY_OUT, python,
			ASK_LIMIT_MS / 1000);

	buf_add_char(&out, '\0');
	if (status != 0 || out.has_failed || !facts_parse(out.data, ret_facts))
		return refuse(ret_message,
			"%s did not say which Python 3 it is (%s %d): %s; " WAY_OUT, python,
			WIFSIGNALED(status) ? "signal" : "exit status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			last_line(&err));
	return 0;
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

static bool cache_read(const char *path, const char *key, struct facts *ret_facts) {
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t key_len = strlen(key);
	auto_facts struct facts f = { 0 };
	char text[3 * PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || !S_ISREG(st.st_mode))
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n < (ssize_t)key_len || memcmp(text, key, key_len))
		return false;
	text[n] = '\0';
	if (!facts_parse(text + key_len, &f) || access(f.libpython, R_OK) < 0)
		return false;
	*ret_facts = f;
	f = (struct facts){ 0 };
	return true;
}

/* Only a convenience: whatever fails here costs the next start its time and nothing else. */
static void cache_write(const char *path, const char *key, const struct facts *f) {
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

/* Refuses what cannot serve, with the way out. */
static int check(const char *python, const struct facts *f, char **ret_message) {
	unsigned major = f->version >> 24, minor = f->version >> 16 & 0xff,
		 micro = f->version >> 8 & 0xff;

	if (strcmp(f->implementation, "cpython"))
		return refuse(ret_message,
			"%s is %s; only CPython has the libpython that is needed: " WAY_OUT, python,
			f->implementation);
	if (f->version < LEAST_VERSION)
		return refuse(ret_message,
			"%s is Python %u.%u.%u, and 3.11 is the oldest that is supported: " WAY_OUT,
			python, major, minor, micro);
	if (strchr(f->flags, 't'))
		return refuse(ret_message,
			"%s is a free-threaded build of Python %u.%u.%u, which has no stable ABI: "
			WAY_OUT " and is built with the GIL (python%u.%u, not python%u.%ut)",
			python, major, minor, micro, major, minor, major, minor);
	if (!*f->libpython)
		return refuse(ret_message,
			"%s (Python %u.%u.%u) has no shared libpython. On Debian: apt install "
			"libpython%u.%u. With pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv "
			"install --force %u.%u.%u. Built by hand: configure --enable-shared. Or "
			WAY_OUT,
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
		refuse(ret_message,
			"The Python half cannot be loaded: %s. Install ipython-mcp again",
			dlerror());
	return half;
}

int loader_open(const char *python, const char *cache_directory, const struct shell_ops **ret_ops,
	struct shell_interpreter *ret_interpreter, char **ret_message) {
	const char *name = python ? python : DEFAULT_PYTHON;
	auto_free char *path = find_interpreter(name), *key = NULL, *cache = NULL;
	auto_facts struct facts f = { 0 };
	const struct shell_ops *ops;
	shell_entry_fn *entry;
	void *half;

	if (!path)
		return refuse(ret_message, "There is no Python interpreter %s: " WAY_OUT, name);
	key = cache_directory ? cache_key(path) : NULL;
	cache = key ? cache_path(cache_directory, path) : NULL;
	if (!cache || !cache_read(cache, key, &f)) {
		if (ask(path, &f, ret_message) < 0 || check(path, &f, ret_message) < 0)
			return -1;
		if (cache)
			cache_write(cache, key, &f);
	}
	log_debug("Python is %s with %s", f.executable, f.libpython);

	if (!dlopen(f.libpython, RTLD_NOW | RTLD_GLOBAL))
		return refuse(ret_message, "%s cannot be loaded for %s: %s; " WAY_OUT, f.libpython,
			path, dlerror());
	half = open_half(ret_message);
	if (!half)
		return -1;
	entry = (shell_entry_fn *)dlsym(half, SHELL_ENTRY);
	ops = entry ? entry() : NULL;
	if (!ops || ops->abi != SHELL_ABI)
		return refuse(ret_message,
			"The Python half is of another version than the daemon. Install "
			"ipython-mcp again");

	*ret_ops = ops;
	*ret_interpreter = (struct shell_interpreter){ .executable = take(f.executable),
		.libpython = take(f.libpython),
		.version = f.version };
	return 0;
}

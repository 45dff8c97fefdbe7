/* SPDX-License-Identifier: MIT */
/*
 * Asking an Interpreter
 *
 * What counts is what the interpreter says of itself. A virtual environment's python is called by
 * the path that was given, so it stays the environment's; a shell-script shim names the interpreter
 * behind it as sys.executable.
 *
 * It runs isolated and without `site`, because nothing of the user's belongs into the answer, and
 * with a limit, because it may be any program. On the Python thread, before Python exists there.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "daemon/answer.h"
#include "daemon/interpreter.h"

/* An interpreter that says nothing for so long never will. */
enum { ASK_LIMIT_MS = 60000 };

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

void interpreter_deinit(struct interpreter *f) {
	free(f->implementation);
	free(f->executable);
	free(f->flags);
	free(f->libpython);
	*f = (struct interpreter){ 0 };
}

int interpreter_refuse(char **ret_message, const char *format, ...) {
	auto_free char *what = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&what, format, args) < 0)
		what = NULL;
	va_end(args);
	if (what)
		*ret_message = answer_message("%s; set IPYTHON_MCP_PYTHON (or --python) to a "
					      "CPython 3.11 or later that has a shared libpython",
			what);
	else
		*ret_message = NULL;
	return -1;
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

bool interpreter_parse(char *text, struct interpreter *ret_interpreter) {
	auto_interpreter struct interpreter f = { 0 };
	auto_free char *version = NULL;

	f.implementation = next_line(&text);
	version = next_line(&text);
	f.executable = next_line(&text);
	f.flags = next_line(&text);
	f.libpython = next_line(&text);
	if (!f.implementation || !version || !f.executable || !f.flags || !f.libpython)
		return false;
	f.version = (unsigned)strtoul(version, NULL, 10) >> 8 << 8;
	*ret_interpreter = f;
	f = (struct interpreter){ 0 };
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

int interpreter_ask(const char *python, struct interpreter *ret_interpreter, char **ret_message) {
	auto_close int out_r = -1, out_w = -1, err_r = -1, err_w = -1;
	auto_buf struct buf out = BUF_NULL, err = BUF_NULL;
	int fds[2], status = 0, r;
	bool is_done;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return interpreter_refuse(ret_message, "No pipe to ask %s: %m", python);
	out_r = fds[0], out_w = fds[1];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return interpreter_refuse(ret_message, "No pipe to ask %s: %m", python);
	err_r = fds[0], err_w = fds[1];

	r = spawn_interpreter(python, out_w, err_w, &pid);
	if (r)
		return interpreter_refuse(ret_message, "%s cannot be run: %s", python, strerror(r));
	close(take_fd(&out_w));
	close(take_fd(&err_w));
	is_done = read_both(out_r, err_r, &out, &err);
	if (!is_done)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!is_done)
		return interpreter_refuse(ret_message,
			"%s did not say within %d s which Python it is", python,
			ASK_LIMIT_MS / 1000);

	buf_add_char(&out, '\0');
	if (status != 0 || out.has_failed || !interpreter_parse(out.data, ret_interpreter))
		return interpreter_refuse(ret_message,
			"%s did not say which Python 3 it is (%s %d): %s", python,
			WIFSIGNALED(status) ? "signal" : "exit status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			last_line(&err));
	return 0;
}

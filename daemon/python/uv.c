/* SPDX-License-Identifier: MIT */
/*
 * Running uv
 *
 * The child gets a process group, so that builds that it starts end with it, default signals (the
 * Python thread's are not all so), and an environment without our own settings, whose values may be
 * secret and would reach every build script. Requirements go in through standard input: arguments
 * can be read by every user of the machine.
 *
 * Waiting is a poll with a short tick rather than a wait for the exit: a grandchild that keeps the
 * pipe open must not hold us, and the tick is where a limit or the end of the daemon is noticed.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/python/uv.h"

enum {
	TICK_MS = 50,
	GRACE_MS = 1000, /* between asking a group to end and making it */
};

static atomic_bool is_cancelled;

void uv_cancel(void) {
	atomic_store(&is_cancelled, true);
}

char *uv_find(void) {
	const char *path = getenv("PATH");

	for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p;) {
		size_t len = strcspn(p, ":");
		auto_buf struct buf b = BUF_NULL;
		auto_free char *file = NULL;
		struct stat st;

		/* A relative entry would mean another program in each directory. */
		if (len && *p == '/') {
			buf_add(&b, p, len);
			buf_add_str(&b, "/uv");
			file = buf_take(&b, NULL);
			if (file && stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
				access(file, X_OK) == 0)
				return take(file);
		}
		p += len + (p[len] == ':');
	}
	return NULL;
}

static bool is_kept(const char *assignment) {
	static const char *const dropped[] = { "IPYTHON_MCP_", "UV_NO_CONFIG=", "VIRTUAL_ENV=",
		"CONDA_PREFIX=", "NOTIFY_SOCKET=", "WATCHDOG_", "LISTEN_" };

	for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
		if (!strncmp(assignment, dropped[i], strlen(dropped[i])))
			return false;
	return true;
}

/* The child's environment: pointers into ours; the array is the caller's. NULL: memory is short. */
static char **make_environment(void) {
	size_t n = 0, used = 0;
	char **environment;

	while (environ[n])
		n++;
	environment = calloc(n + 2, sizeof(*environment));
	if (!environment)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (is_kept(environ[i]))
			environment[used++] = environ[i];
	environment[used] = (char *)"UV_NO_CONFIG=1";
	return environment;
}

/* Starts the child with the two pipe ends as its 0 and 1, 2. 0 or an errno. */
static int start(const struct uv_step *step, int input, int output, pid_t *ret_pid) {
	auto_free char **environment = make_environment();
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int err;

	if (!environment)
		return ENOMEM;
	err = posix_spawn_file_actions_init(&actions);
	if (err)
		return err;
	err = posix_spawnattr_init(&attributes);
	if (err) {
		posix_spawn_file_actions_destroy(&actions);
		return err;
	}
	sigemptyset(&none);
	sigfillset(&all);
	err = posix_spawn_file_actions_adddup2(&actions, input, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, output, 1);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, output, 2);
	/* Onto itself: the one way to pass a close-on-exec descriptor without a window for other
	 * children. */
	if (!err && step->keep_fd >= 0)
		err = posix_spawn_file_actions_adddup2(&actions, step->keep_fd, step->keep_fd);
	if (!err)
		err = posix_spawn_file_actions_addchdir_np(&actions, step->directory);
	if (!err)
		err = posix_spawnattr_setflags(&attributes,
			POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!err)
		err = posix_spawnattr_setsigmask(&attributes, &none);
	if (!err)
		err = posix_spawnattr_setsigdefault(&attributes, &all);
	if (!err)
		err = posix_spawn(ret_pid, step->argv[0], &actions, &attributes,
			(char **)step->argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

static double now(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Waits at most a tick for output and takes what is there; false at its end. */
static bool read_some(int fd, const struct uv_step *step, struct buf *output, bool *ret_cut) {
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char chunk[4096];
	ssize_t n;

	if (poll(&ready, 1, TICK_MS) <= 0)
		return true;
	n = read(fd, chunk, sizeof(chunk));
	if (n > 0) {
		size_t room = step->max_output > output->len ? step->max_output - output->len : 0;

		*ret_cut |= (size_t)n > room;
		buf_add(output, chunk, (size_t)n < room ? (size_t)n : room);
	}
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* True when the child has ended; it stays a zombie, so that its group's number stays taken. */
static bool has_ended(pid_t pid) {
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		info.si_pid == pid;
}

static void sleep_tick(void) {
	nanosleep(&(struct timespec){ .tv_nsec = TICK_MS * 1000000L }, NULL);
}

/* Ends whatever is left of the child's group and takes its status. */
static int end_group(pid_t pid) {
	int status = 0;

	if (!has_ended(pid)) {
		kill(-pid, SIGTERM);
		for (int waited = 0; waited < GRACE_MS && !has_ended(pid); waited += TICK_MS)
			sleep_tick();
	}
	kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

enum uv_result uv_run(const struct uv_step *step, struct buf *output, bool *ret_cut,
	int *ret_status) {
	int input_pipe[2] = { -1, -1 }, output_pipe[2] = { -1, -1 };
	auto_close int child_input = -1, our_input = -1, child_output = -1, our_output = -1;
	enum uv_result result = UV_DONE;
	double deadline = now() + step->timeout_s;
	bool is_open = true;
	pid_t pid;

	*ret_cut = false;
	if (pipe2(input_pipe, O_CLOEXEC) < 0) {
		*ret_status = errno;
		return UV_NOT_STARTED;
	}
	child_input = input_pipe[0];
	our_input = input_pipe[1];
	/* Fits into the pipe: nobody needs to read it before we go on. */
	if (step->input && write(our_input, step->input, strlen(step->input)) < 0) {
		*ret_status = errno;
		return UV_NOT_STARTED;
	}
	close(take_fd(&our_input));
	if (pipe2(output_pipe, O_CLOEXEC) < 0) {
		*ret_status = errno;
		return UV_NOT_STARTED;
	}
	our_output = output_pipe[0];
	child_output = output_pipe[1];
	fcntl(our_output, F_SETFL, O_NONBLOCK);

	*ret_status = atomic_load(&is_cancelled) ? ECANCELED
						 : start(step, child_input, child_output, &pid);
	if (*ret_status)
		return *ret_status == ECANCELED ? UV_CANCELLED : UV_NOT_STARTED;
	close(take_fd(&child_output));

	while (!has_ended(pid)) {
		if (atomic_load(&is_cancelled))
			result = UV_CANCELLED;
		else if (now() > deadline)
			result = UV_TIMED_OUT;
		if (result != UV_DONE)
			break;
		if (is_open)
			is_open = read_some(our_output, step, output, ret_cut);
		else
			sleep_tick();
	}
	*ret_status = end_group(pid);
	/* What it wrote last is in the pipe. */
	while (is_open && output->len < step->max_output)
		is_open = read_some(our_output, step, output, ret_cut);
	if (result == UV_DONE && *ret_status)
		result = UV_FAILED;
	return result;
}

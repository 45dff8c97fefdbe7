/* SPDX-License-Identifier: MIT */
/*
 * Starting a Daemon
 *
 * A detached daemon must outlive whatever its client does. Clients end servers by signals to a
 * process group, by closing terminals, and by killing a tree of processes found through parents; so
 * it gets a session of its own, and is a grandchild whose parent is gone. Being no session leader
 * it can also never come to a controlling terminal by opening one. Of the client's descriptors it
 * keeps none: its output goes to a log beside the socket, from where spawn_reason() reads why it
 * could not start.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/fingerprint.h"
#include "common/project.h"
#include "common/wire.h"
#include "client/spawn.h"
#include "client/unit.h"

enum {
	MAX_LOG = 1024 * 1024, /* a longer one is put aside at the next start */
	MAX_REASON = 2000,
	REPORT_FD = 3, /* in the new process, until it executes the daemon */
};

#define DAEMON "ipython-mcpd"

static int open_pidfd(pid_t pid) {
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* The daemon's program: the one beside ours, else where it was installed. Owned by the caller. */
static char *daemon_path(void) {
	char self[4096], *path;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - sizeof(DAEMON));
	char *slash;

	if (len > 0) {
		self[len] = '\0';
		slash = strrchr(self, '/');
		if (slash) {
			memcpy(slash + 1, DAEMON, sizeof(DAEMON));
			if (access(self, X_OK) == 0)
				return strdup(self);
		}
	}
	return asprintf(&path, "%s/" DAEMON, BINDIR) < 0 ? NULL : path;
}

bool spawn_is_for_unit(const struct rendezvous *place, const struct spawn_options *options) {
	auto_free char *cwd = NULL, *python = NULL;

	if (options->socket || options->python || !unit_is_there(place))
		return false;
	if (getenv("VIRTUAL_ENV") || fingerprint_has_any(environ))
		return false;
	cwd = getcwd(NULL, 0);
	python = project_python(NULL, cwd);
	return !python;
}

/* In a new process: signals as a program expects them. */
static void reset_signals(void) {
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_from(int first) {
	if (syscall(SYS_close_range, (unsigned)first, ~0u, 0) == 0)
		return;
	for (int fd = first, max = (int)sysconf(_SC_OPEN_MAX); fd < max; fd++)
		close(fd);
}

int spawn_unit(struct spawn *s, const struct rendezvous *place,
	const struct spawn_options *options) {
	auto_free char *unit = unit_name(place, "socket");
	pid_t pid;

	if (!unit)
		return err_new(-ENOMEM);
	pid = fork();
	if (pid < 0)
		return err_new(-errno);
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		/*
		 * Nothing of ours is systemctl's business: stdin and stdout are the client's
		 * protocol.
		 */
		if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
			_exit(1);
		close_from(3);
		reset_signals();
		unit_find_manager();
		execlp("systemctl", "systemctl", "--user", "--quiet", "start", unit, (char *)NULL);
		_exit(1);
	}
	*s = (struct spawn){ .place = place, .pid = pid, .pidfd = open_pidfd(pid),
		.is_unit = true };
	return 0;
}

/* Opens the daemon's log for appending, after putting a long one aside. */
static int open_log(const char *path, off_t *ret_start) {
	int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
	auto_close int fd = open(path, flags, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (st.st_size > MAX_LOG) {
		auto_free char *old = NULL;

		if (asprintf(&old, "%s.old", path) < 0)
			old = NULL;
		if (old && rename(path, old) == 0) {
			close(take_fd(&fd));
			fd = open(path, flags, 0600);
			st.st_size = 0;
		}
	}
	*ret_start = st.st_size;
	return take_fd(&fd);
}

/* The new daemon's process, a child of nobody soon: reports its number, and why it cannot go on. */
static void run_daemon(const char *const *argv, int log, int report) {
	int null = open("/dev/null", O_RDWR), error;
	pid_t self = getpid();

	if (write(report, &self, sizeof(self)) != sizeof(self))
		_exit(1);
	/* Above the four that are given away below, lest one overwrite the other. */
	log = fcntl(log >= 0 ? log : null, F_DUPFD, REPORT_FD + 1);
	report = fcntl(report, F_DUPFD, REPORT_FD + 1);
	if (null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
		dup2(report, REPORT_FD) < 0)
		_exit(1);
	(void)fcntl(REPORT_FD, F_SETFD, FD_CLOEXEC);
	close_from(REPORT_FD + 1);
	reset_signals();
	execv(argv[0], (char *const *)argv);
	error = errno;
	(void)!write(REPORT_FD, &error, sizeof(error));
	_exit(1);
}

/* Reads one value from the report; false at its end. */
static bool read_report(int report, void *value, size_t len) {
	ssize_t n;

	do {
		n = read(report, value, len);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

int spawn_detached(struct spawn *s, const struct rendezvous *place,
	const struct spawn_options *options) {
	auto_free char *path = daemon_path();
	auto_close int log = -1, report = -1, reporter = -1;
	auto_free char *cwd = getcwd(NULL, 0);
	const char *argv[10] = { path, "--name", options->name };
	int n = 3, ends[2], error;
	pid_t child, pid = 0;
	off_t log_start = 0;

	if (!path)
		return err_new(-ENOMEM);
	if (options->socket) {
		argv[n++] = "--socket";
		argv[n++] = place->socket; /* absolute, whatever was given */
	}
	if (options->python) {
		argv[n++] = "--python";
		argv[n++] = options->python;
	}
	if (cwd) {
		argv[n++] = "--client-directory";
		argv[n++] = cwd;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_new(-errno);
	report = ends[0];
	reporter = ends[1];
	/* Without a log the daemon still starts; its words are lost. */
	log = open_log(place->log, &log_start);

	child = fork();
	if (child < 0)
		return err_new(-errno);
	if (child == 0) {
		setsid();
		if (fork() == 0)
			run_daemon(argv, log, reporter);
		_exit(0);
	}
	close(take_fd(&reporter));
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;

	/*
	 * First its number, then its end: closed by a successful exec, or the reason of a failed
	 * one.
	 */
	if (!read_report(report, &pid, sizeof(pid)) || pid <= 0)
		return err_new(-EAGAIN);
	if (read_report(report, &error, sizeof(error)))
		return err_new(-error);
	*s = (struct spawn){ .place = place, .pid = pid, .pidfd = open_pidfd(pid),
		.log_start = log_start };
	return 0;
}

/* Whether the process has ended, for a kernel without pidfds as well. */
static bool has_ended(const struct spawn *s) {
	siginfo_t info = { 0 };

	if (s->pidfd >= 0) {
		struct pollfd fd = { .fd = s->pidfd, .events = POLLIN };

		return poll(&fd, 1, 0) > 0;
	}
	if (s->is_unit)
		return waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
			info.si_pid;
	return kill(s->pid, 0) < 0 && errno == ESRCH;
}

enum spawn_state spawn_check(struct spawn *s) {
	int status = 0;

	if (!s->pid)
		return SPAWN_UNIT_READY; /* told before */
	if (!has_ended(s))
		return SPAWN_RUNNING;
	if (!s->is_unit)
		return SPAWN_ENDED;
	if (waitpid(s->pid, &status, 0) != s->pid)
		status = -1;
	/* Readable for ever from now on: nobody must wait for it any more. */
	if (s->pidfd >= 0)
		close(s->pidfd);
	s->pidfd = -1;
	s->pid = 0;
	return status == 0 ? SPAWN_UNIT_READY : SPAWN_UNIT_FAILED;
}

/* Drops systemd's level prefix and what does not belong on one line. */
static void add_log_line(char *reason, const char *line, size_t len) {
	size_t at = strlen(reason);

	if (len > 3 && line[0] == '<' && line[2] == '>') {
		line += 3;
		len -= 3;
	}
	if (!len || at + len + 3 > MAX_REASON)
		return;
	if (at) {
		memcpy(reason + at, "; ", 2);
		at += 2;
	}
	for (size_t i = 0; i < len; i++)
		reason[at++] = (unsigned char)line[i] < ' ' ? ' ' : line[i];
	reason[at] = '\0';
}

char *spawn_reason(const struct spawn *s) {
	auto_close int fd = open(s->place->log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	auto_free char *reason = calloc(1, MAX_REASON);
	char text[MAX_REASON];
	ssize_t len;

	if (fd < 0 || s->is_unit || !reason)
		return NULL;
	len = pread(fd, text, sizeof(text), s->log_start);
	for (ssize_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', (size_t)(len - at));
		ssize_t line_len = (end ? end - text : len) - at;

		add_log_line(reason, text + at, (size_t)line_len);
		at += line_len + 1;
	}
	return *reason ? take(reason) : NULL;
}

void spawn_deinit(struct spawn *s) {
	if (s->is_unit && s->pid) {
		/* The manager has the job or will never have it; systemctl only waits. */
		(void)kill(s->pid, SIGKILL);
		(void)waitpid(s->pid, NULL, 0);
	}
	if (s->pidfd >= 0)
		close(s->pidfd);
	*s = (struct spawn)SPAWN_NULL;
}

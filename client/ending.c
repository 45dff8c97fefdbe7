/* SPDX-License-Identifier: MIT */
/*
 * Ending a Daemon
 *
 * First it is asked, always: it interrupts what runs, tells its sessions and ends Python. With
 * --force it leaves out the grace, and what is still there after that is killed. A daemon that does
 * not answer at all (its event loop hangs) is killed at once, with --force only.
 *
 * The process is known from its own answer. From one that does not answer only the socket tells,
 * and there the number may be the user manager's, who listens for units: it is asked then, and a
 * process that is no ipython-mcpd is never touched.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/attach.h"
#include "client/ending.h"
#include "client/show.h"
#include "client/unit.h"
#include "common/cleanup.h"
#include "common/wire.h"

enum {
	ANSWER_LIMIT_MS = 2000,
	/* Two seconds of grace, Python's end in bounded time, and room for a slow machine. */
	END_LIMIT_MS = 30000,
	FORCED_END_LIMIT_MS = 5000,
	TICK_MS = 100,
};

void ending_deinit(struct ending *e) {
	rpc_deinit(&e->rpc);
	if (e->pidfd >= 0)
		close(e->pidfd);
	*e = (struct ending)ENDING_NULL;
}

/* True when that process runs our daemon's program. */
static bool is_daemon(pid_t pid) {
	char link[32], path[4096];
	ssize_t len;
	const char *name;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	len = readlink(link, path, sizeof(path) - 1);
	if (len <= 0)
		return false;
	path[len] = '\0';
	name = strrchr(path, '/');
	/* After an upgrade the kernel adds " (deleted)". */
	return name && !strncmp(name + 1, "ipython-mcpd", strlen("ipython-mcpd"));
}

int ending_begin(struct ending *e, const struct invocation *inv) {
	auto_json json_t *answer = NULL;
	int err;

	if (unit_state(&inv->place) == UNIT_LISTENING)
		return -ENOENT;
	err = rpc_connect(&e->rpc, &inv->place);
	if (err == -ENOENT || err == -ECONNREFUSED)
		return -ENOENT;
	if (err < 0) {
		admin_complain("cannot connect to %s: %s", inv->place.socket, strerror(-err));
		return -1;
	}
	e->is_answering = rpc_call(&e->rpc, WIRE_STATUS, json_object(), ANSWER_LIMIT_MS, &answer) ==
		RPC_MESSAGE;
	if (e->is_answering) {
		const json_t *result = json_object_get(answer, "result");

		e->pid = (pid_t)json_integer_value(json_object_get(result, "pid"));
	} else {
		uid_t uid;

		if (!rendezvous_peer(e->rpc.fd, &e->pid, &uid) || !is_daemon(e->pid))
			e->pid = unit_pid(&inv->place);
		if (!is_daemon(e->pid))
			e->pid = 0;
	}
	if (e->pid > 0)
		e->pidfd = (int)syscall(SYS_pidfd_open, e->pid, 0);
	return 0;
}

static bool has_ended(const struct ending *e) {
	struct pollfd p = { .fd = e->pidfd, .events = POLLIN };

	if (e->pidfd >= 0)
		return poll(&p, 1, TICK_MS) > 0;
	/* A kernel without pidfds. */
	(void)poll(NULL, 0, TICK_MS);
	return kill(e->pid, 0) < 0 && errno == ESRCH;
}

/* Waits for the end; false when the time is over. */
static bool wait_for_end(const struct ending *e, int limit_ms) {
	int64_t begin = attach_now_ms();
	bool is_over = false, ended;

	while (!(ended = has_ended(e)) && !is_over) {
		int64_t waited = attach_now_ms() - begin;

		if (waited >= 1000)
			show_progress("waiting for process %d to end, %lld s", (int)e->pid,
				(long long)(waited / 1000));
		is_over = waited >= limit_ms;
	}
	show_progress_end();
	return ended;
}

static void send_kill(const struct ending *e) {
	if (e->pidfd < 0 || syscall(SYS_pidfd_send_signal, e->pidfd, SIGKILL, NULL, 0) < 0)
		(void)kill(e->pid, SIGKILL);
}

int ending_run(struct ending *e, const struct invocation *inv) {
	auto_json json_t *answer = NULL;
	bool forced = inv->is_forced;

	if (e->pid <= 0) {
		admin_complain("what listens on %s does not answer, and which process it is cannot "
			       "be told",
			inv->place.socket);
		return EXIT_FAILURE;
	}
	if (!e->is_answering && !forced) {
		admin_complain("the daemon (process %d) does not answer; --force kills it",
			(int)e->pid);
		return EXIT_FAILURE;
	}
	/* Without an answer it may still have begun to end: the wait tells. */
	if (e->is_answering)
		(void)rpc_call(&e->rpc, WIRE_STOP, json_pack("{sb}", "force", forced),
			ANSWER_LIMIT_MS, &answer);
	if (e->is_answering && wait_for_end(e, forced ? FORCED_END_LIMIT_MS : END_LIMIT_MS))
		return 0;
	if (!forced) {
		admin_complain("the daemon (process %d) was asked to end and is still there; "
			       "--force kills it",
			(int)e->pid);
		return EXIT_FAILURE;
	}
	send_kill(e);
	if (wait_for_end(e, FORCED_END_LIMIT_MS))
		return 0;
	admin_complain("process %d was killed and is still there", (int)e->pid);
	return EXIT_FAILURE;
}

/* SPDX-License-Identifier: MIT */
/*
 * Attaching
 *
 * Connect; when nobody listens, take the start lock and connect again; only when still nobody
 * listens, start a daemon, and hold the lock until it listens. The second attempt is what makes it
 * one daemon: of twenty clients that found none, nineteen find it there, because the twentieth let
 * go of the lock only then. Those who wait for the lock go on trying to connect, so that nobody
 * waits for a client that was stopped while it held the lock.
 *
 * How a client that starts a daemon and a daemon that starts do not wait for each other is told in
 * common/rendezvous.h.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "client/attach.h"

enum {
	START_LIMIT_MS = 10000, /* a daemon listens within milliseconds, before it starts Python */
	MIN_WAIT_MS = 1,
	MAX_WAIT_MS = 20,
	WAIT_SHARE = 8, /* a wait is this part of the time waited so far */
	FINE_MS = 8,
	FINE_STEP_NS = 200000,
};

int64_t attach_now_ms(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void attach_init(struct attach *a, const struct rendezvous *place,
	const struct spawn_options *options) {
	*a = (struct attach){ .place = place, .options = options, .lock = -1, .spawn = SPAWN_NULL };
}

void attach_reset(struct attach *a) {
	spawn_deinit(&a->spawn);
	if (a->lock >= 0)
		close(a->lock);
	attach_init(a, a->place, a->options);
}

/* Ends with a message made of what failed and, when there is one, the daemon's own reason. */
static enum attach_result fail(struct attach *a, char **ret_message, const char *what, int e) {
	auto_free char *reason = a->is_started ? spawn_reason(&a->spawn) : NULL;
	const char *why = reason ? reason : e ? strerror(-e) : NULL;

	if (asprintf(ret_message, "%s%s%s", what, why ? ": " : "", why ? why : "") < 0)
		*ret_message = NULL;
	attach_reset(a);
	return ATTACH_FAILED;
}

/* fail() for what needs the socket's path in its message. */
static enum attach_result fail_at(struct attach *a, char **ret_message, const char *before,
	const char *after, int e) {
	auto_free char *what = NULL;

	if (asprintf(&what, "%s %s%s", before, a->place->socket, after) < 0)
		what = NULL;
	return fail(a, ret_message, what ? what : before, e);
}

/*
 * Often at first, when a daemon is about to listen, and so never late by more than a small part.
 * The first milliseconds of a daemon of our own are worth looking at in finer steps than poll()
 * knows.
 */
static enum attach_result wait_for(struct attach *a) {
	int64_t waited_ms = attach_now_ms() - (a->deadline_ms - START_LIMIT_MS);

	if (a->is_started && waited_ms < FINE_MS) {
		nanosleep(&(struct timespec){ .tv_nsec = FINE_STEP_NS }, NULL);
		a->wait_ms = 0;
		return ATTACH_WAIT;
	}
	a->wait_ms = (int)(waited_ms / WAIT_SHARE);
	if (a->wait_ms < MIN_WAIT_MS)
		a->wait_ms = MIN_WAIT_MS;
	if (a->wait_ms > MAX_WAIT_MS)
		a->wait_ms = MAX_WAIT_MS;
	return ATTACH_WAIT;
}

/* Under the lock, and still nobody listens. */
static int start(struct attach *a) {
	int e = -1;

	if (!a->is_unit_tried && spawn_is_for_unit(a->place, a->options)) {
		a->is_unit_tried = true;
		e = spawn_unit(&a->spawn, a->place, a->options);
	}
	if (e < 0)
		e = spawn_detached(&a->spawn, a->place, a->options);
	a->is_started = e == 0;
	return e;
}

/* Nobody listens; `state` is that of the daemon that we have started, if we have. */
static enum attach_result step_start(struct attach *a, enum spawn_state state, char **ret_message) {
	int e;

	if (!a->options)
		return fail_at(a, ret_message, "no daemon listens on",
			", and starting one was forbidden: start ipython-mcpd, or leave out "
			"--no-spawn",
			0);
	if (a->lock < 0) {
		a->lock = rendezvous_lock_start(a->place);
		if (a->lock == -EAGAIN)
			return wait_for(a);
		if (a->lock < 0)
			return fail_at(a, ret_message,
				"cannot take the lock for starting a daemon beside", "", a->lock);
		a->wait_ms = 0;
		return ATTACH_WAIT; /* and connect again at once */
	}
	if (a->is_started && state == SPAWN_ENDED)
		return fail(a, ret_message, "the IPython daemon ended before it listened", 0);
	if (a->is_started && state != SPAWN_UNIT_FAILED)
		return wait_for(a);

	spawn_deinit(&a->spawn);
	e = start(a);
	if (e < 0)
		return fail(a, ret_message, "cannot start the IPython daemon (ipython-mcpd)", e);
	return wait_for(a);
}

enum attach_result attach_step(struct attach *a, int *ret_fd, char **ret_message) {
	/*
	 * Both are looked at before the attempt: whatever had happened by then, it shows. A daemon
	 * that ends because another one got there first is no failure.
	 */
	enum spawn_state state = a->is_started ? spawn_check(&a->spawn) : SPAWN_RUNNING;
	bool is_late = a->deadline_ms && attach_now_ms() >= a->deadline_ms;
	int fd = rendezvous_connect(a->place);

	if (fd >= 0) {
		attach_reset(a);
		*ret_fd = fd;
		return ATTACH_CONNECTED;
	}
	if (!a->deadline_ms)
		a->deadline_ms = attach_now_ms() + START_LIMIT_MS;
	if (is_late)
		return fail_at(a, ret_message, "no daemon accepted a connection in 10 seconds on",
			"", fd);
	if (fd == -EAGAIN)
		return wait_for(a);
	if (fd == -ENOENT || fd == -ECONNREFUSED)
		return step_start(a, state, ret_message);
	if (fd == -EPERM)
		return fail_at(a, ret_message, "another user listens on",
			" or owns it: choose another place with IPYTHON_MCP_RUNTIME_DIR or "
			"--socket",
			0);
	return fail_at(a, ret_message, "cannot connect to", "", fd);
}

int attach_wait(struct attach *a, char **ret_message) {
	for (;;) {
		int fd = -1;

		switch (attach_step(a, &fd, ret_message)) {
		case ATTACH_CONNECTED:
			return fd;
		case ATTACH_FAILED:
			return -1;
		case ATTACH_WAIT: {
			struct pollfd ended = { .fd = a->spawn.pidfd, .events = POLLIN };

			(void)poll(&ended, 1, a->wait_ms);
		}
		}
	}
}

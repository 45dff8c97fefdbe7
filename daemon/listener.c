/* SPDX-License-Identifier: MIT */
/*
 * Listener
 *
 * Accepts clients, a few on each turn of the loop, and lets in who has our uid. Loop thread.
 *
 * Descriptors may run out: a soft limit of 1,024 is usual, and we may have that many sessions. So
 * the limit is raised by what sessions can need and no more, since children inherit it and some
 * programs walk over all they might have. When the last few are reached, or the kernel has no more,
 * accepting pauses: who connects waits in the backlog, and what is attached goes on, with some
 * descriptors left for its files. It is tried again a few times a second, and said once at either
 * end.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "daemon/endpoint.h"
#include "daemon/fds.h"
#include "daemon/listener.h"
#include "daemon/session.h"

enum {
	ACCEPTS_PER_TURN = 16,
	RESERVE = 16,      /* descriptors that sessions leave to the rest of the event half */
	OWN = 48,          /* what the rest may need */
	RETRY_US = 200000,
};

struct listener {
	struct daemon *daemon;
	struct event *accept, *retry;
	int fd; /* -1 once stopped */
	bool is_inherited;
	bool is_paused;
	bool is_full; /* as many sessions as allowed; said once */
};

/* The highest number a session's descriptor may have; below 0: no limit is known. */
static long limit_fds(void) {
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return -1;
	return (long)limit.rlim_cur - RESERVE;
}

static void raise_limit(size_t max_sessions) {
	rlim_t wanted = max_sessions + OWN;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning("cannot raise the limit of open files to %llu: %s, ignoring",
			(unsigned long long)limit.rlim_cur, strerror(errno));
}

static void listener_pause(struct listener *l, const char *why) {
	static const struct timeval delay = { .tv_usec = RETRY_US };

	event_del(l->accept);
	evtimer_add(l->retry, &delay);
	if (!l->is_paused)
		log_warning("accepting no more sessions for now: %s", why);
	l->is_paused = true;
}

/* Whether a session would leave the reserve alone. */
static bool has_room(const struct listener *l) {
	auto_close int lowest = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
	long limit = limit_fds();

	return lowest >= 0 && (limit < 0 || lowest < limit);
}

static void listener_on_retry(evutil_socket_t fd, short what, void *ctx) {
	struct listener *l = ctx;

	if (!has_room(l)) {
		listener_pause(l, "");
		return;
	}
	log_notice("accepting sessions again");
	l->is_paused = false;
	event_add(l->accept, NULL);
}

static void take_client(struct listener *l, int fd) {
	struct daemon *d = l->daemon;
	pid_t pid = 0;
	uid_t uid = 0;
	int r;

	if (!rendezvous_peer(fd, &pid, &uid) || uid != geteuid()) {
		log_warning("process %d of user %u may not attach, closing it", (int)pid,
			(unsigned)uid);
		close(fd);
		return;
	}
	r = session_new(d, fd);
	if (r == -EUSERS && !l->is_full)
		log_warning("no more than %zu sessions (IPYTHON_MCP_MAX_SESSIONS), refusing others",
			d->settings.max_sessions);
	else if (r < 0 && r != -EUSERS)
		log_warning("a client cannot attach: %s", strerror(-r));
	l->is_full = r == -EUSERS;
}

static void listener_on_accept(evutil_socket_t listening, short what, void *ctx) {
	struct listener *l = ctx;
	long limit = limit_fds();

	for (unsigned n = 0; n < ACCEPTS_PER_TURN; n++) {
		int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0 && errno != EAGAIN)
			listener_pause(l, strerror(errno));
		if (fd < 0)
			return;
		take_client(l, fd);
		if (limit >= 0 && fd >= limit) {
			listener_pause(l, "the limit of open files is near");
			return;
		}
	}
}

/* Begins to listen on `fd`; on failure it is still the caller's. */
static int listener_use(struct listener *l, int fd) {
	int flags = fcntl(fd, F_GETFL);

	/* One that was passed to us may have any flags. */
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_new(-errno);
	l->accept = event_new(l->daemon->base, fd, EV_READ | EV_PERSIST, listener_on_accept, l);
	if (!l->accept || event_add(l->accept, NULL) < 0)
		return err_new(-ENOMEM);
	l->fd = fd;
	fds_add(fd);
	return 0;
}

static void listener_close(struct listener *l) {
	if (l->accept)
		event_free(l->accept);
	l->accept = NULL;
	if (l->fd < 0)
		return;
	fds_remove(l->fd);
	close(l->fd);
	l->fd = -1;
}

int listener_new(struct daemon *d, int fd, bool is_inherited) {
	struct listener *l = calloc(1, sizeof(*l));

	if (!l)
		return err_new(-ENOMEM);
	l->daemon = d;
	l->fd = -1;
	l->is_inherited = is_inherited;
	d->listener = l;
	l->retry = evtimer_new(d->base, listener_on_retry, l);
	if (!l->retry)
		return err_new(-ENOMEM);
	raise_limit(d->settings.max_sessions);
	return listener_use(l, fd);
}

int listener_replace(struct daemon *d, int fd) {
	struct listener *l = d->listener;
	int r;

	listener_close(l);
	event_del(l->retry);
	l->is_paused = false;
	r = listener_use(l, fd);
	if (r < 0)
		close(fd);
	return r;
}

void listener_stop(struct daemon *d) {
	struct listener *l = d->listener;

	if (!l || l->fd < 0)
		return;
	event_del(l->retry);
	listener_close(l);
	if (!l->is_inherited)
		endpoint_remove(&d->rendezvous);
}

struct listener *listener_free(struct listener *l) {
	if (!l)
		return NULL;
	listener_stop(l->daemon);
	listener_close(l);
	if (l->retry)
		event_free(l->retry);
	free(l);
	return NULL;
}

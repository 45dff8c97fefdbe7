/* SPDX-License-Identifier: MIT */
/*
 * Guard
 *
 * A daemon may run for weeks, and somebody may clean its directory meanwhile: a script, a person, a
 * reaper of old files. Then the next client would find nobody and start a second daemon, and the
 * first one's namespace would be out of reach. So the directory is watched, and a socket that
 * vanished is bound again, by the same rules as at the start. When another daemon has been faster,
 * it is the namespace's from now on; we go on for the sessions that are attached to us. Loop
 * thread.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/endpoint.h"
#include "daemon/fds.h"
#include "daemon/guard.h"
#include "daemon/listener.h"

/* Whoever is removing things shall finish first. */
static const struct timeval delay = { .tv_usec = 200000 };

struct guard {
	struct daemon *daemon;
	struct event *event, *timer;
	int fd;
};

static bool watch(struct guard *g) {
	return inotify_add_watch(g->fd, g->daemon->rendezvous.directory,
		       IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR) >= 0;
}

static void guard_on_timer(evutil_socket_t fd, short what, void *ctx) {
	struct guard *g = ctx;
	struct rendezvous *r = &g->daemon->rendezvous;
	auto_free char *message = NULL;
	bool is_inherited;
	struct stat st;
	int listening;

	if (g->daemon->state == DAEMON_STOPPING || lstat(r->socket, &st) == 0)
		return;
	if (mkdir(r->directory, 0700) < 0 && errno != EEXIST)
		log_warning("%s is gone and cannot be made: %m", r->directory);
	else if (endpoint_open(r, &listening, &is_inherited, &message) < 0)
		log_warning("the socket is gone: %s", message ? message : "out of memory");
	else if (listener_replace(g->daemon, listening) >= 0)
		log_notice("%s was removed, listening there again", r->socket);
	watch(g);
}

static void guard_on_change(evutil_socket_t fd, short what, void *ctx) {
	struct guard *g = ctx;
	char events[4096];

	/* What exactly happened does not matter: we look. */
	while (read(g->fd, events, sizeof(events)) > 0)
		;
	evtimer_add(g->timer, &delay);
}

void guard_new(struct daemon *d) {
	struct guard *g = calloc(1, sizeof(*g));

	if (!g)
		return;
	d->guard = g;
	g->daemon = d;
	g->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (g->fd < 0 || !watch(g)) {
		log_debug("cannot watch %s: %m, ignoring", d->rendezvous.directory);
		return;
	}
	fds_add(g->fd);
	g->timer = evtimer_new(d->base, guard_on_timer, g);
	g->event = event_new(d->base, g->fd, EV_READ | EV_PERSIST, guard_on_change, g);
	if (g->timer && g->event)
		event_add(g->event, NULL);
}

struct guard *guard_free(struct guard *g) {
	if (!g)
		return NULL;
	if (g->event)
		event_free(g->event);
	if (g->timer)
		event_free(g->timer);
	if (g->fd >= 0) {
		fds_remove(g->fd);
		close(g->fd);
	}
	free(g);
	return NULL;
}

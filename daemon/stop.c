/* SPDX-License-Identifier: MIT */
/*
 * Stop
 *
 * The orderly end, in stages that are each bounded, so that a stop takes seconds whatever user code
 * does:
 *
 * Grace. Nobody new is let in, streams end, what waits is answered, Python is asked to end after
 * the call that runs. That call has a little time to finish.
 *
 * Ending. It is interrupted, again and again; then Python finalises, which may hang on user
 * threads.
 *
 * Flushing. Python has ended, or was given up: what is queued for the clients is written and the
 * connections are closed, for legacy clients have no other sign. Then the loop is left.
 *
 * A second request, or `ipython-mcp stop --force`, skips the grace. Loop thread.
 */

#include <errno.h>
#include <stdlib.h>

#include "common/err.h"
#include "common/log.h"
#include "daemon/bridge.h"
#include "daemon/callq.h"
#include "daemon/lifecycle.h"
#include "daemon/listener.h"
#include "daemon/notify.h"
#include "daemon/session.h"
#include "daemon/stop.h"

enum {
	GRACE_S = 2,
	INTERRUPT_MS = 500,
	N_INTERRUPTS = 6, /* then Python is given up */
	FLUSH_S = 2,
};

enum stage { STAGE_NONE, STAGE_GRACE, STAGE_ENDING, STAGE_FLUSHING };

struct stop {
	struct daemon *daemon;
	struct event *timer;
	enum stage stage;
	unsigned n_interrupts;
	bool has_ended_python;
};

static void stop_after(struct stop *s, long ms) {
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	evtimer_add(s->timer, &delay);
}

static void stop_flush(struct stop *s) {
	s->stage = STAGE_FLUSHING;
	for (struct session *session = session_first(s->daemon); session; session = session->next)
		session_close(session, true);
	stop_after(s, FLUSH_S * 1000);
	if (!session_first(s->daemon))
		event_base_loopbreak(s->daemon->base);
}

void stop_on_sessions_gone(struct daemon *d) {
	if (d->stop->stage == STAGE_FLUSHING)
		event_base_loopbreak(d->base);
}

static void stop_on_python_end(struct daemon *d) {
	d->stop->has_ended_python = true;
	stop_flush(d->stop);
}

static void stop_interrupt(struct stop *s) {
	s->stage = STAGE_ENDING;
	if (s->n_interrupts++ < N_INTERRUPTS) {
		callq_interrupt(s->daemon);
		stop_after(s, INTERRUPT_MS);
		return;
	}
	log_warning("Python does not end, leaving it");
	stop_flush(s);
}

static void stop_on_timer(evutil_socket_t fd, short what, void *ctx) {
	struct stop *s = ctx;

	if (s->stage == STAGE_FLUSHING)
		event_base_loopbreak(s->daemon->base);
	else
		stop_interrupt(s);
}

static void stop_begin(struct stop *s) {
	struct daemon *d = s->daemon;
	struct callq_status q;

	d->state = DAEMON_STOPPING;
	s->stage = STAGE_GRACE;
	callq_status(d, &q);
	stop_after(s, q.is_running ? GRACE_S * 1000 : 0);
	lifecycle_stopping(d);
	listener_stop(d);
	for (struct session *session = session_first(d); session; session = session->next)
		notify_end_streams(session, "the daemon stops");
	callq_on_state(d);
	bridge_stop(d, stop_on_python_end);
}

void daemon_stop(struct daemon *d, bool force) {
	struct stop *s = d->stop;

	if (s->stage == STAGE_NONE)
		stop_begin(s);
	if (force && s->stage == STAGE_GRACE)
		stop_interrupt(s);
}

bool stop_has_ended_python(const struct daemon *d) {
	return d->stop->has_ended_python;
}

int stop_new(struct daemon *d) {
	struct stop *s = calloc(1, sizeof(*s));

	if (!s)
		return err_new(-ENOMEM);
	d->stop = s;
	s->daemon = d;
	s->timer = evtimer_new(d->base, stop_on_timer, s);
	return s->timer ? 0 : err_new(-ENOMEM);
}

struct stop *stop_free(struct stop *s) {
	if (!s)
		return NULL;
	if (s->timer)
		event_free(s->timer);
	free(s);
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * What Time Does to Calls
 *
 * One timer serves the whole queue. While a call runs it ticks every 100 ms, because user code may
 * replace signal handlers and ours have to be put back; otherwise it is set for whatever comes
 * first: a deadline, a progress message, the end of somebody's patience. It is not stopped when a
 * call ends: calls that take microseconds should not pay for timers.
 *
 * A deadline's schedule. At the deadline the call is interrupted. What ends by then, or within a
 * second, is answered by the Python half as a timeout. Just before the second has passed, children
 * that ignored SIGINT are killed (the second interrupt, which leaves the cell itself alone: it may
 * be tidying up), and if even that did not end the call it is answered as still running. Then it is
 * interrupted again at doubling intervals.
 *
 * A person's interrupt is sent once: code may have good use for one KeyboardInterrupt, and the
 * person can ask again.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "common/cleanup.h"
#include "daemon/bridge.h"
#include "daemon/call.h"
#include "daemon/lifecycle.h"

#define TICK_S           0.1
#define RETRY_S          0.01
#define AGAIN_S          0.85 /* from the first interrupt to the second */
#define OVERDUE_S        0.97 /* from the deadline to the answer that it still runs */
#define LATER_S          4.0  /* from the second to the third, doubling */
#define MAX_LATER_S      60.0
#define PROGRESS_S       5.0
#define LEAST_PROGRESS_S 0.1
#define FOREVER_S        1e9 /* longer limits mean the same and would not fit a timer */

double callq_now(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double least(double a, double b) {
	return a < b ? a : b;
}

static double greatest(double a, double b) {
	return a > b ? a : b;
}

/* Reads an argument of seconds: a number, or one in a string. Absent: *ret_seconds stays. */
static bool read_seconds(struct jspan arguments, const char *name, double *ret_seconds,
	char **ret_message) {
	struct jspan value = jscan_get(arguments, name);
	auto_free char *text = NULL;
	json_t *number;
	double s;

	if (!value.at)
		return true;
	/* Agents put numbers into strings. */
	if (jspan_is_string(value))
		text = jspan_decode(value, NULL);
	if (text)
		value = (struct jspan){ text, strlen(text) };
	number = json_loadb(value.at, value.len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
	s = json_is_real(number) ? json_real_value(number) : -1;
	json_decref(number);
	if (!(s >= 0)) {
		*ret_message =
			answer_message("`%s` has to be a number of seconds, 0 or more", name);
		return false;
	}
	*ret_seconds = least(s, FOREVER_S);
	return true;
}

bool callclock_read(const struct settings *settings, struct call *c, struct jspan arguments,
	char **ret_message) {
	double timeout = 0, progress = PROGRESS_S;

	if (c->tool.stable && c->tool.stable->has_timeout &&
		(!read_seconds(arguments, "timeout", &timeout, ret_message) ||
			!read_seconds(arguments, "progress_interval", &progress, ret_message)))
		return false;
	if (timeout > 0 && settings->max_execution_timeout_s > 0)
		timeout = least(timeout, settings->max_execution_timeout_s);
	c->timeout_s = timeout > 0 ? timeout : settings->execution_timeout_s;
	c->progress_s = progress > 0 ? greatest(progress, LEAST_PROGRESS_S) : 0;
	return true;
}

/* When a waiting call has waited enough. */
static double wait_end(const struct callq *q, const struct call *c) {
	double most = q->daemon->settings.max_wait_s, limit = c->timeout_s;

	/* A start may take minutes and is nobody's call: only the call's own limit counts. */
	if (q->daemon->state != DAEMON_STARTING && most > 0)
		limit = limit > 0 ? least(limit, most) : most;
	return limit > 0 ? c->waits_since + limit : 0;
}

static void keep_earlier(double *due, double candidate) {
	if (candidate > 0 && (*due <= 0 || candidate < *due))
		*due = candidate;
}

/* When a call needs attention next, besides the tick. */
static double call_due(const struct callq *q, const struct call *c) {
	double due = c->progress_due;

	if (c == q->running) {
		keep_earlier(&due, c->deadline);
		keep_earlier(&due, c->interrupt_due);
		keep_earlier(&due, c->overdue_at);
	} else {
		keep_earlier(&due, wait_end(q, c));
	}
	return due;
}

void callclock_expect(struct callq *q, double due) {
	double wait = greatest(due - callq_now(), 0);
	struct timeval t = { .tv_sec = (time_t)wait };

	if (due <= 0 || (q->tick_due > 0 && q->tick_due <= due))
		return;
	q->tick_due = due;
	t.tv_usec = (suseconds_t)((wait - (double)t.tv_sec) * 1e6) + 1;
	evtimer_add(q->tick, &t);
}

void callclock_watch(struct callq *q, const struct call *c) {
	if (c == q->running)
		callclock_expect(q, callq_now() + TICK_S);
	callclock_expect(q, call_due(q, c));
}

void callclock_watch_all(struct callq *q) {
	double due = 0;

	if (q->running)
		callclock_watch(q, q->running);
	for (struct line *l = q->turns; l; l = l->next) {
		if (l->first)
			keep_earlier(&due, l->drop_at);
		for (struct call *c = l->first; c; c = c->next)
			keep_earlier(&due, call_due(q, c));
	}
	for (struct held *h = q->held; h; h = h->next)
		keep_earlier(&due, h->send_at);
	callclock_expect(q, due);
}

void callclock_interrupt(struct callq *q, enum shell_reason reason) {
	struct call *c = q->running;
	double wait = LATER_S;

	if (reason != c->reason)
		c->again = 0;
	c->reason = reason;
	if (!bridge_interrupt(q->daemon, c->id, reason, c->again)) {
		/* Python has not quite begun the call, or its reply is on the way. */
		c->interrupt_due = callq_now() + RETRY_S;
	} else {
		for (unsigned i = 1; i < c->again && wait < MAX_LATER_S; i++)
			wait *= 2;
		if (!c->again++)
			wait = AGAIN_S;
		c->interrupt_due =
			reason == SHELL_OPERATOR ? 0 : callq_now() + least(wait, MAX_LATER_S);
		c->n_interrupts++;
	}
	callclock_watch(q, c);
}

static void send_progress(struct callq *q, struct call *c, double now) {
	auto_buf struct buf message = BUF_NULL;
	double value = now - c->asked_at;

	/* It has to rise, and is written with three decimals. */
	if (value < c->last_progress + 0.001)
		value = c->last_progress + 0.001;
	callwords_progress(q, c, now, &message);
	if (!message.has_failed)
		protocol_progress(q->daemon, &c->to, c->token, value, message.data, message.len);
	c->last_progress = value;
	c->progress_due = now + c->progress_s;
}

static bool is_due(double time, double now) {
	return time > 0 && time <= now;
}

static void tick_running(struct callq *q, double now) {
	struct call *c = q->running;

	lifecycle_rearm_signals(q->daemon);
	if (is_due(c->deadline, now)) {
		c->overdue_at = c->deadline + OVERDUE_S;
		c->deadline = 0;
		if (!c->is_cancelled)
			callclock_interrupt(q, SHELL_TIMEOUT);
	} else if (is_due(c->interrupt_due, now)) {
		callclock_interrupt(q, c->reason);
	}
	if (is_due(c->overdue_at, now)) {
		c->overdue_at = 0;
		if (!c->is_cancelled)
			callrun_answer_overdue(q, c);
	}
	if (is_due(c->progress_due, now))
		send_progress(q, c, now);
}

static void tick_line(struct callq *q, struct line *l, double now) {
	struct call **at = &l->first;

	while (*at) {
		struct call *c = *at;

		if (is_due(l->drop_at, now)) {
			/* Nobody is there to be answered. */
			callrun_refuse(q, callq_unlink(q, l, at), "busy", true, NULL);
		} else if (is_due(wait_end(q, c), now)) {
			char *message = callwords_busy(q, c, now);

			callrun_refuse(q, callq_unlink(q, l, at), "busy", true, message);
		} else {
			if (is_due(c->progress_due, now))
				send_progress(q, c, now);
			at = &c->next;
		}
	}
}

void callclock_on_tick(evutil_socket_t fd, short what, void *arg) {
	struct callq *q = arg;
	double now = callq_now();

	q->tick_due = 0;
	if (q->running)
		tick_running(q, now);
	for (struct line *l = q->turns; l; l = l->next)
		tick_line(q, l, now);
	for (struct held **at = &q->held; *at;)
		if (is_due((*at)->send_at, now))
			callrun_release(q, at);
		else
			at = &(*at)->next;
	/* Drops the lines that are empty now, too. */
	callq_run_next(q);
	callclock_watch_all(q);
}

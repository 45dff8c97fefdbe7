/* SPDX-License-Identifier: MIT */
/*
 * Call Queue
 *
 * Calls that wait for Python. Each session has a line of its own and sessions take turns, so one
 * client's batch cannot starve another's question. A call leaves here in one of three ways: it is
 * handed over, cancelled, or past its deadline. Once handed over its arguments are no longer ours;
 * the call itself stays with us as `running` until its reply comes, however long that takes and
 * whether or not anybody still waits for the answer: the work belongs to the namespace.
 *
 * Loop thread only. Hand-over and answers are callrun.c's, times callclock.c's, texts
 * callwords.c's.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/call.h"
#include "daemon/tools.h"

#define GRACE_S 1.0 /* for what a session that goes away still has waiting */

struct callq *callq_new(struct daemon *d) {
	struct callq *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->daemon = d;
	q->turns_end = &q->turns;
	q->tick = evtimer_new(d->base, callclock_on_tick, q);
	return q->tick ? q : callq_free(q);
}

struct call *call_free(struct call *c) {
	if (!c)
		return NULL;
	reply_to_deinit(&c->to);
	free(c->name);
	free(c->cwd);
	free(c->arguments);
	free(c->token);
	free(c->cancelled_id);
	free(c);
	return NULL;
}

static struct line *line_free(struct line *l) {
	while (l->first) {
		struct call *next = l->first->next;

		call_free(l->first);
		l->first = next;
	}
	free(l);
	return NULL;
}

struct callq *callq_free(struct callq *q) {
	if (!q)
		return NULL;
	/* Lines without calls belong to sessions, which are freed before. */
	while (q->turns) {
		struct line *next = q->turns->next;

		line_free(q->turns);
		q->turns = next;
	}
	while (q->held) {
		struct held *next = q->held->next;

		reply_to_deinit(&q->held->to);
		buf_deinit(&q->held->members);
		free(q->held);
		q->held = next;
	}
	call_free(q->running);
	if (q->tick)
		event_free(q->tick);
	free(q);
	return NULL;
}

/*
 * Lines and turns.
 */

static struct line *line_of(struct callq *q, struct session *s) {
	struct line *l = s->callq_slot;

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->session = s->id;
	l->last = &l->first;
	/* What ran before a session's first call is not news to it. */
	s->cells_seen = q->n_cells;
	s->own_cells = 0;
	s->callq_slot = l;
	return l;
}

static void line_append(struct callq *q, struct line *l, struct call *c) {
	*l->last = c;
	l->last = &c->next;
	l->n_calls++;
	q->n_waiting++;
	if (l->is_in_turns)
		return;
	l->is_in_turns = true;
	l->next = NULL;
	*q->turns_end = l;
	q->turns_end = &l->next;
}

struct call *callq_unlink(struct callq *q, struct line *line, struct call **at) {
	struct call *c = *at;

	*at = c->next;
	if (line->last == &c->next)
		line->last = at;
	c->next = NULL;
	line->n_calls--;
	q->n_waiting--;
	return c;
}

/* The call whose turn it is. Its line goes to the end; lines that turn out empty leave. */
static struct call *take_turn(struct callq *q) {
	while (q->turns) {
		struct line *l = q->turns;
		struct call *c = l->first ? callq_unlink(q, l, &l->first) : NULL;

		q->turns = l->next;
		if (!q->turns)
			q->turns_end = &q->turns;
		l->next = NULL;
		l->is_in_turns = l->first != NULL;
		if (l->is_in_turns) {
			*q->turns_end = l;
			q->turns_end = &l->next;
		} else if (l->drop_at > 0) {
			line_free(l);
		}
		if (c)
			return c;
	}
	return NULL;
}

void callq_run_next(struct callq *q) {
	struct call *c;

	while (!q->running && q->daemon->state == DAEMON_READY && (c = take_turn(q)))
		callrun_start(q, c);
}

/*
 * Coming and going.
 */

/*
 * The name that an error's shape repeats; NULL when there is none, or one too long to be repeated.
 */
static char *subject(struct callq *q, const struct tool_ref *tool, struct jspan arguments) {
	struct jspan name;

	if (!tool->stable)
		return strdup(tool->name);
	name = tool->stable->keeps_output ? JSPAN_NULL : jscan_get(arguments, "name");
	return name.len <= q->daemon->settings.max_text_chars ? jspan_decode(name, NULL) : NULL;
}

static struct call *call_new(struct callq *q, struct session *s, const struct tool_ref *tool,
	struct jspan arguments, struct jspan token) {
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->id = ++q->last_id;
	c->session = s->id;
	c->tool = *tool;
	c->profile = s->profile;
	c->asked_at = c->waits_since = callq_now();
	c->arguments = arguments.at ? jspan_copy(arguments) : strdup("{}");
	c->token = jspan_copy(token);
	c->name = subject(q, tool, arguments);
	if (!c->arguments || (token.at && !c->token))
		return call_free(c);
	c->arguments_len = arguments.at ? arguments.len : 2;
	return c;
}

void callq_submit(struct daemon *d, struct session *s, struct reply_to *to,
	const struct tool_ref *tool, struct jspan arguments, struct jspan progress_token) {
	struct callq *q = d->callq;
	struct line *l = line_of(q, s);
	struct call *c = l ? call_new(q, s, tool, arguments, progress_token) : NULL;
	char *message;

	if (!c) {
		protocol_error(d, to, RPC_INTERNAL_ERROR, NULL, "Internal error: out of memory");
		return;
	}
	c->to = *to;
	*to = (struct reply_to)REPLY_TO_NULL;

	if (!callclock_read(&d->settings, c, arguments, &message)) {
		callrun_refuse(q, c, "invalid_arguments", false, message);
		return;
	}
	if (d->state == DAEMON_FAILED) {
		callrun_refuse(q, c, "startup_failed", false, callwords_startup_failed(d));
		return;
	}
	if (d->state == DAEMON_STOPPING) {
		callrun_refuse(q, c, "busy", true, callwords_busy(q, c, c->asked_at));
		return;
	}
	if (l->n_calls >= d->settings.max_pending_calls) {
		callrun_refuse(q, c, "queue_full", true,
			answer_message("This session has as many calls waiting as "
				       "IPYTHON_MCP_MAX_PENDING_CALLS allows (%zu); wait for "
				       "their answers.",
				l->n_calls));
		return;
	}
	if (c->token && c->progress_s > 0)
		c->progress_due = c->asked_at + c->progress_s;
	line_append(q, l, c);
	callclock_watch(q, c);
	callq_run_next(q);
}

static bool has_id(const struct reply_to *to, const struct session *s, const char *id) {
	return to->id && to->session == s->id && !strcmp(to->id, id);
}

/* The link that leads to the waiting call of that id; NULL when there is none. */
static struct call **find_waiting(struct line *l, const struct session *s, const char *id) {
	for (struct call **at = l ? &l->first : NULL; at && *at; at = &(*at)->next)
		if (has_id(&(*at)->to, s, id))
			return at;
	return NULL;
}

static struct held **find_held(struct callq *q, const struct session *s, const char *id) {
	for (struct held **at = &q->held; *at; at = &(*at)->next)
		if (has_id(&(*at)->to, s, id))
			return at;
	return NULL;
}

bool callq_has(struct session *s, const char *id) {
	struct callq *q = s->daemon->callq;
	const struct call *r = q->running;

	if (r && r->session == s->id && r->cancelled_id && !strcmp(r->cancelled_id, id))
		return true;
	return (r && has_id(&r->to, s, id)) || find_waiting(s->callq_slot, s, id) ||
	       find_held(q, s, id);
}

void callq_cancel(struct session *s, const char *id) {
	struct daemon *d = s->daemon;
	struct callq *q = d->callq;
	struct call **waiting = find_waiting(s->callq_slot, s, id), *r = q->running;
	struct held **held = find_held(q, s, id);

	if (waiting) {
		struct call *c = callq_unlink(q, s->callq_slot, waiting);

		protocol_drop(d, &c->to);
		callrun_log(c, "cancelled before its turn");
		call_free(c);
	} else if (held) {
		struct held *h = *held;

		*held = h->next;
		protocol_drop(d, &h->to);
		buf_deinit(&h->members);
		free(h);
	} else if (r && has_id(&r->to, s, id)) {
		r->cancelled_id = strdup(id);
		r->is_cancelled = true;
		r->progress_due = 0;
		protocol_drop(d, &r->to);
		callclock_interrupt(q, SHELL_CANCELLED);
	}
}

void callq_session_gone(struct session *s) {
	struct callq *q = s->daemon->callq;
	struct line *l = s->callq_slot;

	if (!l)
		return;
	s->callq_slot = NULL;
	if (!l->is_in_turns) {
		line_free(l);
		return;
	}
	/* Their turn may come when the session is no longer there to be asked. */
	for (struct call *c = l->first; c && s->cwd; c = c->next)
		c->cwd = strdup(s->cwd);
	l->drop_at = callq_now() + GRACE_S;
	callclock_expect(q, l->drop_at);
}

void callq_on_state(struct daemon *d) {
	struct callq *q = d->callq;
	double now = callq_now();

	for (struct line *l = q->turns; l; l = l->next) {
		for (struct call *c = l->first; c; c = c->next)
			c->waits_since = now;
		while (l->first && d->state == DAEMON_FAILED)
			callrun_refuse(q, callq_unlink(q, l, &l->first), "startup_failed", false,
				callwords_startup_failed(d));
		while (l->first && d->state == DAEMON_STOPPING) {
			char *message = callwords_busy(q, l->first, now);

			callrun_refuse(q, callq_unlink(q, l, &l->first), "busy", true, message);
		}
	}
	callq_run_next(q);
	callclock_watch_all(q);
}

bool callq_interrupt(struct daemon *d) {
	struct callq *q = d->callq;

	if (!q->running)
		return false;
	callclock_interrupt(q, SHELL_OPERATOR);
	return true;
}

void callq_status(struct daemon *d, struct callq_status *ret) {
	const struct callq *q = d->callq;
	const struct call *r = q->running;

	*ret = (struct callq_status){ .n_waiting = q->n_waiting, .n_calls = q->n_ended };
	if (!r)
		return;
	ret->is_running = true;
	ret->tool = r->tool.name;
	ret->session = r->session;
	ret->running_s = callq_now() - r->started_at;
	ret->is_overdue = r->is_overdue;
	ret->n_interrupts = r->n_interrupts;
}

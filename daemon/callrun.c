/* SPDX-License-Identifier: MIT */
/*
 * A Call That Runs, and Answers
 *
 * From hand-over to answer: what crosses the border, what comes back, what it leaves for its
 * session, and how the answer is sent. From admission on a call is answered with a tool result,
 * never with a JSON-RPC error: one agent answers an error by starting the server again and
 * repeating the call.
 *
 * An answer may be held: after a call that changed the list of tools, until the session has listed
 * again, so that its client's very next request knows the tool.
 *
 * Loop thread only.
 */

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/bridge.h"
#include "daemon/call.h"
#include "daemon/lifecycle.h"
#include "daemon/notify.h"
#include "daemon/render.h"
#include "daemon/tools.h"

#define HOLD_S 0.25 /* for a session to list its tools again */

static bool keeps_output(const struct call *c) {
	return c->tool.stable && c->tool.stable->keeps_output;
}

/* Writes the answer of a call for its session. */
static void write_answer(struct callq *q, struct call *c, struct answer *a, struct output_text *out,
	struct output_text *err, struct buf *members) {
	struct session *s = session_find(q->daemon, c->session);
	auto_free char *notice = s ? callwords_notice(q, s, a ? a->notice : NULL) : NULL;
	struct render r = {
		.settings = &q->daemon->settings,
		.tool = c->tool.stable,
		.name = c->name,
		.profile = c->profile,
		.revision = c->to.revision,
		.answer = a,
		.notice = notice,
		.reads_json = s && s->reads_json,
	};

	if (keeps_output(c)) {
		r.out = out;
		r.err = err;
	}
	render_answer(&r, members);
}

void callrun_log(const struct call *c, const char *outcome) {
	double now = callq_now(), since = c->started_at > 0 ? c->started_at : c->asked_at;

	/* A registered tool's name is a name from the namespace. */
	log_info("session %llu: %s %s, %llu ms", (unsigned long long)c->session,
		c->tool.stable ? c->tool.name : "registered tool", outcome,
		(unsigned long long)((now - since) * 1000));
}

/* Answers with an error in the tool's own shape. Streams are emptied. */
static void answer_error(struct callq *q, struct call *c, struct answer_error *error,
	struct output_text *out, struct output_text *err) {
	struct answer *a = tools_error_answer(c->tool.stable, c->name, c->profile, error);
	struct buf members = BUF_NULL;

	write_answer(q, c, a, out, err, &members);
	protocol_result(q->daemon, &c->to, &members);
	callrun_log(c, error->code);
	answer_free(a);
	output_text_deinit(out);
	output_text_deinit(err);
}

void callrun_refuse(struct callq *q, struct call *c, const char *code, bool is_retryable,
	char *message) {
	auto_answer_error struct answer_error error = { .code = code, .message = message,
		.is_retryable = is_retryable };
	struct output_text out = { 0 }, err = { 0 };

	answer_error(q, c, &error, &out, &err);
	call_free(c);
}

void callrun_answer_overdue(struct callq *q, struct call *c) {
	auto_answer_error struct answer_error error = { .code = "timeout" };
	struct output_text out = { 0 }, err = { 0 };

	error.message = callwords_overdue(q, c);
	if (keeps_output(c))
		output_snapshot(q->daemon, &out, &err);
	c->is_overdue = true;
	c->progress_due = 0;
	answer_error(q, c, &error, &out, &err);
	lifecycle_update(q->daemon);
}

/* The answer of a call that changed the catalog, until its session has seen the change. */
static bool hold(struct callq *q, struct call *c, struct buf *members) {
	struct session *s = session_find(q->daemon, c->session);
	struct held *h;

	if (!c->tool.stable || !c->tool.stable->holds_for_list || !s || !notify_awaits_list(s) ||
		catalog_revision(q->daemon) == c->catalog_revision)
		return false;
	h = calloc(1, sizeof(*h));
	if (!h)
		return false;
	h->to = c->to;
	c->to = (struct reply_to)REPLY_TO_NULL;
	h->members = *members;
	h->send_at = callq_now() + HOLD_S;
	h->next = q->held;
	q->held = h;
	callclock_expect(q, h->send_at);
	return true;
}

void callrun_release(struct callq *q, struct held **at) {
	struct held *h = *at;

	*at = h->next;
	protocol_result(q->daemon, &h->to, &h->members);
	free(h);
}

void callq_on_list(struct session *s) {
	struct callq *q = s->daemon->callq;

	for (struct held **at = &q->held; *at;)
		if ((*at)->to.session == s->id)
			callrun_release(q, at);
		else
			at = &(*at)->next;
}

/*
 * Running one.
 */

/* What crosses the border; NULL when memory is short, and the call is as it was. */
static struct shell_call *make_shell_call(struct callq *q, struct call *c) {
	struct session *s = session_find(q->daemon, c->session);
	const char *cwd = s ? s->cwd : c->cwd;
	struct shell_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->tool = strdup(c->tool.name);
	call->cwd = cwd ? strdup(cwd) : NULL;
	if (!call->tool || (cwd && !call->cwd)) {
		shell_call_free(call);
		return NULL;
	}
	call->id = c->id;
	call->session = c->session;
	call->profile = c->profile;
	call->timeout_s = c->timeout_s;
	call->arguments = take(c->arguments);
	call->arguments_len = c->arguments_len;
	return call;
}

void callrun_start(struct callq *q, struct call *c) {
	struct shell_call *call = make_shell_call(q, c);

	if (!call) {
		callrun_refuse(q, c, "busy", true,
			answer_message("Memory is short; the call did not run."));
		return;
	}
	c->started_at = callq_now();
	if (c->timeout_s > 0)
		c->deadline = c->started_at + c->timeout_s;
	c->catalog_revision = catalog_revision(q->daemon);
	q->running = c;
	lifecycle_rearm_signals(q->daemon);
	output_begin(q->daemon, c->session, keeps_output(c));
	bridge_submit(q->daemon, call);
	lifecycle_update(q->daemon);
	callclock_watch(q, c);
}

/* Says on the call's stderr what the Python half has to say about the directory. */
static void add_note(struct output_text *err, const char *note) {
	struct buf head = BUF_NULL;

	buf_addf(&head, "%s\n", note);
	buf_add(&head, err->head.data, err->head.len);
	buf_deinit(&err->head);
	err->head = head;
}

/* The cell ran, unless it was blank. */
static bool is_cell(const struct call *c, const struct answer *a) {
	if (!keeps_output(c) || !a)
		return false;
	for (size_t i = 0; i < a->n_members; i++)
		if (!strcmp(a->members[i].name, "execution_count"))
			return a->members[i].json.len != 4 ||
			       memcmp(a->members[i].json.data, "null", 4);
	return false;
}

/* What the call leaves behind for its session. */
static void update_session(struct callq *q, const struct call *c, struct shell_reply *reply) {
	struct session *s = session_find(q->daemon, c->session);
	bool has_run = is_cell(c, reply->answer);

	q->n_cells += has_run;
	if (!s)
		return;
	s->own_cells += has_run;
	if (reply->cwd) {
		free(s->cwd);
		s->cwd = take(reply->cwd);
	}
}

void callq_on_reply(struct daemon *d, struct shell_reply *reply) {
	struct callq *q = d->callq;
	struct call *c = q->running;
	struct output_text out, err;
	struct buf members = BUF_NULL;

	output_end(d, &out, &err);
	q->running = NULL;
	q->n_ended++;
	lifecycle_rearm_signals(d);
	update_session(q, c, reply);
	if (reply->cwd_note && keeps_output(c))
		add_note(&err, reply->cwd_note);
	if (c->to.id) {
		write_answer(q, c, reply->answer, &out, &err, &members);
		if (!hold(q, c, &members))
			protocol_result(d, &c->to, &members);
	}
	callrun_log(c, c->is_overdue         ? "ended after its deadline"
		       : c->is_cancelled     ? "cancelled"
		       : !reply->answer      ? "failed"
		       : reply->answer->is_error ? "error"
						 : "ok");
	output_text_deinit(&out);
	output_text_deinit(&err);
	shell_reply_free(reply);
	call_free(c);

	callq_run_next(q);
	if (!q->running)
		lifecycle_update(d);
}

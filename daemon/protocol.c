/* SPDX-License-Identifier: MIT */
/*
 * JSON-RPC
 *
 * The envelope: what a line is, which era and method it belongs to, how an answer is wrapped. Lines
 * come from session.c, answers leave through session_send(); methods are rows in era-legacy.c,
 * era-modern.c and admin.c. Loop thread.
 *
 * No tree is built of a message: it is checked once (jscan.c), and whoever needs a member takes its
 * span. So ids, tokens and arguments keep their exact spelling, numbers of any size included.
 *
 * A request lives in a struct reply_to from here to its one answer; a reply_to that is never
 * answered would leave a client waiting, so every path ends in protocol_result(), protocol_error()
 * or protocol_drop(). Requests know their session by number: it may be gone by then.
 */

#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wire.h"
#include "daemon/attach.h"
#include "daemon/batch.h"
#include "daemon/callq.h"
#include "daemon/era.h"
#include "daemon/protocol.h"

enum { MAX_ID = 1024 };

/* --- Answers --- */

/* Sends a finished answer (NULL: there is none), or gives it to the batch. Ends the request. */
static void reply_end(struct daemon *d, struct reply_to *to, struct buf *answer) {
	struct session *s = session_find(d, to->session);

	if (to->batch)
		batch_settle(to->batch, answer);
	else if (s && answer)
		session_send(s, answer);
	if (s)
		session_end_request(s);
	to->batch = NULL;
	reply_to_deinit(to);
}

void reply_to_deinit(struct reply_to *to) {
	if (to->batch)
		batch_settle(to->batch, NULL);
	free(to->id);
	*to = (struct reply_to)REPLY_TO_NULL;
}

void protocol_result(struct daemon *d, struct reply_to *to, struct buf *members) {
	const struct revision *revision = to->revision;
	auto_buf struct buf answer = BUF_NULL;

	if (members->has_failed) {
		buf_deinit(members);
		protocol_error(d, to, RPC_INTERNAL_ERROR, NULL, "Internal error: out of memory");
		return;
	}
	buf_addf(&answer, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s", to->id,
		revision->result_opening);
	if (*revision->result_opening && members->len)
		buf_add_char(&answer, ',');
	buf_add(&answer, members->data, members->len);
	buf_deinit(members);
	buf_add_str(&answer, revision->result_closing);
	buf_add_str(&answer, "}}");
	reply_end(d, to, &answer);
}

__attribute__((format(printf, 5, 0))) static void error_write(struct buf *b, const char *id,
	int code, const char *data, const char *format, va_list args) {
	char message[1024];

	vsnprintf(message, sizeof(message), format, args);
	buf_add_str(b, "{\"jsonrpc\":\"2.0\"");
	if (id)
		buf_addf(b, ",\"id\":%s", id);
	buf_addf(b, ",\"error\":{\"code\":%d,\"message\":", code);
	buf_add_json_string(b, message, strlen(message));
	if (data)
		buf_addf(b, ",\"data\":%s", data);
	buf_add_str(b, "}}");
}

void protocol_error(struct daemon *d, struct reply_to *to, int code, const char *data,
	const char *format, ...) {
	auto_buf struct buf answer = BUF_NULL;
	va_list args;

	va_start(args, format);
	error_write(&answer, to->id, code, data, format, args);
	va_end(args);
	reply_end(d, to, &answer);
}

void protocol_drop(struct daemon *d, struct reply_to *to) {
	reply_end(d, to, NULL);
}

void protocol_refuse(struct session *s, struct batch *batch, struct jspan id, int code,
	const char *format, ...) {
	auto_free char *token = protocol_id(id);
	auto_buf struct buf answer = BUF_NULL;
	va_list args;

	va_start(args, format);
	error_write(&answer, token, code, NULL, format, args);
	va_end(args);
	if (batch) {
		batch_expect(batch);
		batch_settle(batch, &answer);
	} else {
		session_send(s, &answer);
	}
}

void protocol_notify(struct session *s, const char *method, const char *params) {
	auto_buf struct buf line = BUF_NULL;

	buf_addf(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"", method);
	if (params)
		buf_addf(&line, ",\"params\":%s", params);
	buf_add_char(&line, '}');
	session_send(s, &line);
}

void protocol_progress(struct daemon *d, const struct reply_to *to, const char *token,
	double progress, const char *message, size_t message_len) {
	struct session *s = session_find(d, to->session);
	auto_buf struct buf line = BUF_NULL;

	if (!s || session_is_congested(s))
		return;
	buf_addf(&line,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
		"{\"progressToken\":%s,\"progress\":",
		token);
	buf_add_number(&line, progress);
	if (message && to->revision->has_progress_message) {
		buf_add_str(&line, ",\"message\":");
		buf_add_json_string(&line, message, message_len);
	}
	buf_add_str(&line, "}}");
	session_send(s, &line);
}

/* --- Ids --- */

char *protocol_id(struct jspan token) {
	auto_buf struct buf b = BUF_NULL;
	auto_free char *text = NULL;
	size_t len;

	if (token.len > MAX_ID)
		return NULL;
	if (jspan_is_integer(token)) {
		/* Out of a line that is no JSON it may be none, such as 007. */
		text = jspan_copy(token);
		return text && jscan_check(text, token.len, 1, NULL) == JSCAN_OK ? take(text)
										 : NULL;
	}
	if (!jspan_is_string(token))
		return NULL;
	text = jspan_decode(token, &len);
	if (!text)
		return NULL;
	buf_add_json_string(&b, text, len);
	return buf_take(&b, NULL);
}

static struct listen **find_listen(struct session *s, const char *id) {
	struct listen **at = &s->listens;

	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	return at;
}

static void listen_free(struct session *s, struct listen **at) {
	struct listen *l = *at;

	*at = l->next;
	s->n_listens--;
	free(l->id);
	free(l);
}

void protocol_session_gone(struct session *s) {
	while (s->listens)
		listen_free(s, &s->listens);
}

/* --- Notifications: they belong to no era and are never answered --- */

static void on_initialized(struct session *s, struct jspan params) {
	if (s->legacy_revision)
		s->is_initialized = true;
}

static void on_cancelled(struct session *s, struct jspan params) {
	auto_free char *id = protocol_id(jscan_get(params, "requestId"));
	struct listen **at;

	/* Routine: some clients send one for each finished call. */
	if (!id)
		return;
	at = find_listen(s, id);
	if (*at)
		listen_free(s, at);
	else
		callq_cancel(s, id);
}

static const struct {
	const char *name;
	void (*run)(struct session *s, struct jspan params);
} notifications[] = {
	{ "notifications/initialized", on_initialized },
	{ "notifications/cancelled", on_cancelled },
	{ WIRE_ATTACH, attach_on_line },
};

static void notification(struct session *s, struct jspan method, struct jspan params) {
	for (size_t i = 0; i < ARRAY_LEN(notifications); i++)
		if (jspan_equals(method, notifications[i].name))
			notifications[i].run(s, params);
}

/* --- Requests --- */

const struct method *era_find_method(const struct era *era, struct jspan name) {
	for (const struct method *m = era->methods; m->name; m++)
		if (jspan_equals(name, m->name))
			return m;
	return NULL;
}

/* Answers with "method not found". Always returns NULL. */
static const struct era *unknown_method(struct request *r) {
	auto_free char *name = jspan_decode(r->method, NULL);

	protocol_error(r->session->daemon, &r->to, RPC_METHOD_NOT_FOUND, NULL,
		"Method not found: %.200s", name ? name : "");
	return NULL;
}

/*
 * Methods that only the modern era has ever had: a client that sends one has left out its metadata.
 */
static bool is_modern_only(struct jspan method) {
	return jspan_equals(method, "server/discover") ||
	       jspan_equals(method, "subscriptions/listen") || jspan_equals(method, "tasks/update");
}

/* The era of a request, NULL when it has been answered. Nothing else asks for it. */
static const struct era *choose_era(struct request *r) {
	struct session *s = r->session;
	const struct revision *named = revision_find(r->version);

	if (era_find_method(&era_admin, r->method))
		return &era_admin;
	if (jspan_equals(r->method, "initialize"))
		return named && named->is_modern ? unknown_method(r) : &era_legacy;
	if (r->version.at)
		return &era_modern;
	if (!is_modern_only(r->method)) {
		if (s->legacy_revision || jspan_equals(r->method, "ping"))
			return &era_legacy;
		if (!era_find_method(&era_legacy, r->method) &&
			!era_find_method(&era_modern, r->method))
			return unknown_method(r);
	}
	protocol_error(s->daemon, &r->to, RPC_INVALID_PARAMS, NULL,
		"Missing params._meta[\"" META_VERSION "\"] and [\"" META_CAPABILITIES "\"]%s",
		s->legacy_revision ? ""
				   : "; a client of an earlier revision sends initialize first");
	return NULL;
}

/* True while another request of this session has the same id and no answer yet. */
static bool is_in_flight(struct session *s, const char *id) {
	return *find_listen(s, id) || callq_has(s, id);
}

static void request(struct session *s, struct jspan id, struct jspan method, struct jspan params,
	struct batch *batch) {
	struct request r = {
		.session = s,
		.method = method,
		.params = params,
		.to = { .session = s->id, .id = protocol_id(id) },
	};
	const struct method *row;
	const struct era *era;

	if (!r.to.id) {
		protocol_refuse(s, batch, JSPAN_NULL, RPC_INVALID_REQUEST,
			"Invalid request: id must be a string or an integer of at most %d bytes",
			MAX_ID);
		return;
	}
	if (is_in_flight(s, r.to.id)) {
		protocol_refuse(s, batch, id, RPC_INVALID_REQUEST,
			"Invalid request: another request with this id is in flight");
		reply_to_deinit(&r.to);
		return;
	}

	/* Until the era is known, errors are all that is answered; they are alike everywhere. */
	r.to.revision = s->legacy_revision ? s->legacy_revision : &revisions[LATEST_LEGACY];
	r.to.batch = batch;
	if (batch)
		batch_expect(batch);
	session_begin_request(s);

	if (params.at && !jspan_is_object(params)) {
		protocol_error(s->daemon, &r.to, RPC_INVALID_PARAMS, NULL,
			"Invalid params: params must be an object");
		return;
	}
	r.meta = jscan_get(params, "_meta");
	if (!jspan_is_object(r.meta))
		r.meta = JSPAN_NULL;
	r.version = jscan_get(r.meta, META_VERSION);

	if (batch && (r.version.at || jspan_equals(method, "initialize"))) {
		protocol_error(s->daemon, &r.to, RPC_INVALID_REQUEST, NULL,
			"Invalid request: must not be part of a batch");
		return;
	}
	era = choose_era(&r);
	if (!era || (era->check && !era->check(&r)))
		return;
	row = era_find_method(era, method);
	if (row)
		row->run(&r);
	else
		unknown_method(&r);
}

void protocol_message(struct session *s, struct jspan message, struct batch *batch) {
	struct jspan id = jscan_get(message, "id"), method = jscan_get(message, "method");
	struct jspan params = jscan_get(message, "params");

	if (!jspan_is_object(message)) {
		protocol_refuse(s, batch, JSPAN_NULL, RPC_INVALID_REQUEST,
			"Invalid request: a message must be an object");
		return;
	}
	/* We send no requests, so it answers none of ours. */
	if (!method.at && (jscan_get(message, "result").at || jscan_get(message, "error").at)) {
		log_debug("session %llu: a response to no request, ignoring",
			(unsigned long long)s->id);
		return;
	}
	if (!jspan_equals(jscan_get(message, "jsonrpc"), "2.0"))
		protocol_refuse(s, batch, id, RPC_INVALID_REQUEST,
			"Invalid request: jsonrpc must be \"2.0\"");
	else if (!jspan_is_string(method))
		protocol_refuse(s, batch, id, RPC_INVALID_REQUEST,
			"Invalid request: method must be a string");
	else if (id.at)
		request(s, id, method, params, batch);
	else
		notification(s, method, params);
	s->has_spoken = true;
}

static bool is_blank(const char *line, size_t len) {
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r", line[i]) || !line[i])
			return false;
	return true;
}

void protocol_dispatch(struct session *s, char *line, size_t len) {
	size_t offset = 0;
	struct jspan value;

	if (is_blank(line, len))
		return;
	switch (jscan_check(line, len, WIRE_MAX_DEPTH, &offset)) {
	case JSCAN_OK:
		break;
	case JSCAN_SYNTAX:
		protocol_refuse(s, NULL, jscan_recover_id(line, len), RPC_PARSE_ERROR,
			"Parse error: not JSON in UTF-8, at byte %zu of %zu", offset, len);
		return;
	case JSCAN_TOO_DEEP:
		protocol_refuse(s, NULL, jscan_recover_id(line, len), RPC_INVALID_REQUEST,
			"Invalid request: nested more than %d levels deep, at byte %zu",
			WIRE_MAX_DEPTH, offset);
		return;
	case JSCAN_DUPLICATE:
		protocol_refuse(s, NULL, jscan_recover_id(line, len), RPC_INVALID_REQUEST,
			"Invalid request: an object holds a name twice, at byte %zu", offset);
		return;
	}

	value = jscan_value(line, len);
	if (!jspan_is_array(value))
		protocol_message(s, value, NULL);
	else if (s->legacy_revision && s->legacy_revision->has_batches)
		batch_dispatch(s, value);
	else
		protocol_refuse(s, NULL, JSPAN_NULL, RPC_INVALID_REQUEST,
			"Invalid request: this revision of MCP has no batches");
}

void protocol_refuse_too_long(struct session *s, const char *head, size_t len) {
	protocol_refuse(s, NULL, jscan_recover_id(head, len), RPC_INVALID_REQUEST,
		"Invalid request: longer than %zu bytes (IPYTHON_MCP_MAX_MESSAGE_BYTES)",
		s->daemon->settings.max_message_bytes);
}

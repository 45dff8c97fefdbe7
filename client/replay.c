/* SPDX-License-Identifier: MIT */
/*
 * Replay
 *
 * To its client the shim is the server, so the client must not see one daemon being followed by
 * another. Kept for that, and no more: the legacy handshake, the level set, open listen requests,
 * and the requests in flight.
 *
 * A lost tools/call is answered and never sent again, for running code twice is worse than not
 * knowing. Only `initialize` and listen requests are repeated, which have no effects.
 *
 * Lines are looked at with the daemon's own limits, so that both see the same ids. A line
 * that the daemon will refuse goes on untracked; its refusal carries an id nobody waits for here.
 */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/cleanup.h"
#include "common/jscan.h"
#include "common/wire.h"
#include "client/inflight.h"
#include "client/lost.h"
#include "client/replay.h"

#define META "io.modelcontextprotocol/"

enum { OWN_ID_LEN = 64 };

struct replay {
	const char *profile;
	const char *failure;

	struct inflight inflight;
	unsigned n_batches;
	bool has_begun;     /* the client has asked for something */
	bool has_untracked; /* a line whose answer will not be recognised */

	/* The legacy handshake, once answered; raw JSON. */
	char *params, *version, *capabilities;
	bool is_initialized; /* notifications/initialized */
	char *level;         /* params of the last logging/setLevel */

	/* While a new daemon learns the conversation: ids of our own, "" when not awaited. */
	char own_initialize[OWN_ID_LEN], own_level[OWN_ID_LEN];
};

struct replay *replay_new(void) {
	struct replay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	inflight_init(&r->inflight);
	return r;
}

struct replay *replay_free(struct replay *r) {
	if (!r)
		return NULL;
	inflight_deinit(&r->inflight);
	free(r->params);
	free(r->version);
	free(r->capabilities);
	free(r->level);
	free(r);
	return NULL;
}

void replay_set_profile(struct replay *r, const char *profile) {
	r->profile = profile;
}

const char *replay_failure(const struct replay *r) {
	return r->failure;
}

static enum replay_verdict fail(struct replay *r, const char *failure) {
	r->failure = failure;
	return REPLAY_FAIL;
}

static void keep(char **slot, struct jspan value) {
	free(*slot);
	*slot = jspan_copy(value);
}

static bool is_modern(struct jspan params) {
	return jscan_get(jscan_get(params, "_meta"), META "protocolVersion").at != NULL;
}

/* What is worth knowing of one message. */
struct message {
	struct jspan id, method, params;
};

static struct message read_message(struct jspan object) {
	struct message m = { 0 };
	struct jspan name, value;
	size_t pos = 0;

	while (jscan_next_member(object, &pos, &name, &value)) {
		if (jspan_equals(name, "id"))
			m.id = value;
		else if (jspan_equals(name, "method"))
			m.method = value;
		else if (jspan_equals(name, "params"))
			m.params = value;
	}
	return m;
}

static bool is_id(struct jspan id) {
	return jspan_is_string(id) || jspan_is_integer(id);
}

/* A notification from the client. */
static enum replay_verdict on_notification(struct replay *r, const struct message *m) {
	struct request **at;
	bool is_lost;

	if (jspan_equals(m->method, "notifications/initialized"))
		r->is_initialized = true;
	if (!jspan_equals(m->method, "notifications/cancelled"))
		return REPLAY_PASS;

	/* Never answered from now on; `initialize` is the one that cannot be cancelled. */
	at = inflight_find(&r->inflight, jscan_get(m->params, "requestId"));
	if (!*at || (*at)->kind == REQUEST_INITIALIZE)
		return REPLAY_PASS;
	is_lost = (*at)->kind == REQUEST_LOST;
	inflight_remove(&r->inflight, at);
	return is_lost ? REPLAY_DROP : REPLAY_PASS;
}

static enum request_kind kind_of(const struct message *m, unsigned batch) {
	if (jspan_equals(m->method, "tools/call"))
		return REQUEST_CALL;
	/* Neither may be part of a batch; the daemon refuses them there. */
	if (batch)
		return REQUEST_OTHER;
	if (jspan_equals(m->method, "initialize"))
		return REQUEST_INITIALIZE;
	if (jspan_equals(m->method, "subscriptions/listen"))
		return REQUEST_LISTEN;
	return REQUEST_OTHER;
}

/* A request from the client. */
static enum replay_verdict on_request(struct replay *r, const struct message *m, struct jspan text,
	unsigned batch) {
	enum request_kind kind = kind_of(m, batch);
	bool is_kept = kind == REQUEST_INITIALIZE || kind == REQUEST_LISTEN;
	struct request **lost = inflight_find(&r->inflight, m->id), *q;
	struct jspan wanted = jscan_get(m->params, "notifications");

	/* An id may be used again once its request was answered, if only by us. */
	if (*lost && (*lost)->kind == REQUEST_LOST)
		inflight_remove(&r->inflight, lost);
	q = inflight_add(&r->inflight, m->id, kind, is_kept ? text : JSPAN_NULL);
	if (!q)
		return fail(r, "out of memory");
	r->has_begun = true;
	q->is_modern = is_modern(m->params);
	q->batch = batch;
	q->wants_tools = jspan_is_word(jscan_get(wanted, "toolsListChanged"), "true");
	if (jspan_equals(m->method, "logging/setLevel") && !q->is_modern)
		keep(&r->level, m->params);
	return REPLAY_PASS;
}

static enum replay_verdict on_message(struct replay *r, struct jspan text, unsigned batch) {
	struct message m = read_message(text);

	if (!jspan_is_object(text) || !jspan_is_string(m.method) || (m.id.at && !is_id(m.id))) {
		r->has_untracked = true;
		return REPLAY_PASS;
	}
	return m.id.at ? on_request(r, &m, text, batch) : on_notification(r, &m);
}

static bool has_batches(const struct replay *r) {
	return r->version && !strcmp(r->version, "\"2025-03-26\"");
}

enum replay_verdict replay_on_client_line(struct replay *r, const char *line, size_t len) {
	struct jspan text = jscan_value(line, len), element;
	size_t pos = 0;

	if (!text.at)
		return REPLAY_PASS;
	if (jscan_look(line, len, WIRE_MAX_DEPTH) != JSCAN_OK ||
		(jspan_is_array(text) && !has_batches(r))) {
		r->has_untracked = true;
		return REPLAY_PASS;
	}
	if (!jspan_is_array(text))
		return on_message(r, text, 0);

	/*
	 * A cancel in a batch goes on even for a lost id: the daemon ignores ids that it does not
	 * know.
	 */
	for (r->n_batches++; jscan_next(text, &pos, &element);)
		if (on_message(r, element, r->n_batches) == REPLAY_FAIL)
			return REPLAY_FAIL;
	return REPLAY_PASS;
}

/* The capability `tools.listChanged`. */
static bool has_list_changed(struct jspan capabilities) {
	return jspan_is_word(jscan_get(jscan_get(capabilities, "tools"), "listChanged"), "true");
}

/* Whether each capability that was offered still is. */
static bool still_offers(struct jspan before, struct jspan now) {
	struct jspan name, value, other, other_value;
	size_t pos = 0;

	while (jscan_next_member(before, &pos, &name, &value)) {
		bool is_there = false;

		for (size_t at = 0; !is_there && jscan_next_member(now, &at, &other, &other_value);)
			is_there = name.len == other.len && !memcmp(name.at, other.at, name.len);
		if (!is_there)
			return false;
	}
	return !has_list_changed(before) || has_list_changed(now);
}

/* The new daemon has answered the handshake that was repeated. */
static enum replay_verdict on_own_initialize(struct replay *r, struct jspan result) {
	struct jspan before = { r->capabilities, strlen(r->capabilities) };

	r->own_initialize[0] = '\0';
	if (!jspan_is_word(jscan_get(result, "protocolVersion"), r->version))
		return fail(r, "the new daemon does not speak the protocol revision of this "
			       "session; the client must connect again");
	if (!still_offers(before, jscan_get(result, "capabilities")))
		return fail(r, "the new daemon offers less than the one before; the client must "
			       "connect again");
	return REPLAY_DROP;
}

/* The daemon has answered the client's own `initialize`. */
static enum replay_verdict on_initialized(struct replay *r, struct request *q,
	struct jspan result) {
	struct jspan params = jscan_get(jscan_value(q->line, strlen(q->line)), "params");
	struct jspan version = jscan_get(result, "protocolVersion");
	struct jspan capabilities = jscan_get(result, "capabilities");

	/* An error, or a daemon that knows better than we do what may be left out. */
	if (!params.at || !version.at || !capabilities.at)
		return REPLAY_PASS;
	keep(&r->params, params);
	keep(&r->version, version);
	keep(&r->capabilities, capabilities);
	return r->params && r->version && r->capabilities ? REPLAY_PASS : fail(r, "out of memory");
}

/* An answer from the daemon, or an element of an array of them. */
static enum replay_verdict on_response(struct replay *r, struct jspan text, struct jspan id) {
	enum replay_verdict verdict = REPLAY_PASS;
	struct request **at;

	if (r->own_initialize[0] && jspan_is_word(id, r->own_initialize))
		return on_own_initialize(r, jscan_get(text, "result"));
	if (r->own_level[0] && jspan_is_word(id, r->own_level)) {
		r->own_level[0] = '\0';
		return REPLAY_DROP;
	}

	at = inflight_find(&r->inflight, id);
	if (!*at)
		return REPLAY_PASS;
	/* A daemon that stops ends its streams; the next one takes this one up again. */
	if ((*at)->kind == REQUEST_LISTEN && (*at)->is_acked && jscan_get(text, "result").at)
		return REPLAY_DROP;
	if ((*at)->kind == REQUEST_INITIALIZE)
		verdict = on_initialized(r, *at, jscan_get(text, "result"));
	inflight_remove(&r->inflight, at);
	return verdict;
}

/* A notification from the daemon: those about listen requests matter. */
static enum replay_verdict on_daemon_notification(struct replay *r, struct jspan text,
	struct jspan method) {
	struct jspan params, id;
	struct request *q;

	if (jspan_equals(method, "notifications/subscriptions/acknowledged")) {
		params = jscan_get(text, "params");
		id = jscan_get(jscan_get(params, "_meta"), META "subscriptionId");
		q = *inflight_find(&r->inflight, id);
		if (!q)
			return REPLAY_PASS;
		if (q->awaits_ack) {
			q->awaits_ack = false;
			return REPLAY_DROP;
		}
		q->is_acked = true;
	} else if (jspan_equals(method, "notifications/cancelled")) {
		id = jscan_get(jscan_get(text, "params"), "requestId");
		q = *inflight_find(&r->inflight, id);
		/* As with its answer. */
		if (q && q->kind == REQUEST_LISTEN && q->is_acked)
			return REPLAY_DROP;
	}
	return REPLAY_PASS;
}

enum replay_verdict replay_on_daemon_line(struct replay *r, const char *line, size_t len) {
	struct jspan text = jscan_value(line, len), name, value;
	size_t pos = 0;

	if (jspan_is_array(text)) {
		while (jscan_next(text, &pos, &value))
			if (on_response(r, value, jscan_get(value, "id")) == REPLAY_FAIL)
				return REPLAY_FAIL;
		return REPLAY_PASS;
	}
	/*
	 * The first of the two tells an answer from a notification, and what follows it may be
	 * megabytes.
	 */
	while (jscan_next_member(text, &pos, &name, &value)) {
		if (jspan_equals(name, "id"))
			return on_response(r, text, value);
		if (jspan_equals(name, "method"))
			return on_daemon_notification(r, text, value);
	}
	return REPLAY_PASS;
}

static void answer(struct replay *r, struct request *q, struct buf *to_client) {
	struct lost_request lost = {
		.id = { q->id, strlen(q->id) },
		.is_call = q->kind == REQUEST_CALL,
		.is_modern = q->is_modern,
	};

	lost_write(to_client, &lost, LOST_DAEMON, r->profile, NULL);
}

void replay_lose(struct replay *r, struct buf *to_client) {
	unsigned batch = 0;

	r->own_initialize[0] = r->own_level[0] = '\0';
	for (struct request *q = r->inflight.first, *next; q; q = next) {
		next = q->next;
		if (q->kind != REQUEST_CALL && q->kind != REQUEST_OTHER)
			continue;
		/* The elements of one array stand together, and are answered by one. */
		if (batch && batch != q->batch)
			buf_add_str(to_client, "]\n");
		if (q->batch)
			buf_add_char(to_client, batch == q->batch ? ',' : '[');
		batch = q->batch;
		answer(r, q, to_client);
		if (!q->batch)
			buf_add_char(to_client, '\n');
		inflight_lose(&r->inflight, q);
	}
	if (batch)
		buf_add_str(to_client, "]\n");
}

/* Ids that no client can have thought of. */
static void choose_own_ids(struct replay *r) {
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uintptr_t)r;
	snprintf(r->own_initialize, OWN_ID_LEN, "\"ipython-mcp-connect-%016" PRIx64 "-initialize\"",
		random);
	snprintf(r->own_level, OWN_ID_LEN, "\"ipython-mcp-connect-%016" PRIx64 "-level\"", random);
}

static void add_own(struct buf *to_daemon, const char *id, const char *method, const char *params) {
	buf_addf(to_daemon, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":%s}\n", id,
		method, params);
}

void replay_begin(struct replay *r, struct buf *to_daemon) {
	bool is_repeated = r->version != NULL;

	choose_own_ids(r);
	if (is_repeated)
		add_own(to_daemon, r->own_initialize, "initialize", r->params);
	else
		r->own_initialize[0] = '\0';

	/* An `initialize` that was in flight is the client's own; its answer goes through. */
	for (struct request *q = r->inflight.first; q; q = q->next) {
		if (q->kind != REQUEST_INITIALIZE)
			continue;
		buf_addf(to_daemon, "%s\n", q->line);
		is_repeated = true;
	}
	if (is_repeated && r->is_initialized)
		buf_add_str(to_daemon, "{\"jsonrpc\":\"2.0\","
				       "\"method\":\"notifications/initialized\"}\n");
	if (r->version && r->level)
		add_own(to_daemon, r->own_level, "logging/setLevel", r->level);
	else
		r->own_level[0] = '\0';

	for (struct request *q = r->inflight.first; q; q = q->next) {
		if (q->kind != REQUEST_LISTEN)
			continue;
		buf_addf(to_daemon, "%s\n", q->line);
		q->awaits_ack = q->is_acked;
	}
}

bool replay_is_settled(const struct replay *r) {
	const struct request *q = r->inflight.first;

	while (q && !q->awaits_ack)
		q = q->next;
	return !q && !r->own_initialize[0] && !r->own_level[0];
}

void replay_end(struct replay *r, struct buf *to_client) {
	static const char notice[] = "{\"jsonrpc\":\"2.0\","
				     "\"method\":\"notifications/tools/list_changed\"";

	if (r->is_initialized && r->capabilities &&
		has_list_changed(jscan_value(r->capabilities, strlen(r->capabilities))))
		buf_addf(to_client, "%s}\n", notice);
	for (struct request *q = r->inflight.first; q; q = q->next)
		if (q->kind == REQUEST_LISTEN && q->is_acked && q->wants_tools)
			buf_addf(to_client,
				"%s,\"params\":{\"_meta\":{\"" META "subscriptionId\":%s}}}\n",
				notice, q->id);
}

bool replay_is_idle(const struct replay *r) {
	const struct request *q = r->inflight.first;

	while (q && (q->kind == REQUEST_LISTEN || q->kind == REQUEST_LOST))
		q = q->next;
	return !q && !r->has_untracked;
}

bool replay_has_begun(const struct replay *r) {
	return r->has_begun;
}

/* Appends the answer to one message, and before it `before`; false when it wants none. */
static bool refuse(struct replay *r, struct jspan text, const char *reason, const char *before,
	struct buf *to_client) {
	struct message m = read_message(text);
	struct lost_request lost = { .id = m.id, .is_call = jspan_equals(m.method, "tools/call"),
		.is_modern = is_modern(m.params) };

	if (!jspan_is_string(m.method) || !is_id(m.id))
		return false;
	buf_add_str(to_client, before);
	lost_write(to_client, &lost, LOST_NO_START, r->profile, reason);
	return true;
}

void replay_refuse(struct replay *r, const char *line, size_t len, const char *reason,
	struct buf *to_client) {
	struct jspan text = jscan_value(line, len), element;
	size_t pos = 0, n = 0;

	if (jscan_look(line, len, WIRE_MAX_DEPTH) != JSCAN_OK)
		return;
	if (!jspan_is_array(text)) {
		if (refuse(r, text, reason, "", to_client))
			buf_add_char(to_client, '\n');
		return;
	}
	if (!has_batches(r))
		return;
	while (jscan_next(text, &pos, &element))
		n += refuse(r, element, reason, n ? "," : "[", to_client);
	if (n)
		buf_add_str(to_client, "]\n");
}

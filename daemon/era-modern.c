/* SPDX-License-Identifier: MIT */
/*
 * Modern Era
 *
 * The revision without a handshake: each request names its version and the client's capabilities in
 * params._meta, and nothing of them is remembered. Changes of the list are told on streams that a
 * client opens with `subscriptions/listen`, a request that is never answered while its stream
 * lives. Loop thread.
 */

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/era.h"

enum {
	MAX_LISTENS = 64,

	/*
	 * How long clients may go without asking again. Only those with a stream hear of a change.
	 */
	DISCOVER_TTL_MS = 60000,
	/*
	 * Stale at once: a client without a listen stream would not see a registered tool, and
	 * asking costs microseconds.
	 */
	LIST_TTL_MS = 0,
};

static bool is_log_level(struct jspan level) {
	static const char *const levels[] = { "debug", "info", "notice", "warning", "error",
		"critical", "alert", "emergency" };

	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (jspan_equals(level, levels[i]))
			return true;
	return false;
}

/* "data" of the error: what is served, and what was asked for. */
static void refuse_version(struct request *r) {
	auto_free char *asked = jspan_decode(r->version, NULL);
	auto_buf struct buf b = BUF_NULL;
	auto_free char *data = NULL;

	buf_addf(&b, "{\"supported\":[\"%s\"],\"requested\":", revisions[MODERN].name);
	buf_add_json_string(&b, asked ? asked : "", asked ? strnlen(asked, 200) : 0);
	buf_add_char(&b, '}');
	data = buf_take(&b, NULL);
	protocol_error(r->session->daemon, &r->to, RPC_UNSUPPORTED_VERSION, data,
		"Unsupported protocol version");
}

static bool modern_check(struct request *r) {
	struct jspan level = jscan_get(r->meta, META_LOG_LEVEL);
	struct jspan token = jscan_get(r->meta, "progressToken");
	const struct revision *revision = revision_find(r->version);
	const char *complaint = NULL;

	r->to.revision = &revisions[MODERN];
	if (jspan_is_string(r->version) && (!revision || !revision->is_modern)) {
		refuse_version(r);
		return false;
	}

	if (!jspan_is_string(r->version))
		complaint = "params._meta[\"" META_VERSION "\"] must be a string";
	else if (!jspan_is_object(jscan_get(r->meta, META_CAPABILITIES)))
		complaint =
			"params._meta[\"" META_CAPABILITIES "\"] is required and must be an object";
	else if (level.at && !is_log_level(level))
		complaint = "params._meta[\"" META_LOG_LEVEL "\"] must be a log level";
	else if (token.at && !jspan_is_string(token) && !jspan_is_integer(token))
		complaint = "params._meta.progressToken must be a string or an integer";
	if (complaint)
		protocol_error(r->session->daemon, &r->to, RPC_INVALID_PARAMS, NULL,
			"Invalid params: %s", complaint);
	return !complaint;
}

static void modern_discover(struct request *r) {
	struct buf members = BUF_NULL;

	buf_addf(&members, "\"supportedVersions\":[\"%s\"],\"capabilities\":" ERA_CAPABILITIES
		",\"instructions\":", revisions[MODERN].name);
	era_add_instructions(&members, r->session->profile);
	buf_addf(&members, ",\"ttlMs\":%d,\"cacheScope\":\"private\"", DISCOVER_TTL_MS);
	protocol_result(r->session->daemon, &r->to, &members);
}

static void modern_tools_list(struct request *r) {
	auto_buf struct buf b = BUF_NULL;
	auto_free char *more = NULL;

	buf_addf(&b, ",\"ttlMs\":%d,\"cacheScope\":\"private\"", LIST_TTL_MS);
	more = buf_take(&b, NULL);
	era_tools_list(r, more ? more : "");
}

/* The acknowledgement is the stream's first line; it names what will be sent and nothing else. */
static void acknowledge(struct session *s, const struct listen *l) {
	auto_buf struct buf b = BUF_NULL;
	auto_free char *params = NULL;

	buf_addf(&b, "{\"_meta\":{\"" META_SUBSCRIPTION "\":%s},\"notifications\":{%s}}", l->id,
		l->wants_tools ? "\"toolsListChanged\":true" : "");
	params = buf_take(&b, NULL);
	if (params)
		protocol_notify(s, "notifications/subscriptions/acknowledged", params);
}

static void modern_listen(struct request *r) {
	struct session *s = r->session;
	struct jspan wanted = jscan_get(r->params, "notifications");
	struct jspan tools = jscan_get(wanted, "toolsListChanged");
	const char *complaint = NULL;
	struct listen *l;

	if (!jspan_is_object(wanted))
		complaint = "notifications is required and must be an object";
	else if (tools.at && !jspan_is_word(tools, "true") && !jspan_is_word(tools, "false"))
		complaint = "notifications.toolsListChanged must be a boolean";
	if (complaint) {
		protocol_error(s->daemon, &r->to, RPC_INVALID_PARAMS, NULL, "Invalid params: %s",
			complaint);
		return;
	}
	l = s->n_listens < MAX_LISTENS ? calloc(1, sizeof(*l)) : NULL;
	if (!l) {
		protocol_error(s->daemon, &r->to, RPC_INTERNAL_ERROR, NULL,
			"Internal error: no room for another stream, %zu are open on this "
			"connection",
			s->n_listens);
		return;
	}
	l->id = take(r->to.id);
	l->wants_tools = jspan_is_word(tools, "true");
	l->next = s->listens;
	s->listens = l;
	s->n_listens++;
	acknowledge(s, l);

	/* From here on the stream stands for the request: nobody waits for its answer. */
	protocol_drop(s->daemon, &r->to);
}

static const struct method modern_methods[] = {
	{ "server/discover", modern_discover },
	{ "tools/list", modern_tools_list },
	{ "tools/call", era_tools_call },
	{ "subscriptions/listen", modern_listen },
	{ 0 },
};

const struct era era_modern = { .methods = modern_methods, .check = modern_check };

/* SPDX-License-Identifier: MIT */
/*
 * Legacy Era
 *
 * The revisions that open a connection with `initialize` and keep what was agreed: 2024-11-05 to
 * 2025-11-25. protocol.c sends a request here after that handshake, and `initialize` and `ping` at
 * any time. Loop thread.
 */

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "daemon/era.h"

static void legacy_initialize(struct request *r) {
	struct session *s = r->session;
	struct jspan version = jscan_get(r->params, "protocolVersion");
	const struct revision *revision = revision_find(version);
	struct buf members = BUF_NULL;
	const char *missing = NULL;

	if (!jspan_is_string(version))
		missing = "protocolVersion must be a string";
	else if (!jspan_is_object(jscan_get(r->params, "capabilities")))
		missing = "capabilities must be an object";
	else if (!jspan_is_object(jscan_get(r->params, "clientInfo")))
		missing = "clientInfo must be an object";
	if (missing) {
		protocol_error(
			s->daemon, &r->to, RPC_INVALID_PARAMS, NULL, "Invalid params: %s", missing);
		return;
	}
	if (s->legacy_revision) {
		protocol_error(s->daemon, &r->to, RPC_INVALID_REQUEST, NULL,
			"Invalid request: this connection is initialized already");
		return;
	}

	/*
	 * A client that asks for what we do not know, or for the era without this handshake, gets
	 * our best.
	 */
	if (!revision || revision->is_modern)
		revision = &revisions[LATEST_LEGACY];
	s->legacy_revision = revision;
	r->to.revision = revision;

	buf_addf(&members,
		"\"protocolVersion\":\"%s\",\"capabilities\":" ERA_CAPABILITIES
		",\"serverInfo\":%s",
		revision->name, revision->server_info);
	buf_add_str(&members, ",\"instructions\":");
	era_add_instructions(&members, s->profile);
	log_debug("session %llu: speaks %s", (unsigned long long)s->id, revision->name);
	protocol_result(s->daemon, &r->to, &members);
}

static void legacy_ping(struct request *r) {
	era_answer(r, "");
}

static void legacy_tools_list(struct request *r) {
	era_tools_list(r, "");
}

/* Not announced, but some clients ask all the same and show an error as a broken server. */
static void legacy_resources_list(struct request *r) {
	era_answer(r, "\"resources\":[]");
}

static void legacy_resource_templates_list(struct request *r) {
	era_answer(r, "\"resourceTemplates\":[]");
}

static void legacy_prompts_list(struct request *r) {
	era_answer(r, "\"prompts\":[]");
}

static const struct method legacy_methods[] = {
	{ "initialize", legacy_initialize },
	{ "ping", legacy_ping },
	{ "tools/list", legacy_tools_list },
	{ "tools/call", era_tools_call },
	{ "resources/list", legacy_resources_list },
	{ "resources/templates/list", legacy_resource_templates_list },
	{ "prompts/list", legacy_prompts_list },
	{ 0 },
};

const struct era era_legacy = { .methods = legacy_methods };

/* SPDX-License-Identifier: MIT */
/*
 * Answers to Lost Requests
 *
 * A model reads the answer to a tools/call and decides what to do next, so it says what is known
 * and what to do, in the shape that the daemon's own answers have in that profile and era. An
 * answer by JSON-RPC error would make one agent start the server anew and repeat the call.
 */

#include <config.h>

#include <string.h>

#include "client/lost.h"

enum { HEAD_FOR_ID = 64 * 1024 /* of an overlong line, searched for its id */ };

#define SERVER_META                                                                                \
	",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{"                                    \
	"\"name\":\"ipython-mcpd\",\"version\":\"" PACKAGE_VERSION "\",\"title\":\"IPython\"}}"

static const struct {
	const char *code, *message;          /* of a tool's answer */
	const char *rpc_message, *rpc_reason; /* of a JSON-RPC error */
} causes[] = {
	[LOST_DAEMON] = { "namespace_lost",
		"The IPython daemon ended while this call was in flight. Whether the call ran to "
		"its end is unknown, and it was not repeated. The namespace is new: variables, "
		"imports and registered tools are gone. Look at what the call may have done "
		"outside of it before you repeat it.",
		"The IPython daemon went away; this request was lost and its effects are unknown",
		"daemon-restarted" },
	[LOST_NO_START] = { "startup_failed", "There is no IPython daemon: ",
		"There is no IPython daemon: ", "daemon-unavailable" },
};

/* The error object, in the daemon's order; the short form leaves out what is null or false. */
static void add_error(struct buf *out, const char *code, struct buf *message, bool is_short) {
	buf_addf(out, "{\"code\":\"%s\",\"message\":", code);
	buf_add_json_string(out, message->data, message->len);
	if (!is_short)
		buf_add_str(out, ",\"error_type\":null,\"location\":null,\"traceback\":null,"
				 "\"retryable\":false,\"retry_after_seconds\":null,"
				 "\"message_truncated\":false,\"location_truncated\":false,"
				 "\"traceback_truncated\":false");
	buf_add_char(out, '}');
}

/* The text of a tool's answer. */
static void add_text(struct buf *text, const char *code, struct buf *message, const char *profile) {
	if (profile && !strcmp(profile, "text")) {
		buf_addf(text, "[%s] ", code);
		buf_add(text, message->data, message->len);
		return;
	}
	buf_add_str(text, "{\"ok\":false,\"error\":");
	add_error(text, code, message, profile && !strcmp(profile, "compact"));
	buf_add_char(text, '}');
}

void lost_write(struct buf *out, const struct lost_request *request, enum lost_cause cause,
	const char *profile, const char *reason) {
	struct buf message = BUF_NULL, text = BUF_NULL;

	buf_add_str(&message, request->is_call ? causes[cause].message : causes[cause].rpc_message);
	if (cause == LOST_NO_START)
		buf_add_str(&message, reason ? reason : "out of memory");

	buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_add(out, request->id.at, request->id.len);
	if (request->is_call) {
		add_text(&text, causes[cause].code, &message, profile);
		buf_addf(out, ",\"result\":{%s\"content\":[{\"type\":\"text\",\"text\":",
			request->is_modern ? "\"resultType\":\"complete\"," : "");
		buf_add_json_string(out, text.data, text.len);
		buf_addf(out, "}],\"isError\":true%s}}", request->is_modern ? SERVER_META : "");
	} else {
		buf_add_str(out, ",\"error\":{\"code\":-32603,\"message\":");
		buf_add_json_string(out, message.data, message.len);
		buf_addf(out, ",\"data\":{\"reason\":\"%s\"}}}", causes[cause].rpc_reason);
	}
	out->has_failed |= message.has_failed || text.has_failed;
	buf_deinit(&message);
	buf_deinit(&text);
}

void lost_write_too_long(struct buf *out, const char *head, size_t len, size_t limit) {
	struct jspan id = jscan_recover_id(head, len < HEAD_FOR_ID ? len : HEAD_FOR_ID);

	buf_add_str(out, "{\"jsonrpc\":\"2.0\"");
	if (id.at) {
		buf_add_str(out, ",\"id\":");
		buf_add(out, id.at, id.len);
	}
	buf_addf(out,
		",\"error\":{\"code\":-32600,\"message\":\"Invalid request: longer than %zu bytes "
		"(IPYTHON_MCP_MAX_MESSAGE_BYTES)\"}}\n",
		limit);
}

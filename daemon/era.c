/* SPDX-License-Identifier: MIT */
/*
 * What Both Eras Do Alike
 *
 * tools/list and tools/call, and the words that tell a model what this server is. Loop thread.
 */

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/wire.h"
#include "daemon/callq.h"
#include "daemon/catalog.h"
#include "daemon/era.h"
#include "daemon/notify.h"

/* Clients cut this at 2,048 characters, and some show only the beginning. */
static const char instructions_full[] =
	"A live IPython namespace that outlasts your session: what execute defines (imports, "
	"variables, "
	"functions, open connections) is there in the next call, after a restart of your program, "
	"and for "
	"every other session attached to it. Load data once, keep it in a variable, and work on it "
	"in small "
	"steps. "
	"execute runs a cell as IPython does: magics, !shell, top-level await, the value of a last "
	"expression, figures as images. call_function calls a function by name with JSON arguments "
	"and "
	"returns its value as JSON. list, search and inspect look at what is there without running "
	"it. "
	"remove, reset and reload tidy up. register_tool makes a function of the namespace a tool "
	"of its "
	"own, for every session; unregister_tool withdraws it. "
	"One call runs at a time and others wait their turn, so give a cell that may run long a "
	"timeout (in "
	"seconds): when it passes, the cell is interrupted, what it printed so far is kept, and "
	"the namespace "
	"stays. A cancelled call is interrupted as well. "
	"Answers are bounded: print summaries (shape, head, describe) rather than whole data. What "
	"is cut says "
	"so, keeps its end, and names a file with the whole. "
	"A notice in an answer says when the namespace is new, so that earlier variables are gone, "
	"or when "
	"another session ran cells meanwhile. reset and remove take names from everybody.";

static const char instructions_short[] = "A live IPython namespace shared by all sessions: "
					 "variables, imports and functions stay between calls "
					 "and after a restart of your program. Load data once, "
					 "print summaries, give long cells a timeout.";

void era_add_instructions(struct buf *b, enum profile profile) {
	const char *text = profile == PROFILE_FULL ? instructions_full : instructions_short;

	buf_add_json_string(b, text, strlen(text));
}

void era_answer(struct request *r, const char *members) {
	struct buf b = BUF_NULL;

	buf_add_str(&b, members);
	protocol_result(r->session->daemon, &r->to, &b);
}

void era_tools_list(struct request *r, const char *more_members) {
	struct session *s = r->session;
	struct jspan cursor = jscan_get(r->params, "cursor");
	struct buf members = BUF_NULL;
	const char *tools;
	size_t len;

	if (cursor.at && !jspan_is_word(cursor, "null")) {
		protocol_error(s->daemon, &r->to, RPC_INVALID_PARAMS, NULL,
			"Invalid params: the list has one page, no cursor was ever given out");
		return;
	}
	tools = catalog_list(s->daemon, s->profile, r->to.revision, &len);
	if (!tools) {
		protocol_error(s->daemon, &r->to, RPC_INTERNAL_ERROR, NULL,
			"Internal error: out of memory");
		return;
	}
	buf_add_str(&members, "\"tools\":");
	buf_add(&members, tools, len);
	buf_add_str(&members, more_members);
	protocol_result(s->daemon, &r->to, &members);
	notify_listed(s);
}

/*
 * The arguments of a call, JSPAN_NULL when there are none; false when the request has been
 * answered.
 */
static bool take_arguments(struct request *r, struct jspan *ret_arguments) {
	struct daemon *d = r->session->daemon;
	struct jspan arguments = jscan_get(r->params, "arguments");

	if (!arguments.at || jspan_is_word(arguments, "null")) {
		*ret_arguments = JSPAN_NULL;
		return true;
	}
	if (!jspan_is_object(arguments)) {
		protocol_error(d, &r->to, RPC_INVALID_PARAMS, NULL,
			"Invalid params: arguments must be an object");
		return false;
	}
	/*
	 * The line has been checked, but names that occur twice only near its top; nothing is left
	 * to mend.
	 */
	if (jscan_check((char *)arguments.at, arguments.len, WIRE_MAX_DEPTH, NULL) != JSCAN_OK) {
		protocol_error(d, &r->to, RPC_INVALID_PARAMS, NULL,
			"Invalid params: arguments hold a name twice");
		return false;
	}
	*ret_arguments = arguments;
	return true;
}

void era_tools_call(struct request *r) {
	struct session *s = r->session;
	struct jspan name = jscan_get(r->params, "name"),
		     token = jscan_get(r->meta, "progressToken");
	struct jspan arguments;
	struct tool_ref tool;
	auto_free char *text = NULL, *progress = NULL;
	size_t len;

	if (!jspan_is_string(name)) {
		protocol_error(s->daemon, &r->to, RPC_INVALID_PARAMS, NULL,
			"Invalid params: name is required and must be a string");
		return;
	}
	if (!take_arguments(r, &arguments))
		return;
	text = jspan_decode(name, &len);
	if (!text || strlen(text) != len || !catalog_find(s->daemon, s->profile, text, &tool)) {
		protocol_error(s->daemon, &r->to, RPC_INVALID_PARAMS, NULL, "Unknown tool: %.200s",
			text ? text : "");
		return;
	}
	/* A progress token obeys the rules of an id. */
	progress = protocol_id(token);
	token = progress ? (struct jspan){ progress, strlen(progress) } : JSPAN_NULL;
	callq_submit(s->daemon, s, &r->to, &tool, arguments, token);
}

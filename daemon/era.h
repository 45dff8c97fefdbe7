/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Eras of MCP: the legacy one opens with `initialize`, the modern one names its version in each
 * request. They differ in their methods and in what they put around a result; both are rows and
 * functions behind `struct era`. One function, in protocol.c, picks the era of a request.
 */

#include "common/buf.h"
#include "common/jscan.h"
#include "daemon/protocol.h"

/* One request while it is dispatched; the spans live until the handler returns. */
struct request {
	struct session *session;
	struct reply_to to;   /* a handler that answers later takes it */
	struct jspan method;  /* a string */
	struct jspan params;  /* an object; JSPAN_NULL when absent */
	struct jspan meta;    /* params._meta; JSPAN_NULL when absent or no object */
	struct jspan version; /* the protocol version in it; JSPAN_NULL when absent */
};

/* A row of a method table; tables end with an empty row. */
struct method {
	const char *name;
	void (*run)(struct request *r);
};

struct era {
	const struct method *methods;

	/*
	 * What every request of the era needs; false when the request has been answered. May be
	 * NULL.
	 */
	bool (*check)(struct request *r);
};

/* era_admin belongs to neither era: requests of people's tools, at any time. See admin.c. */
extern const struct era era_legacy, era_modern, era_admin;

/* The row of a method, NULL when the era has none of that name. */
const struct method *era_find_method(const struct era *era, struct jspan name);

/* Answers with the members of a result that are there as text. */
void era_answer(struct request *r, const char *members);

/* What both eras do alike. `more_members` come after the tools, each with a comma before it. */
void era_tools_list(struct request *r, const char *more_members);
void era_tools_call(struct request *r);

/* The capabilities, an object: the same for every revision. */
#define ERA_CAPABILITIES "{\"tools\":{\"listChanged\":true}}"

/* Appends what the model is told about the server in that profile: a JSON string. */
void era_add_instructions(struct buf *b, enum profile profile);

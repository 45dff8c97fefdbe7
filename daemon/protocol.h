/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * JSON-RPC and the choice of an era. Eras differ in their methods and in how they wrap a result; both
 * are rows and functions behind `struct era`. Nothing but protocol_dispatch() tests for the era.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/jscan.h"
#include "daemon/daemon.h"
#include "daemon/session.h"

enum {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	RPC_UNSUPPORTED_VERSION = -32022,
};

/* What one revision of the protocol has; consulted while writing. */
struct revision {
	const char *name; /* "2025-11-25" */
	bool has_batches;
	bool has_progress_message;
	bool has_annotations;   /* on tools */
	bool has_tool_title;    /* title, _meta and outputSchema on tools; structuredContent */
	bool has_server_title;  /* title in serverInfo */
	bool has_server_description;
	bool is_modern;         /* resultType, ttlMs, cacheScope, serverInfo in _meta */
	unsigned index;         /* place in the table, oldest first: for caches by revision */
};

enum { N_REVISIONS = 5 };

/* Table of all revisions, oldest first. */
extern const struct revision revisions[N_REVISIONS];

/* The row of that name; NULL for any other. */
const struct revision *revision_find(const char *name);

struct batch; /* protocol.c: answers of a 2025-03-26 batch, collected */

/* How to answer one request. Moves with the request; deinit when it is dropped unanswered. */
struct reply_to {
	uint64_t session;
	char *id; /* raw JSON token, NULL once answered */
	const struct revision *revision;
	struct batch *batch; /* NULL: answered by a line of its own */
};

void reply_to_deinit(struct reply_to *to);

/* One request being dispatched. Spans and trees live until the handler returns. */
struct request {
	struct session *session;
	struct reply_to to; /* a handler that answers later takes it */
	struct jspan params_text; /* raw, surrogates mended; JSPAN_NULL when absent */
	json_t *params;           /* the same as a tree, wide numbers flattened to 0; NULL when absent */
};

/*
 * Answers with a result. `members` are the members of the result object as JSON text without the
 * braces ("" for an empty one); the era adds its own. Both arguments are consumed. A request whose
 * session is gone is dropped silently.
 */
void protocol_result(struct daemon *d, struct reply_to *to, struct buf *members);

/* Answers with an error; `data` is JSON text or NULL. Consumes `to`. */
void protocol_error(struct daemon *d, struct reply_to *to, int code, const char *data,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Drops a request that must not be answered (cancelled). Completes a batch that waited for it. */
void protocol_drop(struct daemon *d, struct reply_to *to);

/*
 * notifications/progress for a request still in flight. `token` is the raw JSON token, `progress`
 * must exceed the last one sent (the caller's duty); `message` may be NULL.
 */
void protocol_progress(struct daemon *d, const struct reply_to *to, const char *token,
	double progress, const char *message, size_t message_len);

/* Handles one line of a session: called by session.c. `line` is writable, `len` bytes. */
void protocol_dispatch(struct session *s, char *line, size_t len);

/* A line exceeded MAX_MESSAGE_BYTES; `head` are its first bytes, for its id. */
void protocol_refuse_too_long(struct session *s, const char *head, size_t len);

/* The session is gone: frees its listens and batches. */
void protocol_session_gone(struct session *s);

/* Appends `,"_meta":…` etc. that a server says of itself in a modern result; see era-modern.c. */

/* A row of a method table; tables end with an empty row. */
struct method {
	const char *name;
	void (*run)(struct request *r);
	bool is_notification;
};

struct era {
	const char *name;
	const struct method *methods;
	/* Appends the members that every result of this era carries, each with a comma before it. */
	void (*add_result_members)(struct buf *b);
};

extern const struct era era_legacy, era_modern, era_admin;

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * JSON-RPC: what a line is, and how a request is answered, whatever its era. Who handles a method
 * is in era.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/jscan.h"
#include "daemon/daemon.h"
#include "daemon/revision.h"
#include "daemon/session.h"

enum {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	RPC_UNSUPPORTED_VERSION = -32022,
};

struct batch;

/*
 * How to answer one request. Moves with the request and ends in protocol_result(), protocol_error()
 * or protocol_drop(); reply_to_deinit() is for a daemon that ends while the request still waits.
 */
struct reply_to {
	uint64_t session;
	char *id; /* JSON token, NULL once answered */
	const struct revision *revision;
	struct batch *batch; /* NULL: answered by a line of its own */
};

#define REPLY_TO_NULL { 0 }

void reply_to_deinit(struct reply_to *to);

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
 * must exceed the last one sent (the caller's duty); `message` may be NULL. Left out while the
 * client does not read what it has.
 */
void protocol_progress(struct daemon *d, const struct reply_to *to, const char *token,
	double progress, const char *message, size_t message_len);

/* Sends a notification; `params` is the JSON text of an object, NULL: none. */
void protocol_notify(struct session *s, const char *method, const char *params);

/* Handles one line of a session: called by session.c. `line` is writable, `len` bytes. */
void protocol_dispatch(struct session *s, char *line, size_t len);

/* A line exceeded MAX_MESSAGE_BYTES; `head` are its first bytes, for its id. */
void protocol_refuse_too_long(struct session *s, const char *head, size_t len);

/* Handles one message: a whole line, or an element of a batch, which then collects the answer. */
void protocol_message(struct session *s, struct jspan message, struct batch *batch);

/* Answers what is no request: an error without an id, or with the one that could be made out. */
void protocol_refuse(struct session *s, struct batch *batch, struct jspan id, int code,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * An id as it is kept and sent back, owned by the caller: the token itself, a string in one
 * spelling, so that equal ids are equal texts. NULL when it is none, takes more than 1,024 bytes,
 * or memory is short.
 */
char *protocol_id(struct jspan token);

/* The session is gone: frees its listens. */
void protocol_session_gone(struct session *s);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The call queue: tools/call requests that wait for Python. Each session has a line of its own and
 * sessions take turns; one call runs at a time. A call leaves in one of three ways: it is handed
 * over to the Python half, cancelled, or past its deadline. Deadlines, progress and notices live
 * here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "daemon/catalog.h"
#include "daemon/protocol.h"

struct callq *callq_new(struct daemon *d);
struct callq *callq_free(struct callq *q);

/*
 * Takes a checked tools/call: `tool` from the catalog, `arguments` the raw JSON object (JSPAN_NULL:
 * none given), `progress_token` its raw token or JSPAN_NULL. Spans are copied; `to` is taken. All
 * failures from here on are tool results.
 */
void callq_submit(struct daemon *d, struct session *s, struct reply_to *to,
	const struct tool_ref *tool, struct jspan arguments, struct jspan progress_token);

/* True when that session has a call in flight under this raw id. */
bool callq_has(struct session *s, const char *id);

/*
 * notifications/cancelled: a waiting call leaves, a running one is interrupted; never answered
 * then.
 */
void callq_cancel(struct session *s, const char *id);

/*
 * The session sends nothing more: its waiting calls get a second's grace, a running one goes on.
 * Answers are still delivered while the session is found by its number. Called once, when the peer
 * has sent its end or the connection breaks; the session may be freed at any time afterwards, so
 * nothing may point to it.
 */
void callq_session_gone(struct session *s);

/* From bridge.c, on the loop thread. The reply is taken. */
void callq_on_reply(struct daemon *d, struct shell_reply *reply);

/* The daemon became ready, failed, or stops: start, or answer, what waits. */
void callq_on_state(struct daemon *d);

/* The session has listed its tools: an answer held for that may go. */
void callq_on_list(struct session *s);

/* Interrupts what runs, for a person; false when nothing runs. */
bool callq_interrupt(struct daemon *d);

/* Facts for status lines; strings are borrowed and live until the next turn of the loop. */
struct callq_status {
	bool is_running;
	const char *tool;
	uint64_t session;
	double running_s;
	bool is_overdue;       /* its deadline passed, it was answered, it still runs */
	unsigned n_interrupts; /* how often it was interrupted */
	size_t n_waiting;
	uint64_t n_calls; /* ended since the start */
};

/* Fills *ret with the facts of this moment. */
void callq_status(struct daemon *d, struct callq_status *ret);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the shim must know of a conversation to carry it over to another daemon. Fed with each line
 * in either direction; reads no descriptor and writes none, it only says which lines go on and
 * appends lines of its own to buffers.
 *
 * After a loss: replay_lose(), connect, replay_begin(), lines of the new daemon through
 * replay_on_daemon_line() until replay_is_settled(), replay_end(), and then the client's lines
 * again.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

struct replay;

enum replay_verdict {
	REPLAY_PASS, /* the line goes on */
	REPLAY_DROP, /* it ends here */
	REPLAY_FAIL, /* the conversation cannot go on, see replay_failure() */
};

/* NULL when memory is short. */
struct replay *replay_new(void);
struct replay *replay_free(struct replay *r);

/*
 * The profile that lost calls are answered in: "full", "compact", "text", or NULL while it is not
 * known. Static or outliving `r`.
 */
void replay_set_profile(struct replay *r, const char *profile);

/* A line, without its newline, that is about to go to the daemon, or that came from it. */
enum replay_verdict replay_on_client_line(struct replay *r, const char *line, size_t len);
enum replay_verdict replay_on_daemon_line(struct replay *r, const char *line, size_t len);

/* The connection is gone: appends the answers to what was in flight. Harmless when nothing was. */
void replay_lose(struct replay *r, struct buf *to_client);

/* A new daemon is connected: appends what it must hear first. */
void replay_begin(struct replay *r, struct buf *to_daemon);

/* Whether all that replay_begin() asked has been answered. */
bool replay_is_settled(const struct replay *r);

/*
 * The new daemon knows the conversation: appends what tells the client that its lists may be stale.
 */
void replay_end(struct replay *r, struct buf *to_client);

/* Whether every request has been answered, but for listen requests, which stay open. */
bool replay_is_idle(const struct replay *r);

/* Whether the client has begun a conversation that it would have to begin again elsewhere. */
bool replay_has_begun(const struct replay *r);

/* Appends the answers to a client's line that no daemon will get. */
void replay_refuse(struct replay *r, const char *line, size_t len, const char *reason,
	struct buf *to_client);

/* Why a verdict was REPLAY_FAIL; static text. */
const char *replay_failure(const struct replay *r);

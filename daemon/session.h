/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sessions: one attached client each. A session is known to others by its number, which is never
 * reused; work that outlives a session finds out so by session_find() returning NULL.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "daemon/config.h"
#include "daemon/daemon.h"

struct revision;

/* An open subscriptions/listen request. */
struct listen {
	struct listen *next;
	char *id; /* JSON token */
	bool wants_tools;
	uint64_t told_at; /* as struct session's */
};

struct session {
	uint64_t id;
	struct daemon *daemon;
	struct bufferevent *bev; /* NULL once the connection is closed */
	struct session *prev, *next;
	pid_t peer_pid;

	/* Protocol (protocol.c, era-*.c). */
	bool has_spoken;                        /* a message came: too late for an attach line */
	const struct revision *legacy_revision; /* set by initialize */
	bool is_initialized;                    /* notifications/initialized came */
	struct listen *listens;
	size_t n_listens;

	/* Attach line (attach.c); before it: the daemon's profile, no directory. */
	bool is_attached;
	enum profile profile;
	bool reads_json; /* takes a text that is JSON for structured content (common/wire.h) */
	char *cwd;
	char *client_version;

	/* Calls (callq.c). */
	void *callq_slot;       /* callq.c's own, NULL when it has none */
	uint64_t cells_seen;    /* cells that all sessions had run at this one's last call */
	uint64_t own_cells;     /* not counted as others' */
	bool has_notice_pending_resume;  /* say "the namespace is new" in the next answer */
	bool has_notice_pending_version; /* say that versions differ in the next answer */

	/* Changes of the list (notify.c). */
	uint64_t told_at;       /* session_queued() when it was last told of a change */
	uint64_t told_revision; /* of the catalog, that it was last told of; 0: never told */
	uint64_t list_revision; /* of the catalog, when it last listed */
	bool lists_no_more;     /* was told and did not list until the next change */

	/* session.c's own. */
	void *priv;
};

struct sessions *sessions_new(struct daemon *d);
struct sessions *sessions_free(struct sessions *s);
/* Attached sessions. */
size_t sessions_count(const struct sessions *s);

/*
 * Takes a connected, peer-checked descriptor. 0, or a negative errno and the descriptor is closed.
 */
int session_new(struct daemon *d, int fd);

/* NULL when that session is gone. */
struct session *session_find(struct daemon *d, uint64_t id);

/* First of all sessions, linked by `next`; NULL when there is none. */
struct session *session_first(struct daemon *d);

/*
 * Queues one line, which must hold no newline; the newline is added. `line` is emptied. A session
 * whose peer is gone drops it; one that does not read stops being read from, and is closed when its
 * backlog exceeds the bound.
 */
void session_send(struct session *s, struct buf *line);

/* Bytes queued for the session so far, and whether all of the first `mark` have left us. */
uint64_t session_queued(const struct session *s);
bool session_has_written(const struct session *s, uint64_t mark);

/* True while the peer reads so little that what can be left out should be. */
bool session_is_congested(const struct session *s);

/*
 * A request was taken, or has been answered or dropped. A session whose peer has sent its end
 * lives, for a second at most, until none is left.
 */
void session_begin_request(struct session *s);
void session_end_request(struct session *s);
unsigned session_n_requests(const struct session *s);

/* Ends the session on the loop's next turn; what is queued is written first when `flush`. */
void session_close(struct session *s, bool flush);

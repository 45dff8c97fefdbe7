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
	char *id; /* raw JSON token */
	bool wants_tools;
};

struct session {
	uint64_t id;
	struct daemon *daemon;
	struct bufferevent *bev; /* NULL once the connection is closed */
	struct session *prev, *next;
	pid_t peer_pid;

	/* Protocol (protocol.c, era-*.c). */
	const struct revision *legacy_revision; /* set by initialize */
	bool is_initialized;                    /* notifications/initialized came */
	struct listen *listens;
	size_t n_listens;

	/* Attach line (protocol.c); before it: the daemon's profile, no directory. */
	bool is_attached;
	enum profile profile;
	char *cwd;
	char *client_version;

	/* Calls (callq.c). */
	void *callq_slot;       /* callq.c's own, NULL when it has none */
	uint64_t cells_seen;    /* cells that all sessions had run at this one's last call */
	uint64_t own_cells;     /* not counted as others' */
	bool has_notice_pending_resume;  /* say "the namespace is new" in the next answer */
	bool has_notice_pending_version; /* say that versions differ in the next answer */
	uint64_t list_revision; /* catalog revision that this session last listed (notify.c) */
	bool did_list_after_change;

	/* session.c's own. */
	void *priv;
};

struct sessions *sessions_new(struct daemon *d);
struct sessions *sessions_free(struct sessions *s);
size_t sessions_count(const struct sessions *s);

/* Takes a connected, peer-checked descriptor. 0, or a negative errno and the descriptor is closed. */
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

/* Ends the session on the loop's next turn; what is queued is written first when `flush`. */
void session_close(struct session *s, bool flush);

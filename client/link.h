/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The shim's way to a daemon, and from one daemon to the next. Never waits; link_advance() is
 * called once per turn of the relay's loop and at link_deadline().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/frame.h"
#include "client/attach.h"
#include "client/relay.h"
#include "client/replay.h"
#include "client/stream.h"

enum link_state {
	LINK_ATTACHING, /* no daemon yet, or no longer */
	LINK_RESUMING,  /* connected; the new daemon learns the conversation */
	LINK_STEADY,    /* the client's lines go through */
	LINK_REFUSING,  /* there will be no daemon, see `failure` and `exit_code` */
	LINK_OVER,      /* the client has ended, and now the daemon's end has come */
};

struct link {
	const struct relay_options *options;
	struct replay *replay;
	struct buf *to_client; /* for lines that we say ourselves */
	enum link_state state;
	int64_t now_ms;

	int fd; /* -1: not connected */
	struct frame in;
	struct stream out;
	bool is_deaf;     /* the daemon takes nothing any more; it may still say something */
	bool is_answered; /* the first line of this daemon has come */
	pid_t pid;        /* of the daemon we know, when it binds its own socket; 0: not known */

	struct attach attach;
	bool was_attached;    /* to any daemon */
	bool has_warned;      /* of differing startup variables */
	bool is_parked;       /* ATTACHING: no attempt until the client wants something */
	int64_t retry_ms;     /* ATTACHING: when to go on */
	int64_t connected_ms; /* since when */
	int64_t lost_ms;      /* the last one that knew the conversation went, or we began */
	int backoff_ms;
	unsigned n_short_lives;

	const char *failure;
	char *message; /* what `failure` points to, when it is ours to free */
	int exit_code;
};

/* What is pointed at must outlive the link. Connects in link_advance(). */
void link_init(struct link *l, const struct relay_options *options, struct replay *replay,
	struct buf *to_client);
void link_deinit(struct link *l);

/* Goes on with what is due. `is_wanted`: a line of the client's is waiting. */
void link_advance(struct link *l, int64_t now_ms, bool is_wanted);

/* When link_advance() is due at the latest; INT64_MAX: not at all. */
int64_t link_deadline(const struct link *l);

/*
 * The daemon's end of the connection has come. `is_last`: the client has ended, no other is needed.
 */
void link_lose(struct link *l, bool is_last);

/* A line from the daemon: whether it goes to the client. */
enum replay_verdict link_on_line(struct link *l, const char *line, size_t len);

/* Sends what the daemon takes. True when it took something. */
bool link_flush(struct link *l);

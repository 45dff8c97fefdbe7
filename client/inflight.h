/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The client's requests that the daemon has not answered, and for a while those that none ever
 * will.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/jscan.h"

enum request_kind {
	REQUEST_OTHER,
	REQUEST_CALL,       /* tools/call */
	REQUEST_INITIALIZE, /* sent again when it was in flight */
	REQUEST_LISTEN,     /* stays open; sent again whenever a daemon is new */
	REQUEST_LOST,       /* answered by the shim; kept because a cancel may still come */
};

struct request {
	struct request *next;
	char *id; /* raw */
	enum request_kind kind;
	bool is_modern;
	unsigned batch; /* number of the array it came in; 0: a line of its own */
	char *line;     /* INITIALIZE and LISTEN: what is sent again */

	/* LISTEN. */
	bool wants_tools; /* toolsListChanged */
	bool is_acked;    /* the client has seen the acknowledgement */
	bool awaits_ack;  /* sent again; the second acknowledgement is swallowed */
};

struct inflight {
	struct request *first, **last; /* in the order sent */
	size_t n_lost;
};

void inflight_init(struct inflight *t);
void inflight_deinit(struct inflight *t);

/* Adds a request; `line` is copied unless it is JSPAN_NULL. NULL when memory is short. */
struct request *inflight_add(struct inflight *t, struct jspan id, enum request_kind kind,
	struct jspan line);

/*
 * The link that points to the request with that id, spelled the same; what it points to is NULL
 * when there is none.
 */
struct request **inflight_find(struct inflight *t, struct jspan id);

/* Removes and frees what the link points to; the link then points to the next one. */
void inflight_remove(struct inflight *t, struct request **at);

/* The request has been answered by the shim. Frees the oldest of many such ones. */
void inflight_lose(struct inflight *t, struct request *q);

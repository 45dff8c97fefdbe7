/* SPDX-License-Identifier: MIT */
#pragma once

/* Output that never waits: what a descriptor does not take at once is kept and sent later. */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

enum stream_kind {
	STREAM_UNKNOWN, /* found out at the first write */
	STREAM_SOCKET,
	STREAM_NONBLOCKING, /* an open file description of our own */
	STREAM_SLOW,        /* may block: small pieces, and only when poll() says so */
	STREAM_FILE,        /* never blocks in any sense that matters */
};

struct stream {
	int fd;     /* as given */
	int own_fd; /* the same file with flags of our own, or -1 */
	enum stream_kind kind;
	struct buf data; /* to append to */
	size_t sent;     /* bytes of it that are gone */
};

/* `fd` stays the caller's, with all its flags: it may be shared with other processes. */
void stream_init(struct stream *s, int fd);
void stream_deinit(struct stream *s);

/* Writes what can be written. 0, or a negative errno when nobody will ever read it. */
int stream_flush(struct stream *s);

static inline size_t stream_pending(const struct stream *s) {
	return s->data.len - s->sent;
}

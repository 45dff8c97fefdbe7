/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bytes in, whole lines out. For plain descriptors; the daemon's sessions use it on what libevent
 * read, too, so that the size limit lives here alone.
 */

#include <stdbool.h>
#include <stddef.h>

struct frame {
	char *data;
	size_t start, end, cap; /* unread bytes lie in [start, end) */
	size_t scanned;         /* bytes after start known to hold no newline */
	size_t max_line;        /* longest line, in bytes, newline excluded */
	bool is_skipping;       /* the rest of an overlong line is being dropped */
};

#define FRAME_NULL { 0 }

enum frame_result {
	FRAME_LINE,     /* *ret_line is a whole line, newline and one \r before it removed */
	FRAME_MORE,     /* no whole line yet */
	FRAME_TOO_LONG, /* the current line has exceeded max_line; only frame_skip() helps */
};

void frame_init(struct frame *f, size_t max_line);
void frame_deinit(struct frame *f);

/* Appends bytes. 0 or -ENOMEM. */
int frame_push(struct frame *f, const void *data, size_t len);

/* Room for at least `len` bytes to read into, NULL when memory is short; then frame_commit(). */
char *frame_reserve(struct frame *f, size_t len);
void frame_commit(struct frame *f, size_t len);

/*
 * The next line: writable, not terminated, valid until the next call on `f`. Empty lines are
 * returned as such. Memory that one giant line needed is given back afterwards.
 */
enum frame_result frame_next(struct frame *f, char **ret_line, size_t *ret_len);

/* Drops the overlong line as far as it has come, and the rest of it as it comes. */
void frame_skip(struct frame *f);

/* Bytes held of a line that is not whole yet. */
size_t frame_pending(const struct frame *f);

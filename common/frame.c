/* SPDX-License-Identifier: MIT */
/*
 * Line Framing
 *
 * Bytes are appended at `end` and lines leave at `start`; what is left is moved to the front only
 * when room is needed, so a burst of small lines costs one move. A search for the newline never
 * looks at a byte twice, however slowly a long line comes. The size limit for a line lives here and
 * nowhere else.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"

enum {
	FIRST_CAP = 4096,
	KEPT_CAP = 256 * 1024, /* more than this is given back once it is empty */
};

void frame_init(struct frame *f, size_t max_line) {
	*f = (struct frame){ .max_line = max_line };
}

void frame_deinit(struct frame *f) {
	free(f->data);
	*f = (struct frame)FRAME_NULL;
}

/* Gives back what a giant line needed, once nothing of it is left. */
static void frame_trim(struct frame *f) {
	if (f->start != f->end)
		return;
	f->start = f->end = f->scanned = 0;
	if (f->cap > KEPT_CAP) {
		free(f->data);
		f->data = NULL;
		f->cap = 0;
	}
}

char *frame_reserve(struct frame *f, size_t len) {
	size_t held = f->end - f->start, cap = f->cap ? f->cap : FIRST_CAP, need;
	char *data;

	frame_trim(f);
	if (f->data && len <= f->cap - f->end)
		return f->data + f->end;
	if (f->start) {
		memmove(f->data, f->data + f->start, held);
		f->start = 0;
		f->end = held;
		if (len <= f->cap - f->end)
			return f->data + f->end;
	}

	if (__builtin_add_overflow(held, len, &need))
		return NULL;
	while (cap < need)
		if (__builtin_mul_overflow(cap, 2, &cap))
			return NULL;
	data = realloc(f->data, cap);
	if (!data)
		return NULL;
	f->data = data;
	f->cap = cap;
	return data + f->end;
}

void frame_commit(struct frame *f, size_t len) {
	f->end += len;
}

int frame_push(struct frame *f, const void *data, size_t len) {
	char *at = frame_reserve(f, len);

	if (!at)
		return -ENOMEM;
	memcpy(at, data, len);
	f->end += len;
	return 0;
}

enum frame_result frame_next(struct frame *f, char **ret_line, size_t *ret_len) {
	char *line, *newline;
	size_t len;

	frame_trim(f);
	if (f->start == f->end)
		return FRAME_MORE;

	line = f->data + f->start;
	newline = memchr(line + f->scanned, '\n', f->end - f->start - f->scanned);
	if (f->is_skipping) {
		if (!newline) {
			f->start = f->end;
			frame_trim(f);
			return FRAME_MORE;
		}
		f->is_skipping = false;
		f->start += (size_t)(newline - line) + 1;
		f->scanned = 0;
		return frame_next(f, ret_line, ret_len);
	}

	len = newline ? (size_t)(newline - line) : f->end - f->start;
	if (!newline)
		f->scanned = len;
	if (len > f->max_line)
		return FRAME_TOO_LONG;
	if (!newline)
		return FRAME_MORE;

	f->start += len + 1;
	f->scanned = 0;
	if (len && line[len - 1] == '\r')
		len--;
	*ret_line = line;
	*ret_len = len;
	return FRAME_LINE;
}

void frame_skip(struct frame *f) {
	f->is_skipping = true;
	f->scanned = 0;
}

size_t frame_pending(const struct frame *f) {
	return f->end - f->start;
}

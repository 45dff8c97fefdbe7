/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Text collected within bounds: the first code points, the last ones, and how many there were in
 * all. The current line stays apart until it ends, because a terminal would let later text
 * overwrite it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* A beginning, an end, a count. While `chars` <= head_chars the head is everything. */
struct part {
	struct buf head, tail;
	size_t head_chars;
	size_t tail_chars; /* may exceed the bound for a while; part_trim() */
	uint64_t chars;
};

struct collect {
	size_t max_head, max_tail; /* code points */
	struct part done;          /* whole lines */
	struct part line;          /* the current one */
	char last[256]; /* beginning of the last line that was not blank, cut at a code point */
	size_t last_len;
	bool is_fresh; /* something came since collect_last_line() */
};

void collect_init(struct collect *c, size_t max_head, size_t max_tail);
void collect_deinit(struct collect *c);

/* Appends valid UTF-8 to the current line; `text` holds no newline. */
void collect_add(struct collect *c, const char *text, size_t len);

/* Appends text that ends in a newline and may hold more of them. */
void collect_add_lines(struct collect *c, const char *text, size_t len);

/* The current line begins anew; or its last code point goes, unless the line is overlong. */
void collect_discard_line(struct collect *c);
void collect_backspace(struct collect *c);

/* Appends all of `from`, which ends up empty. The current lines of both are taken as they are. */
void collect_append(struct collect *c, struct collect *from);

/* True when nothing was collected. */
bool collect_is_empty(const struct collect *c);

/* Code points that the head has no room for, so far. */
uint64_t collect_omitted(const struct collect *c);

/*
 * Ends collecting: hands out the head and the last code points of what it omits. The collector is
 * empty afterwards. False when memory was short on the way: then the texts are not whole.
 */
bool collect_take(struct collect *c, struct buf *ret_head, struct buf *ret_tail,
	uint64_t *ret_omitted);

/*
 * The line that a progress message shows: the current one, else the last; borrowed until the next
 * call.
 */
bool collect_last_line(struct collect *c, const char **ret_line, size_t *ret_len);

/* The same, whether something came since or not. */
bool collect_peek_line(struct collect *c, const char **ret_line, size_t *ret_len);

/* SPDX-License-Identifier: MIT */
/*
 * Collecting Text Within Bounds
 *
 * A part keeps a head of at most max_head code points and, of what comes after it, the last
 * max_tail; in between it only counts. Two parts can be joined exactly, because a part whose head
 * is not all of it has a head that is full: joined to something, that head fills the other's, too.
 *
 * So a line that will perhaps be overwritten is a part of its own until its newline, however long
 * it is, and is then joined to the whole lines before it, or dropped without a trace in the count.
 */

#include <string.h>

#include "common/utf8.h"
#include "daemon/collect.h"

static void part_deinit(struct part *p) {
	buf_deinit(&p->head);
	buf_deinit(&p->tail);
	*p = (struct part){ 0 };
}

/* Empties it and keeps its memory. */
static void part_clear(struct part *p) {
	buf_clear(&p->head);
	buf_clear(&p->tail);
	p->head_chars = p->tail_chars = 0;
	p->chars = 0;
}

/* The last `n` code points of `text`. */
static const char *last_chars(const char *text, size_t len, size_t n) {
	const char *at = text + len;

	while (n && at > text) {
		at--;
		n -= (*at & 0xc0) != 0x80;
	}
	return at;
}

/* Brings the tail down to its bound. */
static void part_trim(struct part *p, size_t max_tail) {
	size_t drop;

	if (p->tail_chars <= max_tail)
		return;
	drop = utf8_prefix(p->tail.data, p->tail.len, p->tail_chars - max_tail);
	memmove(p->tail.data, p->tail.data + drop, p->tail.len - drop);
	p->tail.len -= drop;
	p->tail_chars = max_tail;
}

static void part_add(struct part *p, const struct collect *c, const char *text, size_t len) {
	size_t chars = utf8_count(text, len);

	/* Also because an empty text is a null pointer. */
	if (!len)
		return;
	p->chars += chars;
	if (p->head_chars < c->max_head) {
		size_t room = c->max_head - p->head_chars;
		size_t taken = chars <= room ? len : utf8_prefix(text, len, room);

		buf_add(&p->head, text, taken);
		p->head_chars += chars <= room ? chars : room;
		text += taken;
		len -= taken;
		chars -= chars <= room ? chars : room;
	}
	if (!chars)
		return;

	if (chars >= c->max_tail) {
		const char *at = last_chars(text, len, c->max_tail);

		buf_clear(&p->tail);
		buf_add(&p->tail, at, len - (size_t)(at - text));
		p->tail_chars = c->max_tail;
		return;
	}
	buf_add(&p->tail, text, len);
	p->tail_chars += chars;
	/* Only now and then: moving the tail costs as much as it is long. */
	if (p->tail_chars > 2 * c->max_tail)
		part_trim(p, c->max_tail);
}

static void part_join(struct part *p, const struct collect *c, const struct part *next) {
	uint64_t gap = next->chars - next->head_chars - next->tail_chars;

	part_add(p, c, next->head.data, next->head.len);
	if (gap) {
		/* What was in the tail is no longer near the end. */
		buf_clear(&p->tail);
		p->tail_chars = 0;
		p->chars += gap;
	}
	part_add(p, c, next->tail.data, next->tail.len);
}

void collect_init(struct collect *c, size_t max_head, size_t max_tail) {
	*c = (struct collect){ .max_head = max_head, .max_tail = max_tail };
}

void collect_deinit(struct collect *c) {
	part_deinit(&c->done);
	part_deinit(&c->line);
}

/*
 * Remembers the last line of a text for progress messages; false when all of it is blank. `begun`:
 * the text goes on with the line that was remembered last.
 */
static bool note_line(struct collect *c, const char *text, size_t len, bool begun) {
	const char *newline, *line;
	size_t room;

	while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	if (!len)
		return false;
	newline = memrchr(text, '\n', len);
	line = newline ? newline + 1 : text;
	len -= (size_t)(line - text);
	if (newline || !begun)
		c->last_len = 0;
	room = sizeof(c->last) - c->last_len;
	if (len > room)
		for (len = room; len && (line[len] & 0xc0) == 0x80; len--)
			;
	memcpy(c->last + c->last_len, line, len);
	c->last_len += len;
	return true;
}

void collect_add(struct collect *c, const char *text, size_t len) {
	part_add(&c->line, c, text, len);
	c->is_fresh = true;
}

void collect_add_lines(struct collect *c, const char *text, size_t len) {
	bool has_begun = false;

	if (c->line.chars) {
		has_begun = note_line(c, c->line.head.data, c->line.head.len, false);
		part_join(&c->done, c, &c->line);
		part_clear(&c->line);
	}
	part_add(&c->done, c, text, len);
	note_line(c, text, len, has_begun);
	c->is_fresh = true;
}

void collect_discard_line(struct collect *c) {
	part_clear(&c->line);
}

void collect_backspace(struct collect *c) {
	struct part *p = &c->line;

	/*
	 * In a line longer than the head a character that is taken back could not be made up for.
	 */
	if (!p->chars || p->chars > p->head_chars)
		return;
	p->head.len = (size_t)(last_chars(p->head.data, p->head.len, 1) - p->head.data);
	p->head_chars--;
	p->chars--;
}

void collect_append(struct collect *c, struct collect *from) {
	part_join(&c->line, c, &from->done);
	part_join(&c->line, c, &from->line);
	part_join(&c->done, c, &c->line);
	part_clear(&c->line);
	part_clear(&from->done);
	part_clear(&from->line);
	c->is_fresh |= from->is_fresh;
}

bool collect_is_empty(const struct collect *c) {
	return !c->done.chars && !c->line.chars;
}

uint64_t collect_omitted(const struct collect *c) {
	uint64_t chars = c->done.chars + c->line.chars;

	return chars > c->max_head ? chars - c->max_head : 0;
}

bool collect_take(struct collect *c, struct buf *ret_head, struct buf *ret_tail,
	uint64_t *ret_omitted) {
	bool is_whole;

	part_join(&c->done, c, &c->line);
	part_clear(&c->line);
	part_trim(&c->done, c->max_tail);
	is_whole = !c->done.head.has_failed && !c->done.tail.has_failed &&
		   !c->line.head.has_failed && !c->line.tail.has_failed;
	*ret_omitted = c->done.chars - c->done.head_chars;
	*ret_head = c->done.head;
	*ret_tail = c->done.tail;
	c->done = (struct part){ 0 };
	part_deinit(&c->line);
	c->is_fresh = false;
	return is_whole;
}

bool collect_peek_line(struct collect *c, const char **ret_line, size_t *ret_len) {
	if (c->line.chars)
		note_line(c, c->line.head.data, c->line.head.len, false);
	if (!c->last_len)
		return false;
	*ret_line = c->last;
	*ret_len = c->last_len;
	return true;
}

bool collect_last_line(struct collect *c, const char **ret_line, size_t *ret_len) {
	if (!c->is_fresh || !collect_peek_line(c, ret_line, ret_len))
		return false;
	c->is_fresh = false;
	return true;
}

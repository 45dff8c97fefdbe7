/* SPDX-License-Identifier: MIT */
/*
 * Requests in Flight
 *
 * A list in the order sent: answers come in nearly the same order, so what is looked for is near
 * the front. Ids stay raw JSON tokens: 1 and "1" are two ids, and integers have any size.
 *
 * A lost request stays for its cancel, which would mean nothing to a daemon that never knew it.
 * Agents send it soon or not at all, so few of them are kept.
 */

#include <stdlib.h>
#include <string.h>

#include "client/inflight.h"

enum { MAX_LOST = 64 /* as many calls as a daemon lets a session have waiting */ };

void inflight_init(struct inflight *t) {
	*t = (struct inflight){ .last = &t->first };
}

void inflight_deinit(struct inflight *t) {
	while (t->first)
		inflight_remove(t, &t->first);
}

static void request_free(struct request *q) {
	free(q->id);
	free(q->line);
	free(q);
}

struct request *inflight_add(struct inflight *t, struct jspan id, enum request_kind kind,
	struct jspan line) {
	struct request *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->kind = kind;
	q->id = jspan_copy(id);
	q->line = jspan_copy(line);
	if (!q->id || (line.at && !q->line)) {
		request_free(q);
		return NULL;
	}
	*t->last = q;
	t->last = &q->next;
	return q;
}

struct request **inflight_find(struct inflight *t, struct jspan id) {
	struct request **at = &t->first;

	while (*at && !jspan_is_word(id, (*at)->id))
		at = &(*at)->next;
	return at;
}

void inflight_remove(struct inflight *t, struct request **at) {
	struct request *q = *at;

	*at = q->next;
	if (t->last == &q->next)
		t->last = at;
	if (q->kind == REQUEST_LOST)
		t->n_lost--;
	request_free(q);
}

void inflight_lose(struct inflight *t, struct request *q) {
	struct request **at = &t->first;

	q->kind = REQUEST_LOST;
	if (++t->n_lost <= MAX_LOST)
		return;
	while ((*at)->kind != REQUEST_LOST)
		at = &(*at)->next;
	inflight_remove(t, at);
}

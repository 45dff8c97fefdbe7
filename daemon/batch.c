/* SPDX-License-Identifier: MIT */
/*
 * Batches
 *
 * One revision allows several messages in an array, to be answered by an array. Each element is
 * handled as if it had come alone; its request points to the batch, which collects the answers and
 * leaves when the last is there. While elements are still being handed out, the batch counts as one
 * that is expected, so that it neither leaves nor vanishes too early.
 *
 * Answers that would make the line longer than MAX_REPLY_BYTES go into a further array: that loses
 * nothing, and some clients hang up above their own limit.
 */

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/batch.h"

/* A batch is handled in one turn of the loop: it must not keep the others waiting. */
enum { MAX_ELEMENTS = 1000 };

struct batch {
	struct daemon *daemon;
	uint64_t session;
	size_t n_expected;
	struct buf line;
};

/* Sends the answers collected so far. */
static void batch_send(struct batch *b) {
	struct session *s = session_find(b->daemon, b->session);

	buf_add_char(&b->line, ']');
	if (s)
		session_send(s, &b->line);
	buf_deinit(&b->line);
}

void batch_expect(struct batch *b) {
	b->n_expected++;
}

void batch_settle(struct batch *b, const struct buf *answer) {
	if (answer) {
		size_t max = b->daemon->settings.max_reply_bytes;

		if (b->line.len && b->line.len + answer->len + 2 > max)
			batch_send(b);
		buf_add_char(&b->line, b->line.len ? ',' : '[');
		buf_add(&b->line, answer->data, answer->len);
		b->line.has_failed |= answer->has_failed;
	}
	if (--b->n_expected)
		return;
	if (b->line.len)
		batch_send(b);
	free(b);
}

void batch_dispatch(struct session *s, struct jspan array) {
	struct jspan element;
	size_t pos = 0, n = 0;
	struct batch *b;

	while (jscan_next(array, &pos, &element))
		n++;
	if (!n || n > MAX_ELEMENTS) {
		protocol_refuse(s, NULL, JSPAN_NULL, RPC_INVALID_REQUEST,
			"Invalid request: a batch must hold 1 to %d messages", MAX_ELEMENTS);
		return;
	}
	b = calloc(1, sizeof(*b));
	if (!b) {
		protocol_refuse(
			s, NULL, JSPAN_NULL, RPC_INTERNAL_ERROR, "Internal error: out of memory");
		return;
	}
	b->daemon = s->daemon;
	b->session = s->id;
	batch_expect(b);
	for (pos = 0; jscan_next(array, &pos, &element);)
		protocol_message(s, element, b);
	batch_settle(b, NULL);
}

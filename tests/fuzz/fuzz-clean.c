/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the output of a program: what is left is valid UTF-8 without control sequences,
 * within its bounds, and does not depend on how the bytes were cut into reads.
 */

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "daemon/clean.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_HEAD = 40, MAX_TAIL = 10 };

struct outcome {
	struct buf head, tail;
	uint64_t omitted;
};

static struct outcome feed(const char *bytes, size_t size, size_t piece, bool is_raw) {
	struct clean s = { .is_raw = is_raw };
	struct outcome o;
	struct collect c;

	collect_init(&c, MAX_HEAD, MAX_TAIL);
	for (size_t at = 0; at < size; at += piece)
		clean_feed(&s, &c, bytes + at, size - at < piece ? size - at : piece);
	clean_end(&s, &c);
	if (!collect_take(&c, &o.head, &o.tail, &o.omitted))
		abort();
	collect_deinit(&c);
	return o;
}

static bool is_same(const struct buf *a, const struct buf *b) {
	return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

/* Valid UTF-8; cleaned, no ESC, no C1 introducer and no \r. Returns the number of code points. */
static size_t check_text(const struct buf *b, bool is_raw) {
	size_t at = 0, n = 0, len;
	unsigned code;

	while (at < b->len) {
		len = utf8_decode(b->data + at, b->len - at, &code);
		if (!len || (!is_raw && (code == 0x1b || code == '\r' || code == 0x9b)))
			abort();
		at += len;
		n++;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const char *bytes = (const char *)data;

	for (int is_raw = 0; is_raw < 2; is_raw++) {
		struct outcome whole = feed(bytes, size, size ? size : 1, is_raw);
		size_t n_tail;

		if (check_text(&whole.head, is_raw) > MAX_HEAD)
			abort();
		n_tail = check_text(&whole.tail, is_raw);
		if (n_tail != (whole.omitted < MAX_TAIL ? whole.omitted : MAX_TAIL))
			abort();
		for (size_t piece = 1; piece < 8; piece += 2) {
			struct outcome cut = feed(bytes, size, piece, is_raw);

			if (cut.omitted != whole.omitted || !is_same(&cut.head, &whole.head) ||
				!is_same(&cut.tail, &whole.tail))
				abort();
			buf_deinit(&cut.head);
			buf_deinit(&cut.tail);
		}
		buf_deinit(&whole.head);
		buf_deinit(&whole.tail);
	}
	return 0;
}

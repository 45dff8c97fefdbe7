/* SPDX-License-Identifier: MIT */
/*
 * Each line as a JSON text, through jscan_check() and everything that walks text; and jansson's
 * verdict on the same bytes, which must be ours: what one of the two sees as an id, the other must
 * see, too.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/jscan.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_DEPTH = 50 };

static void walk(struct jspan value, unsigned depth) {
	struct jspan name, inner;
	size_t pos = 0;

	if (depth > MAX_DEPTH)
		return;
	free(jspan_decode(value, NULL));
	while (jscan_next_member(value, &pos, &name, &inner)) {
		if (jspan_equals(name, "id") && !jscan_get(value, "id").at)
			abort();
		(void)jspan_hash(name);
		walk(inner, depth + 1);
	}
	for (pos = 0; jscan_next(value, &pos, &inner);)
		walk(inner, depth + 1);
}

static bool jansson_takes(const char *text, size_t len) {
	json_t *json = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	bool is_taken = json != NULL;

	json_decref(json);
	return is_taken;
}

static void check_line(const char *line, size_t len) {
	/* Of the exact size, so that a sanitizer sees a byte too many. */
	auto_free char *text = malloc(len ? len : 1);
	enum jscan_result looked, checked;

	if (!text)
		abort();
	if (len)
		memcpy(text, line, len);
	(void)jscan_recover_id(text, len);
	walk(jscan_value(text, len), 0);

	looked = jscan_look(text, len, MAX_DEPTH);
	/* jansson takes a NUL for the end. */
	if (looked == JSCAN_SYNTAX && !memchr(text, '\0', len) && jansson_takes(text, len))
		abort();
	checked = jscan_check(text, len, MAX_DEPTH, NULL);
	/* Two unpaired surrogates are one and the same name once they are mended. */
	if (checked == JSCAN_DUPLICATE)
		return;
	if (checked != looked)
		abort();
	walk(jscan_value(text, len), 0);
	jscan_flatten_numbers(text, len);
	/* Of names, jansson takes none that holds a NUL. */
	if (checked == JSCAN_OK && !memmem(text, len, "\\u0000", 6) && !jansson_takes(text, len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	for (size_t at = 0; at < size;) {
		const uint8_t *newline = memchr(data + at, '\n', size - at);
		size_t len = newline ? (size_t)(newline - data) - at : size - at;

		check_line((const char *)data + at, len);
		at += len + 1;
	}
	return 0;
}

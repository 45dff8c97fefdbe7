/* SPDX-License-Identifier: MIT */
/*
 * Fingerprint
 *
 * Values are hashed not to hide them from the peer, which is the same user, but because only their
 * being equal matters and they may be long. An environment has few of our variables, so each next
 * one in order is searched for from the start: no list, no allocation.
 */

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fingerprint.h"

#define PREFIX "IPYTHON_MCP_"

/* Length of a startup variable's name; 0 when the entry is none. */
static size_t startup_name(const char *entry) {
	static const char *const others[] = { "PROFILE", "RUNTIME_DIR", "SOCKET", "LOG" };
	const size_t prefix = strlen(PREFIX);
	const char *equals;
	size_t len;

	if (strncmp(entry, PREFIX, prefix))
		return 0;
	equals = strchr(entry, '=');
	if (!equals)
		return 0;
	len = (size_t)(equals - entry);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (strlen(others[i]) == len - prefix &&
			!memcmp(entry + prefix, others[i], len - prefix))
			return 0;
	return len;
}

/* Orders two entries by their names alone. */
static int compare(const char *a, size_t a_len, const char *b, size_t b_len) {
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

/*
 * The entry whose name comes next after that of `last` (NULL: the first); a name's first one
 * counts.
 */
static const char *next_entry(char **environment, const char *last) {
	const char *best = NULL;
	size_t best_len = 0, last_len = last ? startup_name(last) : 0;

	for (char **at = environment; *at; at++) {
		size_t len = startup_name(*at);

		if (!len || (last && compare(*at, len, last, last_len) <= 0))
			continue;
		if (!best || compare(*at, len, best, best_len) < 0) {
			best = *at;
			best_len = len;
		}
	}
	return best;
}

static uint64_t hash(const char *s) {
	uint64_t value = 0xcbf29ce484222325;

	for (; *s; s++)
		value = (value ^ (unsigned char)*s) * 0x100000001b3;
	return value;
}

void fingerprint_write(struct buf *b, char **environment) {
	const char *entry = NULL;

	buf_add_char(b, '{');
	for (bool is_first = true; (entry = next_entry(environment, entry)); is_first = false) {
		size_t len = startup_name(entry);

		if (!is_first)
			buf_add_char(b, ',');
		buf_add_json_string(b, entry, len);
		buf_addf(b, ":\"%016" PRIx64 "\"", hash(entry + len + 1));
	}
	buf_add_char(b, '}');
}

bool fingerprint_has_any(char **environment) {
	return next_entry(environment, NULL) != NULL;
}

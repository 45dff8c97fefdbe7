/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A look at JSON text without building a tree: what both the daemon and the shim must see alike of
 * a line. Values stay where they are, as spans of the text, so that an id, a progress token or a
 * call's arguments keep their exact spelling: integers of any size, 1 and "1" apart.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A piece of the text; `at` is NULL when there is none. Valid as long as the text. */
struct jspan {
	const char *at;
	size_t len;
};

#define JSPAN_NULL ((struct jspan){ 0 })

enum jscan_result {
	JSCAN_OK,
	JSCAN_SYNTAX,     /* not one JSON value in strict UTF-8 without BOM and raw NUL */
	JSCAN_TOO_DEEP,   /* more than `max_depth` arrays and objects inside each other */
	JSCAN_DUPLICATE,  /* an object at the top or directly below it holds a name twice */
};

/*
 * Checks that the text is one JSON value and mends it in place: an escape of an unpaired surrogate
 * (\ud800) becomes \ufffd, in as many bytes. On failure *ret_offset (may be NULL) is where, in
 * bytes.
 */
enum jscan_result jscan_check(char *text, size_t len, unsigned max_depth, size_t *ret_offset);

/* The same check for text that goes on as it came: nothing is mended. */
enum jscan_result jscan_look(const char *text, size_t len, unsigned max_depth);

/*
 * In checked text, replaces each number that a 64-bit integer or a double may not hold by 0 and
 * blanks, in as many bytes, so that a parser with such limits can read the rest. Use on a copy.
 */
void jscan_flatten_numbers(char *text, size_t len);

/* The whole text as a span without blanks around it. */
struct jspan jscan_value(const char *text, size_t len);

/* The value of member `name` of an object; JSPAN_NULL when absent or when `object` is no object. */
struct jspan jscan_get(struct jspan object, const char *name);

/* Steps through an array: *pos starts at 0. False at the end and when `array` is no array. */
bool jscan_next(struct jspan array, size_t *pos, struct jspan *ret_value);

/* Steps through an object in the same way; the name keeps its quotes and escapes. */
bool jscan_next_member(struct jspan object, size_t *pos, struct jspan *ret_name,
	struct jspan *ret_value);

static inline bool jspan_is_string(struct jspan s) {
	return s.at && s.at[0] == '"';
}

static inline bool jspan_is_object(struct jspan s) {
	return s.at && s.at[0] == '{';
}

static inline bool jspan_is_array(struct jspan s) {
	return s.at && s.at[0] == '[';
}

/* The literal true, false or null, or a number, spelled exactly so. */
static inline bool jspan_is_word(struct jspan s, const char *word) {
	return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

/* An integer in JSON's sense of the id rules: digits and a sign, no fraction, no exponent. */
bool jspan_is_integer(struct jspan s);

/* True when the span is a string equal to `text`, escapes undone. */
bool jspan_equals(struct jspan s, const char *text);

/*
 * A hash of the string, escapes undone: equal strings have equal ones however they are spelled. Not
 * 0.
 */
uint64_t jspan_hash(struct jspan s);

/* The decoded string, NUL-terminated, owned by the caller; NULL when it is no string or memory is
 * short. `ret_len` (may be NULL) counts bytes: the string may hold NULs. */
char *jspan_decode(struct jspan s, size_t *ret_len);

/* A NUL-terminated copy of the raw text, owned by the caller; NULL when absent or out of memory. */
char *jspan_copy(struct jspan s);

/*
 * The id of a message that could not be checked, for its refusal: scans for a top-level "id" member
 * as far as the text is readable. JSPAN_NULL when there is none that can be sent back.
 */
struct jspan jscan_recover_id(const char *text, size_t len);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A byte buffer that grows. Running out of memory is remembered and reported once, at the end:
 * after `has_failed` is set, every call is a no-op, so a text is built without a check per line.
 */

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* not terminated; NULL while empty */
	size_t len;
	size_t cap;
	bool has_failed;
};

#define BUF_NULL { 0 }
#define auto_buf __attribute__((cleanup(buf_deinit)))

/* Frees the bytes and leaves an empty buffer. Accepts an empty one. */
void buf_deinit(struct buf *b);

/* Empties the buffer and keeps its memory. */
void buf_clear(struct buf *b);

/* Append bytes, a string without its NUL, a character, and what printf() makes of the format. */
void buf_add(struct buf *b, const void *data, size_t len);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_addf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Appends a number with at most three decimals, the same whatever the locale: user code may set one
 * that makes printf() write "1,5". `value` must be finite and within the range of a long.
 */
void buf_add_number(struct buf *b, double value);

/*
 * Makes room for `len` more bytes and returns where they go, NULL when memory is short. The caller
 * writes there and adds what it wrote to b->len.
 */
char *buf_reserve(struct buf *b, size_t len);

/*
 * Appends `s`, `len` bytes of UTF-8, as a JSON string with its quotes. Invalid UTF-8 (an encoded
 * surrogate included) becomes U+FFFD; U+0085, U+2028 and U+2029 are escaped, as are control
 * characters.
 */
void buf_add_json_string(struct buf *b, const char *s, size_t len);

/* The same between two quotes that the caller writes: for a string made of several pieces. */
void buf_add_json_chars(struct buf *b, const char *s, size_t len);

/*
 * Ends the text with a NUL (not counted in *ret_len), hands it to the caller, who frees it, and
 * leaves the buffer empty. NULL when the buffer has failed. `ret_len` may be NULL.
 */
char *buf_take(struct buf *b, size_t *ret_len);

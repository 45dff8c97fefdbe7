/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * UTF-8 by code points. An encoded surrogate, an overlong form and anything above U+10FFFF are
 * invalid.
 */

#include <stddef.h>

/*
 * Decodes the first code point of `len` bytes at `s` into *ret_code and returns how many bytes it
 * takes, 1 to 4; 0 when they do not begin with a valid one (a cut sequence included).
 */
size_t utf8_decode(const char *s, size_t len, unsigned *ret_code);

/* Number of code points in valid UTF-8. */
size_t utf8_count(const char *s, size_t len);

/* Bytes that the first `n` code points of valid UTF-8 take; `len` when there are not that many. */
size_t utf8_prefix(const char *s, size_t len, size_t n);

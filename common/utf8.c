/* SPDX-License-Identifier: MIT */
/*
 * UTF-8
 *
 * The public limits count code points, files and sockets carry bytes; the two meet here only.
 */

#include "common/utf8.h"

size_t utf8_decode(const char *s, size_t len, unsigned *ret_code) {
	const unsigned char *u = (const unsigned char *)s;
	static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned code;
	size_t n;

	if (!len)
		return 0;
	if (u[0] < 0x80) {
		*ret_code = u[0];
		return 1;
	}
	n = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
	if (u[0] < 0xc2 || u[0] > 0xf4 || n > len)
		return 0;

	code = u[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (u[i] & 0x3fu);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return n;
}

size_t utf8_count(const char *s, size_t len) {
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += (s[i] & 0xc0) != 0x80;
	return n;
}

size_t utf8_prefix(const char *s, size_t len, size_t n) {
	size_t i = 0;

	while (i < len) {
		if ((s[i] & 0xc0) != 0x80 && n-- == 0)
			break;
		i++;
	}
	return i;
}

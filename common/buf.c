/* SPDX-License-Identifier: MIT */
/*
 * Growing Buffer
 *
 * Capacity doubles, so building a text costs a constant per byte. JSON escaping copies runs of
 * plain bytes at once: base64 images and long outputs pass through here.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/utf8.h"

void buf_deinit(struct buf *b) {
	free(b->data);
	*b = (struct buf)BUF_NULL;
}

void buf_clear(struct buf *b) {
	b->len = 0;
}

char *buf_reserve(struct buf *b, size_t len) {
	size_t cap = b->cap ? b->cap : 64;
	char *data;

	if (b->has_failed)
		return NULL;
	if (len <= b->cap - b->len)
		return b->data + b->len;

	while (cap - b->len < len) {
		if (__builtin_mul_overflow(cap, 2, &cap)) {
			b->has_failed = true;
			return NULL;
		}
	}
	data = realloc(b->data, cap);
	if (!data) {
		b->has_failed = true;
		return NULL;
	}
	b->data = data;
	b->cap = cap;
	return data + b->len;
}

void buf_add(struct buf *b, const void *data, size_t len) {
	char *at;

	if (!len)
		return;
	at = buf_reserve(b, len);
	if (!at)
		return;
	memcpy(at, data, len);
	b->len += len;
}

void buf_add_str(struct buf *b, const char *s) {
	buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c) {
	buf_add(b, &c, 1);
}

void buf_addf(struct buf *b, const char *format, ...) {
	va_list args, again;
	char *at;
	int len;

	va_start(args, format);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, format, args);
	if (len < 0)
		b->has_failed = true;
	at = len < 0 ? NULL : buf_reserve(b, (size_t)len + 1);
	if (at) {
		vsnprintf(at, (size_t)len + 1, format, again);
		b->len += (size_t)len;
	}
	va_end(again);
	va_end(args);
}

void buf_add_number(struct buf *b, double value) {
	unsigned long thousandths = (unsigned long)((value < 0 ? -value : value) * 1000 + 0.5);
	char text[32];
	int len = snprintf(text, sizeof(text), "%s%lu.%03lu", value < 0 ? "-" : "",
		thousandths / 1000, thousandths % 1000);

	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	buf_add(b, text, (size_t)len);
}

/* Bytes that stand for themselves in a JSON string and need no look at their neighbours. */
static bool is_plain(unsigned char c) {
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void buf_add_json_chars(struct buf *b, const char *s, size_t len) {
	size_t i = 0;

	while (i < len) {
		unsigned char c = (unsigned char)s[i];
		size_t start = i, n;
		unsigned code;

		while (i < len && is_plain((unsigned char)s[i]))
			i++;
		buf_add(b, s + start, i - start);
		if (i == len)
			break;

		c = (unsigned char)s[i];
		if (c < 0x80) {
			static const char short_form[][2] = { { '"', '"' }, { '\\', '\\' },
				{ '\n', 'n' }, { '\r', 'r' }, { '\t', 't' }, { '\b', 'b' },
				{ '\f', 'f' } };
			size_t k;

			for (k = 0; k < sizeof(short_form) / sizeof(*short_form); k++)
				if (short_form[k][0] == (char)c)
					break;
			if (k < sizeof(short_form) / sizeof(*short_form))
				buf_add(b, (char[]){ '\\', short_form[k][1] }, 2);
			else
				buf_addf(b, "\\u%04x", c);
			i++;
			continue;
		}

		n = utf8_decode(s + i, len - i, &code);
		if (!n) {
			buf_add_str(b, "\xef\xbf\xbd");
			i++;
		} else {
			/*
			 * Line separators of other languages: a reader of lines must not see them.
			 */
			if (code == 0x85 || code == 0x2028 || code == 0x2029)
				buf_addf(b, "\\u%04x", code);
			else
				buf_add(b, s + i, n);
			i += n;
		}
	}
}

void buf_add_json_string(struct buf *b, const char *s, size_t len) {
	buf_add_char(b, '"');
	buf_add_json_chars(b, s, len);
	buf_add_char(b, '"');
}

char *buf_take(struct buf *b, size_t *ret_len) {
	char *data;

	if (!buf_reserve(b, 1)) {
		buf_deinit(b);
		return NULL;
	}
	data = b->data;
	data[b->len] = '\0';
	if (ret_len)
		*ret_len = b->len;
	*b = (struct buf)BUF_NULL;
	return data;
}

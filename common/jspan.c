/* SPDX-License-Identifier: MIT */
/*
 * JSON Spans
 *
 * Walking over text where it lies. Written for text that jscan_check() has let through, but nothing
 * here reads past the end of any text: broken text ends a walk early, nothing worse.
 */

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/jscan.h"

static bool is_blank(char c) {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c) {
	return c >= '0' && c <= '9';
}

static size_t skip_blanks(const char *s, size_t len, size_t at) {
	while (at < len && is_blank(s[at]))
		at++;
	return at;
}

/* The place after the string that begins at `at`; `len` when it does not end. */
static size_t skip_string(const char *s, size_t len, size_t at) {
	size_t from = at + 1;

	for (;;) {
		const char *quote = from < len ? memchr(s + from, '"', len - from) : NULL;
		size_t end, n_backslashes = 0;

		if (!quote)
			return len;
		end = (size_t)(quote - s);
		while (end - n_backslashes > from && s[end - n_backslashes - 1] == '\\')
			n_backslashes++;
		from = end + 1;
		if (n_backslashes % 2 == 0)
			return from;
	}
}

/* The place after the value that begins at `at`. */
static size_t skip_value(const char *s, size_t len, size_t at) {
	size_t depth = 0;

	if (at < len && s[at] == '"')
		return skip_string(s, len, at);
	if (at < len && s[at] != '{' && s[at] != '[') {
		while (at < len && !is_blank(s[at]) && s[at] != ',' && s[at] != '}' && s[at] != ']')
			at++;
		return at;
	}
	while (at < len) {
		char c = s[at];

		if (c == '"') {
			at = skip_string(s, len, at);
			continue;
		}
		at++;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			break;
	}
	return at;
}

struct jspan jscan_value(const char *text, size_t len) {
	size_t start = skip_blanks(text, len, 0);

	while (len > start && is_blank(text[len - 1]))
		len--;
	return len > start ? (struct jspan){ text + start, len - start } : JSPAN_NULL;
}

/* Where the next element or name begins, 0 at the end. */
static size_t next_item(struct jspan container, size_t pos) {
	size_t at = skip_blanks(container.at, container.len, pos ? pos : 1);

	if (pos && at < container.len && container.at[at] == ',')
		at = skip_blanks(container.at, container.len, at + 1);
	if (at >= container.len || container.at[at] == ']' || container.at[at] == '}' ||
		container.at[at] == ',')
		return 0;
	return at;
}

bool jscan_next(struct jspan array, size_t *pos, struct jspan *ret_value) {
	size_t at, end;

	if (!jspan_is_array(array))
		return false;
	at = next_item(array, *pos);
	if (!at)
		return false;
	end = skip_value(array.at, array.len, at);
	*ret_value = (struct jspan){ array.at + at, end - at };
	*pos = end;
	return true;
}

bool jscan_next_member(struct jspan object, size_t *pos, struct jspan *ret_name,
	struct jspan *ret_value) {
	size_t at, name_end, end;

	if (!jspan_is_object(object))
		return false;
	at = next_item(object, *pos);
	if (!at || object.at[at] != '"')
		return false;
	name_end = skip_string(object.at, object.len, at);
	*ret_name = (struct jspan){ object.at + at, name_end - at };

	at = skip_blanks(object.at, object.len, name_end);
	if (at >= object.len || object.at[at] != ':')
		return false;
	at = skip_blanks(object.at, object.len, at + 1);
	end = skip_value(object.at, object.len, at);
	if (end == at)
		return false;
	*ret_value = (struct jspan){ object.at + at, end - at };
	*pos = end;
	return true;
}

struct jspan jscan_get(struct jspan object, const char *name) {
	struct jspan at, value;
	size_t pos = 0;

	while (jscan_next_member(object, &pos, &at, &value))
		if (jspan_equals(at, name))
			return value;
	return JSPAN_NULL;
}

bool jspan_is_integer(struct jspan s) {
	size_t i = 0;

	if (!s.at)
		return false;
	if (i < s.len && s.at[i] == '-')
		i++;
	if (i == s.len)
		return false;
	for (; i < s.len; i++)
		if (!is_digit(s.at[i]))
			return false;
	return true;
}

/* The value of up to four hex digits; a check has seen that they are some. */
static unsigned hex4(const char *s, size_t len) {
	unsigned value = 0;

	for (size_t i = 0; i < 4 && i < len; i++)
		value = value << 4 | ((unsigned)(is_digit(s[i]) ? s[i] : s[i] + 9) & 0xf);
	return value;
}

static size_t put_utf8(unsigned code, char out[4]) {
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (char)(lead[n] | code);
	return n;
}

/*
 * The next piece of a string's text at *at, between the quotes: a plain byte or what an escape
 * stands for, up to four bytes. 0 at the end.
 */
static size_t next_piece(struct jspan s, size_t *at, char out[4]) {
	static const char escaped[] = "bfnrt", meant[] = "\b\f\n\r\t";
	const char *which;
	unsigned code;

	if (*at + 1 >= s.len)
		return 0;
	out[0] = s.at[(*at)++];
	if (out[0] != '\\')
		return 1;
	out[0] = s.at[(*at)++];
	if (out[0] != 'u') {
		which = out[0] ? strchr(escaped, out[0]) : NULL;
		if (which)
			out[0] = meant[which - escaped];
		return 1;
	}
	code = hex4(s.at + *at, s.len - *at);
	*at = *at + 4 < s.len ? *at + 4 : s.len;
	if (code >= 0xd800 && code < 0xdc00 && s.len - *at > 6 && s.at[*at] == '\\' &&
		s.at[*at + 1] == 'u') {
		code = 0x10000 + ((code & 0x3ff) << 10) + (hex4(s.at + *at + 2, 4) & 0x3ff);
		*at += 6;
	}
	return put_utf8(code, out);
}

bool jspan_equals(struct jspan s, const char *text) {
	size_t len = strlen(text), at = 1, n, done = 0;
	char piece[4];

	if (!jspan_is_string(s) || s.len < len + 2)
		return false;
	if (s.len == len + 2 && !memcmp(s.at + 1, text, len))
		return !memchr(text, '\\', len);
	if (!memchr(s.at, '\\', s.len))
		return false;
	while ((n = next_piece(s, &at, piece))) {
		if (len - done < n || memcmp(text + done, piece, n))
			return false;
		done += n;
	}
	return done == len;
}

uint64_t jspan_hash(struct jspan s) {
	uint64_t hash = 0xcbf29ce484222325;
	size_t at = 1, n;
	char piece[4];

	while ((n = next_piece(s, &at, piece)))
		for (size_t i = 0; i < n; i++)
			hash = (hash ^ (unsigned char)piece[i]) * 0x100000001b3;
	return hash ? hash : 1;
}

char *jspan_decode(struct jspan s, size_t *ret_len) {
	size_t at = 1, n, len = 0;
	char piece[4];
	char *text;

	if (!jspan_is_string(s))
		return NULL;
	text = malloc(s.len); /* an escape is never shorter than what it stands for */
	if (!text)
		return NULL;
	while ((n = next_piece(s, &at, piece))) {
		memcpy(text + len, piece, n);
		len += n;
	}
	text[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return text;
}

char *jspan_copy(struct jspan s) {
	return s.at ? strndup(s.at, s.len) : NULL;
}

/* Whether a parser that knows 64-bit integers and doubles can hold this number. */
static bool is_number_small(const char *s, size_t len) {
	enum { INT64_DIGITS = 19, LONGEST = 400 };
	char copy[LONGEST + 1];

	if (len > LONGEST)
		return false;
	memcpy(copy, s, len);
	copy[len] = '\0';
	errno = 0;
	if (jspan_is_integer((struct jspan){ s, len })) {
		if (len < INT64_DIGITS)
			return true;
		(void)strtoll(copy, NULL, 10);
		return errno == 0;
	}
	return isfinite(strtod(copy, NULL));
}

void jscan_flatten_numbers(char *text, size_t len) {
	size_t at = 0;

	while (at < len) {
		if (text[at] == '"') {
			at = skip_string(text, len, at);
		} else if (text[at] == '-' || is_digit(text[at])) {
			size_t end = skip_value(text, len, at);

			if (!is_number_small(text + at, end - at)) {
				text[at] = '0';
				memset(text + at + 1, ' ', end - at - 1);
			}
			at = end;
		} else {
			at++;
		}
	}
}

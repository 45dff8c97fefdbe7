/* SPDX-License-Identifier: MIT */
/*
 * Version Specifiers
 *
 * A specifier is written as it was given, blanks aside: "v1.0" stays, since that is how the
 * reference implementation writes it. Whether two specifiers are the same is decided by what they
 * mean: each is also brought into its normal form (PEP 440, "Normalization"), which serves the
 * comparison alone.
 */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "daemon/specifier.h"

enum { MAX_SPECIFIERS = 256 }; /* a requirement of 512 characters holds no more */

/* One specifier of the list. */
struct specifier {
	char *text;   /* as it is written */
	char *normal; /* as it is compared */
};

/* A cursor over a version's text. */
struct scan {
	const char *at, *end;
};

static bool is_digit(char c) {
	return c >= '0' && c <= '9';
}

static bool is_blank(char c) {
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_separator(char c) {
	return c == '.' || c == '-' || c == '_';
}

static char lower(char c) {
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Moves over digits and appends them without leading zeros, "0" when there are none. */
static bool scan_number(struct scan *s, struct buf *normal) {
	const char *start = s->at, *digits;

	while (s->at < s->end && is_digit(*s->at))
		s->at++;
	digits = start;
	while (digits + 1 < s->at && *digits == '0')
		digits++;
	if (s->at == start)
		buf_add_char(normal, '0');
	else
		buf_add(normal, digits, (size_t)(s->at - digits));
	return s->at > start;
}

/*
 * Moves over "[-_.]?WORD[-_.]?[0-9]*" for the first word of `words` that fits and appends its
 * normal form and the number. Words and normal forms alternate; NULL ends them. False leaves the
 * cursor.
 */
static bool scan_label(struct scan *s, const char *const *words, struct buf *normal) {
	const char *at = s->at;

	if (at < s->end && is_separator(*at))
		at++;
	for (; *words; words += 2) {
		size_t len = strlen(words[0]);

		if ((size_t)(s->end - at) < len || strncasecmp(at, words[0], len))
			continue;
		s->at = at + len;
		if (s->at < s->end && is_separator(*s->at))
			s->at++;
		buf_add_str(normal, words[1]);
		scan_number(s, normal);
		return true;
	}
	return false;
}

/* "+ubuntu.1": lower case, separators as dots, numbers without leading zeros. */
static bool scan_local(struct scan *s, struct buf *normal) {
	char mark = '+';

	while (s->at < s->end && (mark == '+' ? *s->at == '+' : is_separator(*s->at))) {
		const char *start = ++s->at;
		bool is_number = true;

		while (s->at < s->end &&
			(is_digit(*s->at) || (lower(*s->at) >= 'a' && lower(*s->at) <= 'z')))
			is_number &= is_digit(*s->at++);
		if (s->at == start)
			return false;
		buf_add_char(normal, mark);
		if (is_number) {
			s->at = start;
			scan_number(s, normal);
		} else {
			for (const char *p = start; p < s->at; p++)
				buf_add_char(normal, lower(*p));
		}
		mark = '.';
	}
	return true;
}

/* The release, "1.2.0": `trims` drops the zeros at its end. False when it has not enough parts. */
static bool scan_release(struct scan *s, bool trims, unsigned min_parts, struct buf *normal) {
	size_t end = 0;
	unsigned n = 0;

	do {
		size_t start = normal->len;

		if (n) {
			buf_add_char(normal, '.');
			s->at++;
		}
		if (!scan_number(s, normal))
			return false;
		if (!n++ || normal->len != start + 2 || normal->data[start + 1] != '0')
			end = normal->len;
	} while (s->at + 1 < s->end && s->at[0] == '.' && is_digit(s->at[1]));
	if (trims && !normal->has_failed)
		normal->len = end;
	return n >= min_parts;
}

/* A version as the operator `op` takes it. The normal form is appended. */
static bool scan_version(struct scan *s, const char *op, struct buf *normal) {
	static const char *const pre[] = { "alpha", "a", "beta", "b", "preview", "rc", "pre", "rc",
		"a", "a", "b", "b", "c", "rc", "rc", "rc", NULL };
	static const char *const post[] = { "post", ".post", "rev", ".post", "r", ".post", NULL };
	static const char *const dev[] = { "dev", ".dev", NULL };
	bool is_equality = !strcmp(op, "==") || !strcmp(op, "!="),
	     is_compatible = !strcmp(op, "~=");
	const char *start = s->at, *p;

	if (s->at < s->end && lower(*s->at) == 'v')
		s->at++;
	for (p = s->at; p < s->end && is_digit(*p);)
		p++;
	if (p > s->at && p < s->end && *p == '!') {
		size_t len = normal->len;

		scan_number(s, normal);
		s->at++;
		if (!normal->has_failed && normal->len == len + 1 && normal->data[len] == '0')
			normal->len = len;
		else
			buf_add_char(normal, '!');
	}
	if (!scan_release(s, !is_compatible, is_compatible ? 2 : 1, normal))
		return false;

	/* A wild card stands for itself: its text is its normal form. */
	if (is_equality && s->end - s->at == 2 && !memcmp(s->at, ".*", 2)) {
		buf_clear(normal);
		buf_add(normal, start, (size_t)(s->end - start));
		s->at = s->end;
		return true;
	}
	scan_label(s, pre, normal);
	if (s->at + 1 < s->end && s->at[0] == '-' && is_digit(s->at[1])) {
		s->at++;
		buf_add_str(normal, ".post");
		scan_number(s, normal);
	} else {
		scan_label(s, post, normal);
	}
	scan_label(s, dev, normal);
	return !is_equality || scan_local(s, normal);
}

/* Reads one specifier without blanks around it. */
static bool specifier_parse(const char *text, size_t len, struct specifier *ret) {
	static const char *const operators[] = { "===", "~=", "==", "!=", "<=", ">=", "<", ">" };
	auto_buf struct buf written = BUF_NULL, normal = BUF_NULL, version = BUF_NULL;
	const char *op = NULL;
	struct scan s = { .end = text + len };

	for (size_t i = 0; i < ARRAY_LEN(operators) && !op; i++)
		if (len >= strlen(operators[i]) &&
			!memcmp(text, operators[i], strlen(operators[i])))
			op = operators[i];
	if (!op)
		return false;
	s.at = text + strlen(op);
	while (s.at < s.end && is_blank(*s.at))
		s.at++;
	buf_add_str(&written, op);
	buf_add(&written, s.at, (size_t)(s.end - s.at));

	if (!strcmp(op, "===")) {
		/* Compared as text, so anything is a version but blanks. */
		if (s.at == s.end)
			return false;
		for (const char *p = s.at; p < s.end; p++)
			if (is_blank(*p))
				return false;
		buf_add(&version, s.at, (size_t)(s.end - s.at));
	} else if (!scan_version(&s, op, &version) || s.at != s.end) {
		return false;
	}
	buf_add_str(&normal, op);
	buf_add(&normal, version.data, version.len);
	normal.has_failed |= version.has_failed;

	ret->text = buf_take(&written, NULL);
	ret->normal = buf_take(&normal, NULL);
	return true;
}

static int compare_texts(const void *a, const void *b) {
	return strcmp(((const struct specifier *)a)->text, ((const struct specifier *)b)->text);
}

/* Splits the list; items are owned by the caller also on failure. */
static bool parse_list(const char *text, size_t len, struct specifier *items, size_t *ret_n) {
	size_t i = 0;

	while (i < len) {
		size_t start = i, end;

		while (i < len && text[i] != ',')
			i++;
		for (end = i; end > start && is_blank(text[end - 1]);)
			end--;
		while (start < end && is_blank(text[start]))
			start++;
		/* One comma may stand at the end, after a specifier. */
		if (start == end && i == len && *ret_n)
			break;
		if (*ret_n == MAX_SPECIFIERS ||
			!specifier_parse(text + start, end - start, &items[*ret_n]))
			return false;
		++*ret_n;
		i += i < len;
	}
	return true;
}

bool specifier_write_list(struct buf *b, const char *text, size_t len) {
	struct specifier items[MAX_SPECIFIERS] = { 0 };
	size_t n = 0, n_written = 0;
	bool is_valid;

	while (len && is_blank(text[len - 1]))
		len--;
	is_valid = parse_list(text, len, items, &n);
	for (size_t i = 0; i < n; i++)
		b->has_failed |= !items[i].text || !items[i].normal;

	if (is_valid && !b->has_failed) {
		qsort(items, n, sizeof(*items), compare_texts);
		for (size_t i = 0; i < n; i++) {
			bool is_new = true;

			for (size_t k = 0; k < i; k++)
				is_new &= strcmp(items[k].normal, items[i].normal) != 0;
			if (!is_new)
				continue;
			if (n_written++)
				buf_add_char(b, ',');
			buf_add_str(b, items[i].text);
		}
	}
	for (size_t i = 0; i < n; i++) {
		free(items[i].text);
		free(items[i].normal);
	}
	return is_valid;
}

/* SPDX-License-Identifier: MIT */
/*
 * Requirements
 *
 * PEP 508 in C: an environment is reused only when its requirements are those of this start, so
 * equal ones need one spelling, before any Python runs and without a package of the user's
 * choosing. The spelling is the one of the reference implementation (`packaging`): the name and
 * versions as they were given, extras and specifiers sorted, blanks and quotes regular, markers
 * brought to their names.
 */

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "daemon/marker.h"
#include "daemon/requirement.h"
#include "daemon/specifier.h"

enum { MAX_EXTRAS = 256 }; /* a requirement of 512 characters holds no more */

/* A piece of the requirement's text. */
struct piece {
	const char *at;
	size_t len;
};

static const char *skip_blanks(const char *at) {
	return at + strspn(at, " \t");
}

/* The name at `at`: letters, digits and ".-_" in the middle; length 0 when there is none. */
static struct piece take_name(const char *at) {
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	struct piece name = { .at = at };

	if (!*at || !strchr(letters, *at))
		return name;
	name.len = strspn(at, letters);
	for (size_t len = name.len; at[len] && strchr("._-", at[len]);) {
		len += strspn(at + len, "._-");
		/* An underscore may end a name, a dot or a dash may not. */
		for (size_t end = len; end > name.len; end--) {
			if (at[end - 1] == '_') {
				name.len = end;
				break;
			}
		}
		if (!at[len] || !strchr(letters, at[len]))
			break;
		len += strspn(at + len, letters);
		name.len = len;
	}
	return name;
}

static int compare_pieces(const void *a, const void *b) {
	const struct piece *x = a, *y = b;
	size_t len = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->at, y->at, len);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* "[b, a]" at *at, if it is there, appended as "[a,b]". */
static const char *write_extras(struct buf *b, const char **at) {
	struct piece extras[MAX_EXTRAS];
	const char *p = *at;
	size_t n = 0;

	if (*p != '[')
		return NULL;
	p = skip_blanks(p + 1);
	while (*p != ']' || n) {
		struct piece extra = take_name(p);

		if (!extra.len)
			return "has an extra without a name, or an unclosed '['";
		if (n == MAX_EXTRAS)
			return "has too many extras";
		extras[n++] = extra;
		p = skip_blanks(p + extra.len);
		if (*p == ']')
			break;
		if (*p != ',')
			return "has extras that no comma separates, or an unclosed '['";
		p = skip_blanks(p + 1);
	}
	*at = skip_blanks(p + 1);

	qsort(extras, n, sizeof(*extras), compare_pieces);
	for (size_t i = 0; i < n; i++) {
		if (i && !compare_pieces(&extras[i - 1], &extras[i]))
			continue;
		buf_add_char(b, i ? ',' : '[');
		buf_add(b, extras[i].at, extras[i].len);
	}
	if (n)
		buf_add_char(b, ']');
	return NULL;
}

/* ">=1, <2" or "(>=1, <2)" at *at. */
static const char *write_specifiers(struct buf *b, const char **at) {
	bool has_parenthesis = **at == '(';
	const char *p = *at + has_parenthesis;
	size_t len = strcspn(p, ";)");

	if (!specifier_write_list(b, p, len))
		return "has a version specifier that is none";
	p += len;
	if (has_parenthesis && *p++ != ')')
		return "has an unclosed '('";
	*at = skip_blanks(p);
	return NULL;
}

/* "@ URL" at *at, with the blank that the URL needs before a marker. */
static const char *write_url(struct buf *b, const char **at) {
	const char *url = skip_blanks(*at + 1), *end = url;

	while ((unsigned char)*end > ' ')
		end++;
	if (end == url)
		return "has no URL after '@'";
	buf_add_str(b, " @ ");
	buf_add(b, url, (size_t)(end - url));
	*at = skip_blanks(end);
	if (**at == ';')
		buf_add_char(b, ' ');
	return NULL;
}

/* Writes the whole requirement; returns the complaint, NULL when there is none. */
static const char *write_requirement(struct buf *b, const char *at) {
	const char *complaint = NULL;
	struct piece name;

	at = skip_blanks(at);
	name = take_name(at);
	if (!name.len)
		return "does not begin with a package's name";
	buf_add(b, name.at, name.len);
	at = skip_blanks(at + name.len);

	complaint = write_extras(b, &at);
	if (!complaint)
		complaint = *at == '@' ? write_url(b, &at) : write_specifiers(b, &at);
	if (complaint)
		return complaint;
	if (*at == ';') {
		buf_add_str(b, "; ");
		at++;
		if (!marker_write(b, &at, &complaint))
			return complaint;
	}
	return *at ? "has something after its end" : NULL;
}

char *requirement_canonical(const char *text, const char **ret_complaint) {
	auto_buf struct buf b = BUF_NULL;

	*ret_complaint = write_requirement(&b, text);
	return *ret_complaint ? NULL : buf_take(&b, NULL);
}

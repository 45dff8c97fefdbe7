/* SPDX-License-Identifier: MIT */

/*
 * Editing TOML in Place
 *
 * The text is a row of statements: headers, pairs, and lines that say nothing. A statement's end is
 * the one thing that takes care, because a value may run over lines inside brackets or triple
 * quotes. What a value means is not looked at.
 *
 * One server may be written in several ways. [mcp_servers.x] is what the agent itself writes and
 * what is edited here; an inline table or dotted keys are recognised, so as not to be defined
 * twice, and left to their owner.
 */

#include <string.h>

#include "client/tomledit.h"

enum kind { KIND_NOTHING, KIND_HEADER, KIND_PAIR };

/* How a key begins, as far as we are concerned. */
enum match {
	MATCH_OTHER,
	MATCH_GROUP, /* exactly GROUP */
	MATCH_TABLE, /* exactly GROUP.NAME */
	MATCH_BELOW, /* GROUP.NAME.more */
};

struct statement {
	enum kind kind;
	size_t start, end;	 /* `end` is behind the newline */
	size_t value, value_end; /* of a pair */
	size_t key, key_end;	 /* of a pair or header, as written */
};

struct scan {
	const char *text;
	size_t len;
	size_t at;
};

static bool scan_has(const struct scan *s, const char *word) {
	size_t n = strlen(word);

	return s->len - s->at >= n && !memcmp(s->text + s->at, word, n);
}

static void scan_spaces(struct scan *s) {
	while (s->at < s->len && (s->text[s->at] == ' ' || s->text[s->at] == '\t'))
		s->at++;
}

static void scan_line(struct scan *s) {
	while (s->at < s->len && s->text[s->at] != '\n')
		s->at++;
}

/* A string of any of the four kinds; one that spans lines only with `multiline`. */
static bool scan_string(struct scan *s, bool multiline) {
	char quote = s->text[s->at];
	char closing[4] = { quote, quote, quote, '\0' };
	bool is_long = multiline && scan_has(s, closing);

	if (!is_long)
		closing[1] = '\0';
	for (s->at += is_long ? 3 : 1; s->at < s->len; s->at++) {
		if (scan_has(s, closing)) {
			s->at += strlen(closing);
			/* Up to two quotes may stand before the closing three. */
			while (is_long && s->at < s->len && s->text[s->at] == quote)
				s->at++;
			return true;
		}
		if (quote == '"' && s->text[s->at] == '\\')
			s->at++;
		else if (!is_long && s->text[s->at] == '\n')
			return false;
	}
	return false;
}

/* A key, dotted or not, up to the character that ends it. */
static bool scan_key(struct scan *s, char end) {
	while (s->at < s->len && s->text[s->at] != end) {
		if (strchr("\"'", s->text[s->at])) {
			if (!scan_string(s, false))
				return false;
		} else if (strchr("\n#=[]{},", s->text[s->at])) {
			return false;
		} else {
			s->at++;
		}
	}
	return s->at < s->len;
}

/* A value, up to the newline or comment behind it. */
static bool scan_value(struct scan *s) {
	unsigned depth = 0;

	while (s->at < s->len) {
		char c = s->text[s->at];

		if (c == '"' || c == '\'') {
			if (!scan_string(s, true))
				return false;
			continue;
		}
		if (c == '[' || c == '{') {
			depth++;
		} else if (c == ']' || c == '}') {
			if (depth-- == 0)
				return false;
		} else if (c == '#') {
			if (!depth)
				return true;
			scan_line(s);
			continue;
		} else if (c == '\n' && !depth) {
			return true;
		}
		s->at++;
	}
	return depth == 0;
}

/* The next statement; false when it cannot be read. At the end of the text it is an empty one. */
static bool scan_statement(struct scan *s, struct statement *ret) {
	struct statement st = { .start = s->at };

	scan_spaces(s);
	if (scan_has(s, "[")) {
		bool is_array = scan_has(s, "[[");

		st.kind = KIND_HEADER;
		st.key = s->at += is_array ? 2 : 1;
		if (!scan_key(s, ']'))
			return false;
		st.key_end = s->at;
		if (!scan_has(s, is_array ? "]]" : "]"))
			return false;
		s->at += is_array ? 2 : 1;
		scan_spaces(s);
		if (s->at < s->len && !strchr("#\r\n", s->text[s->at]))
			return false;
	} else if (s->at < s->len && !strchr("#\r\n", s->text[s->at])) {
		st.kind = KIND_PAIR;
		st.key = s->at;
		if (!scan_key(s, '='))
			return false;
		st.key_end = s->at++;
		scan_spaces(s);
		st.value = s->at;
		if (!scan_value(s))
			return false;
		st.value_end = s->at;
		while (st.value_end > st.value && strchr(" \t\r", s->text[st.value_end - 1]))
			st.value_end--;
	}
	scan_line(s);
	if (s->at < s->len)
		s->at++;
	st.end = s->at;
	*ret = st;
	return true;
}

/* Takes one part off a key and compares it; true also moves *at behind the dot. */
static bool key_takes(const char *text, size_t *at, size_t end, const char *part) {
	struct scan s = { text, end, *at };
	size_t start, stop;

	scan_spaces(&s);
	start = s.at;
	if (s.at < end && strchr("\"'", text[s.at])) {
		if (!scan_string(&s, false))
			return false;
		start++;
		stop = s.at - 1;
	} else {
		while (s.at < end && !strchr(" \t.", text[s.at]))
			s.at++;
		stop = s.at;
	}
	if (stop - start != strlen(part) || memcmp(text + start, part, stop - start))
		return false;
	scan_spaces(&s);
	if (s.at < end && text[s.at] == '.')
		s.at++;
	*at = s.at;
	return true;
}

static enum match key_match(
	const char *text, const struct statement *st, const char *group, const char *name) {
	size_t at = st->key;

	if (!key_takes(text, &at, st->key_end, group))
		return MATCH_OTHER;
	if (at == st->key_end)
		return MATCH_GROUP;
	if (!key_takes(text, &at, st->key_end, name))
		return MATCH_OTHER;
	return at == st->key_end ? MATCH_TABLE : MATCH_BELOW;
}

static bool is_key(const char *text, const struct statement *st, const char *key) {
	size_t at = st->key;

	return key_takes(text, &at, st->key_end, key) && at == st->key_end;
}

enum tomledit_result tomledit_find(const char *text, size_t len, const char *group,
	const char *name, size_t *ret_start, size_t *ret_end) {
	struct scan s = { text, len, 0 };
	enum match in = MATCH_OTHER;
	bool is_root = true, is_found = false;

	while (s.at < s.len) {
		size_t at = s.at;
		struct statement st;

		if (!scan_statement(&s, &st)) {
			*ret_start = at;
			return TOMLEDIT_SYNTAX;
		}
		if (st.kind == KIND_HEADER) {
			is_root = false;
			in = key_match(text, &st, group, name);
			if (in == MATCH_TABLE) {
				is_found = true;
				*ret_start = st.start;
				*ret_end = st.end;
			}
		} else if (st.kind == KIND_PAIR) {
			at = st.key;
			if ((is_root && key_match(text, &st, group, name) != MATCH_OTHER) ||
				(in == MATCH_GROUP && key_takes(text, &at, st.key_end, name)))
				return TOMLEDIT_FOREIGN;
			if (in == MATCH_TABLE)
				*ret_end = st.end;
		}
	}
	return is_found ? TOMLEDIT_OK : TOMLEDIT_ABSENT;
}

static void add_pair(struct buf *out, const struct tomledit_pair *pair) {
	buf_addf(out, "%s = %s\n", pair->key, pair->value);
}

/* Copies the table's text with its pairs changed, and adds those that it lacks. */
static void set_in_table(const char *text, size_t start, size_t end,
	const struct tomledit_pair *pairs, struct buf *out) {
	struct scan s = { text, end, start };
	size_t copied = start;

	while (s.at < end) {
		struct statement st;

		if (!scan_statement(&s, &st))
			break;
		if (st.kind != KIND_PAIR)
			continue;
		for (const struct tomledit_pair *p = pairs; p->key; p++) {
			if (p->is_default || !is_key(text, &st, p->key))
				continue;
			buf_add(out, text + copied, st.value - copied);
			buf_add_str(out, p->value);
			copied = st.value_end;
		}
	}
	buf_add(out, text + copied, end - copied);
	if (end > 0 && text[end - 1] != '\n')
		buf_add_char(out, '\n');
	for (const struct tomledit_pair *p = pairs; p->key; p++) {
		bool is_there = false;
		struct statement st;

		for (s.at = start; s.at < end && scan_statement(&s, &st);)
			is_there |= st.kind == KIND_PAIR && is_key(text, &st, p->key);
		if (!is_there)
			add_pair(out, p);
	}
}

enum tomledit_result tomledit_set(const char *text, size_t len, const char *group, const char *name,
	const struct tomledit_pair *pairs, struct buf *out) {
	size_t start, end;
	enum tomledit_result r = tomledit_find(text, len, group, name, &start, &end);

	if (r == TOMLEDIT_OK) {
		buf_add(out, text, start);
		set_in_table(text, start, end, pairs, out);
		buf_add(out, text + end, len - end);
		return r;
	}
	if (r != TOMLEDIT_ABSENT)
		return r;
	buf_add(out, text, len);
	if (len > 0)
		buf_add_str(out, text[len - 1] == '\n' ? "\n" : "\n\n");
	buf_addf(out, "[%s.%s]\n", group, name);
	for (const struct tomledit_pair *p = pairs; p->key; p++)
		add_pair(out, p);
	return TOMLEDIT_OK;
}

enum tomledit_result tomledit_remove(
	const char *text, size_t len, const char *group, const char *name, struct buf *out) {
	struct scan s = { text, len, 0 };
	size_t start, end, copied = 0, from = 0;
	enum match in = MATCH_OTHER;
	enum tomledit_result r = tomledit_find(text, len, group, name, &start, &end);

	if (r != TOMLEDIT_OK)
		return r;
	/*
	 * Comments in front of the next header belong to that one: a table ends with its last pair.
	 * Of the empty lines around it those in front go, so that the gap does not grow.
	 */
	while (s.at < len) {
		struct statement st;

		if (!scan_statement(&s, &st))
			break;
		if (st.kind == KIND_HEADER) {
			in = key_match(text, &st, group, name);
			for (from = st.start; from > copied && text[from - 1] == '\n' &&
					      (from - 1 == copied || text[from - 2] == '\n');
				from--)
				;
		}
		if (st.kind == KIND_NOTHING || (in != MATCH_TABLE && in != MATCH_BELOW))
			continue;
		if (from > copied)
			buf_add(out, text + copied, from - copied);
		copied = from = st.end;
	}
	buf_add(out, text + copied, len - copied);
	return TOMLEDIT_OK;
}

/* SPDX-License-Identifier: MIT */

/*
 * Editing JSON in Place
 *
 * A tree would lose what its owner cares about: comments, order, the way lines are broken. So the
 * text is only scanned for where things begin and end, and an edit is a splice. The whole text is
 * checked first; what follows may then rely on its shape.
 *
 * Offsets, not pointers: a place stays printable in messages and valid across copies of the text.
 */

#include <string.h>

#include "client/jsonedit.h"

#define MAX_DEPTH      100
#define DEFAULT_INDENT "  "

struct scan {
	const char *text;
	size_t len;
	size_t at;
};

/* A member of an object, or the lack of one. */
struct place {
	size_t object_start, object_end; /* of "{" and behind "}" */
	size_t first_key;		 /* 0: the object is empty */
	size_t last_end;		 /* behind the last value; 0: empty */
	bool has_trailing_comma;

	bool is_found;
	size_t key, value, value_end;
	size_t comma_before, comma_after; /* behind each; 0: none */
};

static char scan_peek(const struct scan *s) {
	return s->at < s->len ? s->text[s->at] : '\0';
}

/* Skips blanks and comments; false in an unclosed comment. */
static bool scan_blank(struct scan *s) {
	for (;;) {
		char c = scan_peek(s);

		if (s->at < s->len && strchr(" \t\r\n", c)) {
			s->at++;
		} else if (c == '/' && s->at + 1 < s->len && s->text[s->at + 1] == '/') {
			const char *end = memchr(s->text + s->at, '\n', s->len - s->at);

			s->at = end ? (size_t)(end - s->text) : s->len;
		} else if (c == '/' && s->at + 1 < s->len && s->text[s->at + 1] == '*') {
			const char *end = memmem(s->text + s->at + 2, s->len - s->at - 2, "*/", 2);

			if (!end)
				return false;
			s->at = (size_t)(end - s->text) + 2;
		} else {
			return true;
		}
	}
}

static bool scan_string(struct scan *s) {
	if (scan_peek(s) != '"')
		return false;
	for (s->at++; s->at < s->len; s->at++) {
		if (s->text[s->at] == '"') {
			s->at++;
			return true;
		}
		if (s->text[s->at] == '\n')
			return false;
		if (s->text[s->at] == '\\')
			s->at++;
	}
	return false;
}

/* A number or a word. What exactly it says is its reader's business. */
static bool scan_scalar(struct scan *s) {
	size_t start = s->at;

	while (s->at < s->len && !strchr(" \t\r\n,:[]{}\"/", s->text[s->at]))
		s->at++;
	return s->at > start;
}

static bool scan_value(struct scan *s, unsigned depth) {
	char open = scan_peek(s), close = open == '{' ? '}' : ']';

	if (open == '"')
		return scan_string(s);
	if (open != '{' && open != '[')
		return scan_scalar(s);
	if (depth == MAX_DEPTH)
		return false;
	s->at++;
	for (;;) {
		if (!scan_blank(s))
			return false;
		if (scan_peek(s) == close) {
			s->at++;
			return true;
		}
		if (open == '{') {
			if (!scan_string(s) || !scan_blank(s) || scan_peek(s) != ':')
				return false;
			s->at++;
			if (!scan_blank(s))
				return false;
		}
		if (!scan_value(s, depth + 1) || !scan_blank(s))
			return false;
		if (scan_peek(s) == ',')
			s->at++;
		else if (scan_peek(s) != close)
			return false;
	}
}

/* Checks the text and finds its root value; false with *ret_start at the fault. */
static bool scan_document(const char *text, size_t len, size_t *ret_start) {
	struct scan s = { text, len, 0 };

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		s.at = 3;
	if (!scan_blank(&s))
		goto fault;
	*ret_start = s.at;
	if (!scan_value(&s, 0) || !scan_blank(&s) || s.at < len)
		goto fault;
	return true;

fault:
	*ret_start = s.at < len ? s.at : len;
	return false;
}

/* Names are compared as written; none that we look for needs an escape. */
static bool is_named(const char *key, size_t len, const char *name) {
	return len == strlen(name) + 2 && !memcmp(key + 1, name, len - 2);
}

/* Looks for `name` in the object at `start` of checked text. */
static struct place place_find(const char *text, size_t len, size_t start, const char *name) {
	struct scan s = { text, len, start + 1 };
	struct place p = { .object_start = start };
	size_t comma = 0;

	for (;;) {
		size_t key, key_end, value;

		scan_blank(&s);
		if (scan_peek(&s) == '}') {
			p.object_end = s.at + 1;
			p.has_trailing_comma = comma != 0;
			return p;
		}
		key = s.at;
		scan_string(&s);
		key_end = s.at;
		scan_blank(&s);
		s.at++;
		scan_blank(&s);
		value = s.at;
		scan_value(&s, 0);
		if (!p.first_key)
			p.first_key = key;
		p.last_end = s.at;
		if (is_named(text + key, key_end - key, name)) {
			p.is_found = true;
			p.key = key;
			p.value = value;
			p.value_end = s.at;
			p.comma_before = comma;
			p.comma_after = 0;
		}
		scan_blank(&s);
		comma = 0;
		if (scan_peek(&s) == ',') {
			comma = ++s.at;
			if (p.is_found && p.value == value)
				p.comma_after = comma;
		}
	}
}

/* The indentation of the line that holds `at`. */
static size_t line_indent(const char *text, size_t at, size_t *ret_len) {
	size_t start = at, end;

	while (start > 0 && text[start - 1] != '\n')
		start--;
	for (end = start; end < at && (text[end] == ' ' || text[end] == '\t'); end++)
		;
	*ret_len = end - start;
	return start;
}

static bool is_first_on_line(const char *text, size_t at) {
	size_t indent_len, start = line_indent(text, at, &indent_len);

	return start + indent_len == at && start > 0;
}

static bool is_last_on_line(const char *text, size_t len, size_t at) {
	while (at < len && strchr(" \t\r", text[at]))
		at++;
	return at == len || text[at] == '\n';
}

/* What one level of this text's indentation is: that of the root's first member. */
static void add_unit(struct buf *out, const char *text, size_t len, size_t root) {
	struct place p = place_find(text, len, root, "");
	size_t indent_len, start;

	if (p.first_key && is_first_on_line(text, p.first_key)) {
		start = line_indent(text, p.first_key, &indent_len);
		if (indent_len > 0) {
			buf_add(out, text + start, indent_len);
			return;
		}
	}
	buf_add_str(out, DEFAULT_INDENT);
}

/* Adds a newline and the indentation of a member `levels` below the line that holds `at`. */
static void add_newline(
	struct buf *out, const char *text, size_t at, const struct buf *unit, unsigned levels) {
	size_t indent_len, start = line_indent(text, at, &indent_len);

	buf_add_char(out, '\n');
	buf_add(out, text + start, indent_len);
	while (levels--)
		buf_add(out, unit->data, unit->len);
}

/* Adds `value`, whose leading tabs become this text's indentation. */
static void add_value(struct buf *out, const char *text, size_t at, const struct buf *unit,
	unsigned level, const char *value) {
	for (; *value; value++) {
		unsigned tabs = 0;

		if (*value != '\n') {
			buf_add_char(out, *value);
			continue;
		}
		while (value[1] == '\t')
			value++, tabs++;
		add_newline(out, text, at, unit, level + tabs);
	}
}

/* Adds the member path[0], and the rest of the path inside it, each a level deeper than the last.
 */
static void add_member(struct buf *out, const char *text, size_t at, const struct buf *unit,
	unsigned level, const char *const *path, const char *value) {
	buf_add_json_string(out, path[0], strlen(path[0]));
	buf_add_str(out, ": ");
	if (!path[1]) {
		add_value(out, text, at, unit, level, value);
		return;
	}
	buf_add_char(out, '{');
	add_newline(out, text, at, unit, level + 1);
	add_member(out, text, at, unit, level + 1, path + 1, value);
	add_newline(out, text, at, unit, level);
	buf_add_char(out, '}');
}

/* Where a new last member goes: behind the old one and a comment on its line. */
static size_t behind_last(const char *text, const struct place *p) {
	struct scan s = { text, p->object_end - 1, p->last_end };
	size_t at = p->last_end;

	if (p->has_trailing_comma) {
		scan_blank(&s);
		at = ++s.at;
	}
	for (;;) {
		while (s.at < s.len && (text[s.at] == ' ' || text[s.at] == '\t'))
			s.at++;
		if (scan_peek(&s) != '/')
			return at;
		if (s.text[s.at + 1] == '/') {
			const char *end = memchr(text + s.at, '\n', s.len - s.at);

			return end ? (size_t)(end - text) : s.len;
		}
		s.at = (size_t)((const char *)memmem(text + s.at + 2, s.len - s.at - 2, "*/", 2) -
				text) +
		       2;
		at = s.at;
	}
}

static void insert_member(const char *text, size_t len, const struct place *p,
	const struct buf *unit, const char *const *path, const char *value, struct buf *out) {
	bool is_broken = p->first_key && is_first_on_line(text, p->first_key);
	size_t base = is_broken ? p->first_key : p->object_start, at, end = p->object_end - 1;
	unsigned level = is_broken ? 0 : 1;

	if (p->last_end) {
		at = behind_last(text, p);
		buf_add(out, text, p->last_end);
		if (!p->has_trailing_comma)
			buf_add_char(out, ',');
		buf_add(out, text + p->last_end, at - p->last_end);
	} else {
		for (at = end; at > p->object_start + 1 && strchr(" \t\r\n", text[at - 1]); at--)
			;
		buf_add(out, text, at);
	}
	add_newline(out, text, base, unit, level);
	add_member(out, text, base, unit, level, path, value);
	if (p->has_trailing_comma)
		buf_add_char(out, ',');
	if (is_broken) {
		buf_add(out, text + at, len - at);
		return;
	}
	add_newline(out, text, p->object_start, unit, 0);
	buf_add(out, text + end, len - end);
}

enum jsonedit_result jsonedit_find(
	const char *text, size_t len, const char *const *path, size_t *ret_start, size_t *ret_end) {
	struct scan blank = { text, len, 0 };
	size_t start;

	if (scan_blank(&blank) && blank.at == len)
		return JSONEDIT_ABSENT;
	if (!scan_document(text, len, &start)) {
		*ret_start = start;
		return JSONEDIT_SYNTAX;
	}
	for (;; path++) {
		struct place p;

		if (text[start] != '{')
			return JSONEDIT_NOT_OBJECT;
		p = place_find(text, len, start, path[0]);
		if (!p.is_found)
			return JSONEDIT_ABSENT;
		if (!path[1]) {
			*ret_start = p.value;
			*ret_end = p.value_end;
			return JSONEDIT_OK;
		}
		start = p.value;
	}
}

enum jsonedit_result jsonedit_set(
	const char *text, size_t len, const char *const *path, const char *value, struct buf *out) {
	auto_buf struct buf unit = BUF_NULL;
	struct scan blank = { text, len, 0 };
	size_t root, start;

	if (scan_blank(&blank) && blank.at == len) {
		auto_buf struct buf whole = BUF_NULL;

		buf_add(&whole, text, len);
		if (len > 0 && text[len - 1] != '\n')
			buf_add_char(&whole, '\n');
		buf_add_str(&whole, "{}\n");
		if (whole.has_failed) {
			out->has_failed = true;
			return JSONEDIT_OK;
		}
		return jsonedit_set(whole.data, whole.len, path, value, out);
	}
	if (!scan_document(text, len, &root))
		return JSONEDIT_SYNTAX;
	if (text[root] != '{')
		return JSONEDIT_NOT_OBJECT;
	add_unit(&unit, text, len, root);
	for (start = root;; path++) {
		struct place p = place_find(text, len, start, path[0]);

		if (!p.is_found) {
			insert_member(text, len, &p, &unit, path, value, out);
			break;
		}
		if (!path[1]) {
			buf_add(out, text, p.value);
			add_value(out, text, p.key, &unit, 0, value);
			buf_add(out, text + p.value_end, len - p.value_end);
			break;
		}
		if (text[p.value] != '{')
			return JSONEDIT_NOT_OBJECT;
		start = p.value;
	}
	out->has_failed |= unit.has_failed;
	return JSONEDIT_OK;
}

enum jsonedit_result jsonedit_remove(
	const char *text, size_t len, const char *const *path, struct buf *out) {
	struct scan blank = { text, len, 0 };
	size_t start, from, to;
	struct place p;

	if (scan_blank(&blank) && blank.at == len)
		return JSONEDIT_ABSENT;
	if (!scan_document(text, len, &start))
		return JSONEDIT_SYNTAX;
	for (;; path++) {
		if (text[start] != '{')
			return JSONEDIT_NOT_OBJECT;
		p = place_find(text, len, start, path[0]);
		if (!p.is_found)
			return JSONEDIT_ABSENT;
		if (!path[1])
			break;
		start = p.value;
	}

	/*
	 * The member with the blanks in front of it; with its whole line when it stands there
	 * alone, for the line before may end in a comment that would swallow what follows.
	 */
	for (from = p.key; from > 0 && strchr(" \t\r", text[from - 1]); from--)
		;
	to = p.comma_after ? p.comma_after : p.value_end;
	if (from > 0 && text[from - 1] == '\n' && is_last_on_line(text, len, to))
		from--;

	if (p.first_key == p.key && p.last_end == p.value_end) {
		/* The only one: an object without comments closes up. */
		size_t end = p.object_end - 1, i;

		for (i = to; i < end && strchr(" \t\r\n", text[i]); i++)
			;
		if (i == end) {
			for (i = from; i > p.object_start + 1 && strchr(" \t\r\n", text[i - 1]);
				i--)
				;
			if (i == p.object_start + 1) {
				from = i;
				to = end;
			}
		}
		buf_add(out, text, from);
	} else if (p.last_end == p.value_end && !p.comma_after) {
		/* The last one: the comma in front goes, too. */
		buf_add(out, text, p.comma_before - 1);
		if (from > p.comma_before)
			buf_add(out, text + p.comma_before, from - p.comma_before);
	} else {
		buf_add(out, text, from);
	}
	buf_add(out, text + to, len - to);
	return JSONEDIT_OK;
}

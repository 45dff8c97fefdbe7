/* SPDX-License-Identifier: MIT */
/*
 * Environment Markers
 *
 * A recursive descent that writes while it reads. Parentheses are written only where they hold
 * several comparisons inside a larger expression; whether that is so is known when the expression
 * has been read, so each level hands up its text and says whether it is a list.
 */

#include <string.h>

#include "common/cleanup.h"
#include "daemon/marker.h"

/* As deep as the reference implementation reads. */
enum { MAX_NESTING = 200 };

/* One side of a comparison. */
struct operand {
	const char *variable; /* static, NULL: a string */
	const char *string;   /* between its quotes */
	size_t string_len;
};

struct parser {
	const char *at;
	const char *complaint;
};

static bool parse_expression(struct parser *p, unsigned depth, struct buf *out, bool *ret_is_list);

static void skip_blanks(struct parser *p) {
	p->at += strspn(p->at, " \t");
}

static bool is_word(char c) {
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || (c & 0x80);
}

static bool complain(struct parser *p, const char *complaint) {
	p->complaint = complaint;
	return false;
}

/* Moves over `word` when it stands at the cursor as a whole word. */
static bool take_word(struct parser *p, const char *word) {
	size_t len = strlen(word);

	if (strncmp(p->at, word, len) || is_word(p->at[len]))
		return false;
	p->at += len;
	return true;
}

static bool parse_operand(struct parser *p, struct operand *ret) {
	static const struct {
		const char *spelling, *name;
	} variables[] = {
		{ "python_version", "python_version" },
		{ "python_full_version", "python_full_version" },
		{ "os_name", "os_name" },
		{ "os.name", "os_name" },
		{ "sys_platform", "sys_platform" },
		{ "sys.platform", "sys_platform" },
		{ "platform_release", "platform_release" },
		{ "platform_system", "platform_system" },
		{ "platform_version", "platform_version" },
		{ "platform.version", "platform_version" },
		{ "platform_machine", "platform_machine" },
		{ "platform.machine", "platform_machine" },
		{ "platform_python_implementation", "platform_python_implementation" },
		{ "platform.python_implementation", "platform_python_implementation" },
		{ "python_implementation", "platform_python_implementation" },
		{ "implementation_name", "implementation_name" },
		{ "implementation_version", "implementation_version" },
		{ "extra", "extra" },
		{ "extras", "extras" },
		{ "dependency_groups", "dependency_groups" },
	};
	char quote = *p->at;
	const char *end;

	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		if (take_word(p, variables[i].spelling)) {
			*ret = (struct operand){ .variable = variables[i].name };
			return true;
		}
	}
	end = quote == '"' || quote == '\'' ? strchr(p->at + 1, quote) : NULL;
	if (!end)
		return complain(p,
			"has a marker without a variable or a quoted string where one belongs");
	*ret = (struct operand){ .string = p->at + 1, .string_len = (size_t)(end - p->at - 1) };
	for (size_t i = 0; i < ret->string_len; i++)
		if (strchr("\\\n\r", ret->string[i]))
			return complain(p,
				"has a marker with a backslash or a line break in a string");
	p->at = end + 1;
	return true;
}

static bool parse_operator(struct parser *p, const char **ret_operator) {
	static const char *const operators[] = { "===", "==", "~=", "!=", "<=", ">=", "<", ">" };

	if (take_word(p, "in")) {
		*ret_operator = "in";
		return true;
	}
	if (take_word(p, "not")) {
		if (*p->at != ' ' && *p->at != '\t')
			return complain(p, "has a marker with 'not' but no 'in' after it");
		skip_blanks(p);
		if (!take_word(p, "in"))
			return complain(p, "has a marker with 'not' but no 'in' after it");
		*ret_operator = "not in";
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
		if (!strncmp(p->at, operators[i], strlen(operators[i]))) {
			p->at += strlen(operators[i]);
			*ret_operator = operators[i];
			return true;
		}
	}
	return complain(p, "has a marker without a comparison where one belongs");
}

/* Writes an operand; `is_name`: a string that names an extra or a group, in its normal form. */
static void write_operand(struct buf *out, const struct operand *o, bool is_name) {
	char quote;

	if (o->variable) {
		buf_add_str(out, o->variable);
		return;
	}
	quote = memchr(o->string, '"', o->string_len) ? '\'' : '"';
	buf_add_char(out, quote);
	for (size_t i = 0; i < o->string_len; i++) {
		char c = o->string[i];

		if (!is_name) {
			buf_add_char(out, c);
		} else if (c == '-' || c == '_' || c == '.') {
			if (!i || !strchr("-_.", o->string[i - 1]))
				buf_add_char(out, '-');
		} else {
			buf_add_char(out, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
		}
	}
	buf_add_char(out, quote);
}

/* "os_name == 'posix'" */
static bool parse_comparison(struct parser *p, struct buf *out) {
	struct operand left, right;
	const char *op;
	bool has_extra, has_set;

	if (!parse_operand(p, &left))
		return false;
	skip_blanks(p);
	if (!parse_operator(p, &op))
		return false;
	skip_blanks(p);
	if (!parse_operand(p, &right))
		return false;

	/* Names of extras and groups compare in their normal form, whichever side they stand on. */
	has_extra = (left.variable && !strcmp(left.variable, "extra")) ||
		(right.variable && !strcmp(right.variable, "extra"));
	has_set = right.variable &&
		(!strcmp(right.variable, "extras") || !strcmp(right.variable, "dependency_groups"));
	write_operand(out, &left, has_extra || has_set);
	buf_addf(out, " %s ", op);
	write_operand(out, &right, has_extra);
	return true;
}

/* One comparison, or an expression in parentheses; *ret_is_list: several comparisons. */
static bool parse_atom(struct parser *p, unsigned depth, struct buf *out, bool *ret_is_list) {
	skip_blanks(p);
	*ret_is_list = false;
	if (*p->at == '(') {
		if (depth == MAX_NESTING)
			return complain(p,
				"has a marker with more than 200 parentheses inside each other");
		p->at++;
		if (!parse_expression(p, depth + 1, out, ret_is_list))
			return false;
		if (*p->at != ')')
			return complain(p, "has a marker with an unclosed parenthesis");
		p->at++;
	} else if (!parse_comparison(p, out)) {
		return false;
	}
	skip_blanks(p);
	return true;
}

/* Appends an atom's text to a list. */
static void add_atom(struct buf *out, struct buf *atom, bool is_list) {
	if (is_list)
		buf_add_char(out, '(');
	buf_add(out, atom->data, atom->len);
	if (is_list)
		buf_add_char(out, ')');
	out->has_failed |= atom->has_failed;
}

static bool parse_expression(struct parser *p, unsigned depth, struct buf *out, bool *ret_is_list) {
	auto_buf struct buf first = BUF_NULL;
	bool is_first_list, has_more = false;

	if (!parse_atom(p, depth, &first, &is_first_list))
		return false;
	for (;;) {
		const char *op = take_word(p, "or") ? "or" : take_word(p, "and") ? "and" : NULL;
		auto_buf struct buf atom = BUF_NULL;
		bool is_list;

		if (!op)
			break;
		if (!has_more)
			add_atom(out, &first, is_first_list);
		has_more = true;
		if (!parse_atom(p, depth, &atom, &is_list))
			return false;
		buf_addf(out, " %s ", op);
		add_atom(out, &atom, is_list);
	}
	/* A single atom is not a list of its own: its parentheses, if any, were superfluous. */
	if (!has_more)
		add_atom(out, &first, false);
	*ret_is_list = has_more || is_first_list;
	return true;
}

bool marker_write(struct buf *b, const char **at, const char **ret_complaint) {
	struct parser p = { .at = *at };
	bool is_list;

	if (!parse_expression(&p, 0, b, &is_list)) {
		*ret_complaint = p.complaint;
		return false;
	}
	*at = p.at;
	return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * JSON Check
 *
 * One pass over a text that may come from anyone, without recursion and without a tree: a bit per
 * open array or object says which of the two it is, so nesting costs no stack. Strings are most of
 * the bytes (code, base64), so their plain runs are skipped eight bytes at a time.
 *
 * What is let through here is what jspan.c walks over later, and jspan.c relies on nothing but the
 * bounds of the text: it may also walk text that this check has refused, in search of an id.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/jscan.h"
#include "common/utf8.h"

enum {
	MAX_DEPTH = 1024,    /* what the bits below have room for; callers ask for less */
	NAMED_LEVELS = 2,    /* objects down to here may not hold a name twice */
	N_NAMES_INLINE = 16, /* a message has about four */
};

/*
 * Names of one object, as hashes. Two names of one hash are taken for one: by chance that happens
 * once in 10^15 objects of a hundred names, and on purpose it refuses the sender's own message.
 */
struct names {
	uint64_t few[N_NAMES_INLINE];
	uint64_t *many; /* open addressing, 0 is free; NULL while the few do */
	size_t n, cap;
};

struct scan {
	const char *text;
	char *mend; /* the same text where surrogates are to be mended, else NULL */
	size_t at, len;
	unsigned depth, max_depth;
	unsigned char is_object[MAX_DEPTH / 8 + 1];
	struct names names[NAMED_LEVELS];
};

/* What the grammar allows at a place; a blank may come before any of it. */
enum expect {
	EXPECT_VALUE,
	EXPECT_VALUE_OR_END, /* after [ */
	EXPECT_NAME,
	EXPECT_NAME_OR_END, /* after { */
	EXPECT_COMMA_OR_END,
	EXPECT_NOTHING,
};

static void names_reset(struct names *names) {
	free(names->many);
	names->many = NULL;
	names->n = names->cap = 0;
}

/* Puts a hash in the table, which has room. False when it is there already. */
static bool names_put(uint64_t *many, size_t cap, uint64_t hash) {
	size_t i = hash & (cap - 1);

	for (; many[i]; i = (i + 1) & (cap - 1))
		if (many[i] == hash)
			return false;
	many[i] = hash;
	return true;
}

static bool names_grow(struct names *names) {
	size_t cap = names->cap ? names->cap * 2 : 4 * N_NAMES_INLINE;
	const uint64_t *old = names->many ? names->many : names->few;
	size_t n_old = names->many ? names->cap : names->n;
	uint64_t *many = calloc(cap, sizeof(*many));

	if (!many)
		return false;
	for (size_t i = 0; i < n_old; i++)
		if (old[i])
			names_put(many, cap, old[i]);
	free(names->many);
	names->many = many;
	names->cap = cap;
	return true;
}

/*
 * False when the name was there, or when memory is too short to tell: better refused than
 * ambiguous.
 */
static bool names_add(struct names *names, uint64_t hash) {
	if (!names->many && names->n < N_NAMES_INLINE) {
		for (size_t i = 0; i < names->n; i++)
			if (names->few[i] == hash)
				return false;
		names->few[names->n++] = hash;
		return true;
	}
	if (names->n * 2 >= names->cap && !names_grow(names))
		return false;
	if (!names_put(names->many, names->cap, hash))
		return false;
	names->n++;
	return true;
}

static bool is_blank(char c) {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c) {
	return c >= '0' && c <= '9';
}

/* Bytes from `s` on that stand for themselves in a JSON string. */
static size_t plain_run(const char *s, size_t len) {
	static const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
	size_t i = 0;

	/*
	 * A byte's high bit in `stop` is set when it is below 0x20, above 0x7f, a quote or a
	 * backslash. A borrow may set the bit of a byte above such a one as well, never without
	 * one.
	 */
	for (; len - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
		uint64_t word, quote, backslash, stop;

		memcpy(&word, s + i, sizeof(word));
		quote = word ^ ones * '"';
		backslash = word ^ ones * '\\';
		stop = word | ((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) |
			((backslash - ones) & ~backslash);
		if (stop & highs)
			break;
	}
	for (; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 0x20 || c > 0x7f || c == '"' || c == '\\')
			break;
	}
	return i;
}

/* The four hex digits at `s`, -1 when they are none. */
static int hex4(const char *s, size_t len) {
	static const char digits[] = "0123456789abcdef";
	int value = 0;

	if (len < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int c = s[i] >= 'A' && s[i] <= 'F' ? s[i] | 0x20 : s[i];
		const char *digit = memchr(digits, c, sizeof(digits) - 1);

		if (!digit)
			return -1;
		value = value << 4 | (int)(digit - digits);
	}
	return value;
}

static bool is_surrogate_pair(int high, int low) {
	return high >= 0xd800 && high < 0xdc00 && low >= 0xdc00 && low < 0xe000;
}

/*
 * Steps over the escape at `at`, which is a backslash. An unpaired surrogate is mended in `mend`,
 * the same text, unless that is NULL. False, with *at unmoved, when it is no escape.
 */
static bool scan_escape(const char *text, size_t len, size_t *at, char *mend) {
	const char *s = text + *at;
	size_t left = len - *at;
	int code;

	if (left < 2)
		return false;
	if (s[1] != 'u') {
		if (!s[1] || !strchr("\"\\/bfnrt", s[1]))
			return false;
		*at += 2;
		return true;
	}
	code = hex4(s + 2, left - 2);
	if (code < 0)
		return false;
	if (code >= 0xd800 && code < 0xe000) {
		if (left >= 8 && s[6] == '\\' && s[7] == 'u' &&
			is_surrogate_pair(code, hex4(s + 8, left - 8))) {
			*at += 12;
			return true;
		}
		if (mend)
			memcpy(mend + *at + 2, "fffd", 4);
	}
	*at += 6;
	return true;
}

/* Steps over the string whose opening quote is at *at; on failure *at is the place of the fault. */
static bool scan_string(const char *text, size_t len, size_t *at, char *mend) {
	++*at;
	for (;;) {
		unsigned code;
		size_t n;

		*at += plain_run(text + *at, len - *at);
		if (*at == len)
			return false;
		if (text[*at] == '"') {
			++*at;
			return true;
		}
		if (text[*at] == '\\') {
			if (!scan_escape(text, len, at, mend))
				return false;
			continue;
		}
		n = utf8_decode(text + *at, len - *at, &code);
		if (!n || code < 0x20)
			return false;
		*at += n;
	}
}

static bool scan_digits(struct scan *s) {
	size_t start = s->at;

	while (s->at < s->len && is_digit(s->text[s->at]))
		s->at++;
	return s->at > start;
}

static bool scan_number(struct scan *s) {
	if (s->text[s->at] == '-')
		s->at++;
	if (s->at < s->len && s->text[s->at] == '0')
		s->at++;
	else if (!scan_digits(s))
		return false;
	if (s->at < s->len && s->text[s->at] == '.') {
		s->at++;
		if (!scan_digits(s))
			return false;
	}
	if (s->at < s->len && (s->text[s->at] | 0x20) == 'e') {
		s->at++;
		if (s->at < s->len && (s->text[s->at] == '+' || s->text[s->at] == '-'))
			s->at++;
		if (!scan_digits(s))
			return false;
	}
	return true;
}

static bool scan_word(struct scan *s, const char *word) {
	size_t len = strlen(word);

	if (s->len - s->at < len || memcmp(s->text + s->at, word, len))
		return false;
	s->at += len;
	return true;
}

/* Whether the innermost open container is an object. */
static bool is_in_object(const struct scan *s) {
	return s->is_object[s->depth / 8] >> s->depth % 8 & 1;
}

static bool scan_open(struct scan *s, bool is_object) {
	if (s->depth == s->max_depth)
		return false;
	s->depth++;
	if (is_object)
		s->is_object[s->depth / 8] |= (unsigned char)(1u << s->depth % 8);
	else
		s->is_object[s->depth / 8] &= (unsigned char)~(1u << s->depth % 8);
	if (s->depth <= NAMED_LEVELS)
		names_reset(&s->names[s->depth - 1]);
	s->at++;
	return true;
}

static enum expect after_value(const struct scan *s) {
	return s->depth ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

/* A name and its colon. */
static enum jscan_result scan_name(struct scan *s) {
	size_t start = s->at;

	if (s->text[s->at] != '"' || !scan_string(s->text, s->len, &s->at, s->mend))
		return JSCAN_SYNTAX;
	if (s->depth <= NAMED_LEVELS) {
		struct jspan name = { s->text + start, s->at - start };

		if (!names_add(&s->names[s->depth - 1], jspan_hash(name))) {
			s->at = start;
			return JSCAN_DUPLICATE;
		}
	}
	while (s->at < s->len && is_blank(s->text[s->at]))
		s->at++;
	if (s->at == s->len || s->text[s->at] != ':')
		return JSCAN_SYNTAX;
	s->at++;
	return JSCAN_OK;
}

/* One value, or the opening of one. */
static enum jscan_result scan_value(struct scan *s, enum expect *ret_next) {
	char c = s->text[s->at];
	bool is_value;

	switch (c) {
	case '{':
	case '[':
		if (!scan_open(s, c == '{'))
			return JSCAN_TOO_DEEP;
		*ret_next = c == '{' ? EXPECT_NAME_OR_END : EXPECT_VALUE_OR_END;
		return JSCAN_OK;
	case '"':
		is_value = scan_string(s->text, s->len, &s->at, s->mend);
		break;
	case 't':
		is_value = scan_word(s, "true");
		break;
	case 'f':
		is_value = scan_word(s, "false");
		break;
	case 'n':
		is_value = scan_word(s, "null");
		break;
	default:
		is_value = (c == '-' || is_digit(c)) && scan_number(s);
	}
	if (!is_value)
		return JSCAN_SYNTAX;
	*ret_next = after_value(s);
	return JSCAN_OK;
}

static enum jscan_result scan_text(struct scan *s) {
	enum expect expect = EXPECT_VALUE;

	for (;;) {
		enum jscan_result r = JSCAN_OK;
		char c;

		while (s->at < s->len && is_blank(s->text[s->at]))
			s->at++;
		if (s->at == s->len)
			return expect == EXPECT_NOTHING ? JSCAN_OK : JSCAN_SYNTAX;
		if (expect == EXPECT_NOTHING)
			return JSCAN_SYNTAX;

		c = s->text[s->at];
		if (expect != EXPECT_VALUE && expect != EXPECT_NAME && s->depth &&
			c == (is_in_object(s) ? '}' : ']')) {
			s->at++;
			s->depth--;
			expect = after_value(s);
		} else if (expect == EXPECT_COMMA_OR_END) {
			if (c != ',')
				return JSCAN_SYNTAX;
			s->at++;
			expect = is_in_object(s) ? EXPECT_NAME : EXPECT_VALUE;
		} else if (expect == EXPECT_NAME || expect == EXPECT_NAME_OR_END) {
			r = scan_name(s);
			expect = EXPECT_VALUE;
		} else {
			r = scan_value(s, &expect);
		}
		if (r != JSCAN_OK)
			return r;
	}
}

static enum jscan_result check(const char *text, char *mend, size_t len, unsigned max_depth,
	size_t *ret_offset) {
	struct scan s;
	enum jscan_result r;

	s.text = text;
	s.mend = mend;
	s.at = 0;
	s.len = len;
	s.depth = 0;
	s.max_depth = max_depth < MAX_DEPTH ? max_depth : MAX_DEPTH;
	for (int i = 0; i < NAMED_LEVELS; i++) {
		s.names[i].many = NULL;
		s.names[i].n = s.names[i].cap = 0;
	}

	r = scan_text(&s);
	for (int i = 0; i < NAMED_LEVELS; i++)
		names_reset(&s.names[i]);
	if (r != JSCAN_OK && ret_offset)
		*ret_offset = s.at;
	return r;
}

enum jscan_result jscan_check(char *text, size_t len, unsigned max_depth, size_t *ret_offset) {
	return check(text, text, len, max_depth, ret_offset);
}

enum jscan_result jscan_look(const char *text, size_t len, unsigned max_depth) {
	return check(text, NULL, len, max_depth, NULL);
}

/* Whether the span is a string that may be sent back as it stands. */
static bool is_sound_string(struct jspan s) {
	char copy[256];
	size_t at = 0;

	if (!jspan_is_string(s) || s.len > sizeof(copy))
		return false;
	memcpy(copy, s.at, s.len);
	return scan_string(copy, s.len, &at, copy) && at == s.len && !memcmp(copy, s.at, s.len);
}

struct jspan jscan_recover_id(const char *text, size_t len) {
	struct jspan object = jscan_value(text, len), name, value;
	size_t pos = 0;

	while (jscan_next_member(object, &pos, &name, &value)) {
		if (!jspan_equals(name, "id"))
			continue;
		/* A number that ends where the text does may have lost digits. */
		if (jspan_is_integer(value) ? value.at + value.len < text + len
					    : is_sound_string(value))
			return value;
		break;
	}
	return JSPAN_NULL;
}

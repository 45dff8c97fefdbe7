/* SPDX-License-Identifier: MIT */
/*
 * Cleaning Output
 *
 * What programs write for terminals, read by a model: colours and cursor movements only cost
 * tokens, and of a progress bar the last state is what counts. So a small terminal without a
 * screen: control sequences go, \r lets the next text replace the line, \b takes back a character,
 * and bytes that are no UTF-8 become U+FFFD, one for each maximal broken piece, as Python's
 * "replace" does.
 *
 * It works on a stream: any sequence may be cut anywhere between two reads. Nearly all output is
 * plain, so runs of plain bytes are found with one table look-up each and handed on whole.
 */

#include <string.h>

#include "daemon/clean.h"

#define REPLACEMENT "\xef\xbf\xbd"

/*
 * Bytes that are text as they stand: printable ASCII, tab, NUL, and those that mean nothing here.
 */
static const bool is_plain[256] = {
	[0x00 ... 0x06] = true, ['\t'] = true, [0x0b ... 0x0c] = true,
	[0x10 ... 0x17] = true, [0x19] = true, [0x1c ... 0x7f] = true,
};

/* Text is about to be written: after a \r it takes the line's place. */
static void write_text(struct clean *s, struct collect *c, const char *text, size_t len) {
	if (s->has_cr) {
		collect_discard_line(c);
		s->has_cr = false;
	}
	collect_add(c, text, len);
}

static void write_newline(struct clean *s, struct collect *c) {
	s->has_cr = false;
	collect_add_lines(c, "\n", 1);
}

/* A whole code point of two or more bytes. */
static void on_wide(struct clean *s, struct collect *c) {
	bool is_c1 = s->n_pending == 2 && s->pending[0] == 0xc2 && s->pending[1] < 0xa0;

	if (!is_c1 || s->is_raw) {
		if (s->state == CLEAN_STRING || s->state == CLEAN_OSC)
			return;
		/* Anything but a string ends at a character that cannot be in it. */
		s->state = CLEAN_TEXT;
		write_text(s, c, (const char *)s->pending, s->n_pending);
		return;
	}

	/* The eight-bit forms of ESC and a letter. */
	switch (s->pending[1]) {
	case 0x85: /* NEL is a line separator of Unicode, not only of terminals */
		s->state = CLEAN_TEXT;
		write_text(s, c, (const char *)s->pending, s->n_pending);
		break;
	case 0x9b:
		s->state = CLEAN_CSI;
		break;
	case 0x9d:
		s->state = CLEAN_OSC;
		break;
	case 0x90:
	case 0x98:
	case 0x9e:
	case 0x9f:
		s->state = CLEAN_STRING;
		break;
	default:
		s->state = CLEAN_TEXT;
	}
}

/* A control character that is none of a sequence. */
static void on_control(struct clean *s, struct collect *c, unsigned char byte) {
	switch (byte) {
	case '\n':
		write_newline(s, c);
		break;
	case '\r':
		s->has_cr = true;
		break;
	case '\b':
		if (!s->has_cr)
			collect_backspace(c);
		break;
	case 0x1b:
		s->state = CLEAN_ESCAPE;
		break;
	default: /* BEL, SO, SI, CAN, SUB: nothing to see */
		break;
	}
}

static void on_escape(struct clean *s, struct collect *c, unsigned char byte) {
	s->state = CLEAN_TEXT;
	switch (byte) {
	case '[':
		s->state = CLEAN_CSI;
		break;
	case ']':
		s->state = CLEAN_OSC;
		break;
	case 'P':
	case 'X':
	case '^':
	case '_':
		s->state = CLEAN_STRING;
		break;
	default:
		if (byte >= 0x20 && byte <= 0x2f)
			s->state = CLEAN_ESCAPE_INTER;
		else if (byte < 0x20)
			on_control(s, c, byte);
	}
}

/* One ASCII byte inside a control sequence. */
static void on_sequence(struct clean *s, struct collect *c, unsigned char byte) {
	switch (s->state) {
	case CLEAN_ESCAPE:
		on_escape(s, c, byte);
		break;
	case CLEAN_ESCAPE_INTER:
		if (byte >= 0x20 && byte <= 0x2f)
			break;
		s->state = CLEAN_TEXT;
		if (byte < 0x20)
			on_control(s, c, byte);
		break;
	case CLEAN_CSI:
		if (byte >= 0x20 && byte <= 0x3f)
			break;
		s->state = CLEAN_TEXT;
		if (byte < 0x20)
			on_control(s, c, byte);
		break;
	case CLEAN_STRING_ESCAPE:
		/* ESC ends the string in any case; what follows a backslash is text again. */
		s->state = CLEAN_TEXT;
		if (byte != '\\')
			on_escape(s, c, byte);
		break;
	case CLEAN_OSC:
		if (byte == '\n')
			write_newline(s, c);
		if (byte == '\n' || byte == 0x07)
			s->state = CLEAN_TEXT;
		/* fall through */
	case CLEAN_STRING:
		if (byte == 0x1b)
			s->state = CLEAN_STRING_ESCAPE;
		else if (byte == 0x18 || byte == 0x1a)
			s->state = CLEAN_TEXT;
		break;
	case CLEAN_TEXT:
		break;
	}
}

/* A broken sequence ends. In a control string it is as invisible as the rest. */
static void on_broken(struct clean *s, struct collect *c) {
	s->n_pending = 0;
	if (s->state == CLEAN_STRING || s->state == CLEAN_OSC)
		return;
	s->state = CLEAN_TEXT;
	write_text(s, c, REPLACEMENT, sizeof(REPLACEMENT) - 1);
}

/* The first byte of a sequence: how many follow, and in which bounds the next one lies. */
static void on_lead(struct clean *s, struct collect *c, unsigned char byte) {
	s->pending[0] = byte;
	s->n_pending = 1;
	s->lower = 0x80;
	s->upper = 0xbf;
	if (byte >= 0xc2 && byte <= 0xdf) {
		s->n_needed = 2;
	} else if (byte >= 0xe0 && byte <= 0xef) {
		s->n_needed = 3;
		if (byte == 0xe0)
			s->lower = 0xa0;
		if (byte == 0xed)
			s->upper = 0x9f;
	} else if (byte >= 0xf0 && byte <= 0xf4) {
		s->n_needed = 4;
		if (byte == 0xf0)
			s->lower = 0x90;
		if (byte == 0xf4)
			s->upper = 0x8f;
	} else {
		on_broken(s, c);
	}
}

static void on_byte(struct clean *s, struct collect *c, unsigned char byte) {
	if (s->n_pending) {
		if (byte >= s->lower && byte <= s->upper) {
			s->pending[s->n_pending++] = byte;
			s->lower = 0x80;
			s->upper = 0xbf;
			if (s->n_pending == s->n_needed) {
				on_wide(s, c);
				s->n_pending = 0;
			}
			return;
		}
		on_broken(s, c);
	}
	if (byte >= 0x80)
		on_lead(s, c, byte);
	else if (s->state != CLEAN_TEXT)
		on_sequence(s, c, byte);
	else if (s->is_raw && byte != '\n')
		collect_add(c, (const char *)&byte, 1);
	else if (is_plain[byte])
		write_text(s, c, (const char *)&byte, 1);
	else
		on_control(s, c, byte);
}

/* The plain text at the beginning of `bytes`, newlines included. */
static size_t plain_prefix(const unsigned char *bytes, size_t len) {
	size_t i = 0;

	while (i < len && (is_plain[bytes[i]] || bytes[i] == '\n'))
		i++;
	return i;
}

void clean_feed(struct clean *s, struct collect *c, const char *bytes, size_t len) {
	while (len) {
		size_t plain = 0;

		if (s->state == CLEAN_TEXT && !s->n_pending)
			plain = plain_prefix((const unsigned char *)bytes, len);
		if (plain) {
			const char *newline = memrchr(bytes, '\n', plain);
			size_t lines = newline ? (size_t)(newline - bytes) + 1 : 0;

			if (s->has_cr && bytes[0] != '\n')
				collect_discard_line(c);
			s->has_cr = false;
			if (lines)
				collect_add_lines(c, bytes, lines);
			if (plain > lines)
				collect_add(c, bytes + lines, plain - lines);
		} else {
			on_byte(s, c, (unsigned char)*bytes);
			plain = 1;
		}
		bytes += plain;
		len -= plain;
	}
}

void clean_end(struct clean *s, struct collect *c) {
	if (s->n_pending)
		on_broken(s, c);
	*s = (struct clean){ .is_raw = s->is_raw };
}

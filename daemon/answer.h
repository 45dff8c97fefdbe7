/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Answers
 *
 * A tool's answer on its way to a client, in a form that serves the three profiles. The half that
 * knows a value writes it as finished JSON text (big integers stay exact); nobody parses it again.
 * Both halves make answers: the Python half of what ran, the event half of what never did (busy,
 * queue_full, startup_failed). Compiled into both; no libevent, no Python.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "daemon/config.h"

enum { ANSWER_MAX_MEMBERS = 12 };

/* One member of the answer object. */
struct answer_member {
	const char *name; /* static */
	struct buf json;
	bool is_default; /* empty or at its default: compact leaves it out */
};

/* One image block. */
struct answer_image {
	char *mime;
	char *base64;
	size_t base64_len;
};

/* Parts of execute's `truncated` that the Python half knows. */
enum answer_cut {
	ANSWER_CUT_RESULT = 1 << 0,
	ANSWER_CUT_DISPLAY = 1 << 1,
	ANSWER_CUT_TRACEBACK = 1 << 2,
	ANSWER_CUT_ITEMS = 1 << 3,
};

struct answer {
	struct answer_member members[ANSWER_MAX_MEMBERS];
	size_t n_members;
	bool is_error;            /* the result's isError */
	bool has_wide_integer;    /* beyond +-(2^53 - 1): structuredContent is left out */
	unsigned cuts;            /* execute: enum answer_cut */
	struct answer_image *images;
	size_t n_images;

	/*
	 * Profile text only: what stands after the streams (display items, value, or the error),
	 * without a newline at its end; may be empty.
	 */
	struct buf text;

	/* Static text that joins the session's notices; NULL: none. */
	const char *notice;

	/*
	 * What `result` becomes when the whole line would exceed MAX_REPLY_BYTES; empty: nothing.
	 */
	struct buf result_fallback;
};

struct answer *answer_new(void);

/* Accepts NULL, returns NULL. */
struct answer *answer_free(struct answer *a);

/*
 * The buffer of member `name` (a static string), appended in call order; an existing one is emptied
 * and reused. The caller writes JSON into it. `is_default` as in struct answer_member.
 */
struct buf *answer_member(struct answer *a, const char *name, bool is_default);

/* Shorthands for members whose value is a word, a bool, or a string. `s` NULL writes null. */
void answer_add_literal(struct answer *a, const char *name, const char *json, bool is_default);
void answer_add_bool(struct answer *a, const char *name, bool value, bool is_default);
void answer_add_string(struct answer *a, const char *name, const char *s, size_t len,
	bool is_default);

/* Appends an image; `mime` is copied, `base64` is taken. 0 or -ENOMEM (then `base64` is freed). */
int answer_add_image(struct answer *a, const char *mime, char *base64, size_t base64_len);

/* The error object of the contract. Zeroed: nothing known, not retryable, no retry_after. */
struct answer_error {
	const char *code; /* static */
	char *message;
	char *error_type;
	char *filename;
	long line, column; /* 0: unknown; location is null when all three are unknown */
	char *traceback;
	bool is_retryable;
	double retry_after_s; /* 0: null */
	bool message_truncated, location_truncated, traceback_truncated;
};

#define auto_answer_error __attribute__((cleanup(answer_error_deinit)))
void answer_error_deinit(struct answer_error *e);

/* Writes the error object; compact leaves out what is null or false. `e` NULL writes null. */
void answer_error_write(struct buf *b, const struct answer_error *e, enum profile profile);

/*
 * Ends the answer with member `error`, sets is_error, and for profile text puts the error's text
 * form into `text`: the traceback when there is one (it ends in "Type: message"), else "[code]
 * message".
 */
void answer_set_error(struct answer *a, const struct answer_error *e, enum profile profile);

/* A printf for messages: owned by the caller, NULL when memory is short. */
char *answer_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

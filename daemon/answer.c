/* SPDX-License-Identifier: MIT */
/*
 * Answers
 *
 * See answer.h. Memory that runs short shows as a failed buffer, which render.c reports as an
 * internal error: an answer is either whole or refused.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "daemon/answer.h"

struct answer *answer_new(void) {
	return calloc(1, sizeof(struct answer));
}

struct answer *answer_free(struct answer *a) {
	if (!a)
		return NULL;
	for (size_t i = 0; i < a->n_members; i++)
		buf_deinit(&a->members[i].json);
	for (size_t i = 0; i < a->n_images; i++) {
		free(a->images[i].mime);
		free(a->images[i].base64);
	}
	free(a->images);
	buf_deinit(&a->text);
	buf_deinit(&a->result_fallback);
	free(a);
	return NULL;
}

struct buf *answer_member(struct answer *a, const char *name, bool is_default) {
	struct answer_member *m = NULL;

	for (size_t i = 0; i < a->n_members; i++)
		if (!strcmp(a->members[i].name, name))
			m = &a->members[i];
	if (!m) {
		/*
		 * The contract's largest answer has ten members: a full table is a fault of ours.
		 */
		if (a->n_members == ANSWER_MAX_MEMBERS)
			abort();
		m = &a->members[a->n_members++];
	}
	m->name = name;
	m->is_default = is_default;
	buf_clear(&m->json);
	return &m->json;
}

void answer_add_literal(struct answer *a, const char *name, const char *json, bool is_default) {
	buf_add_str(answer_member(a, name, is_default), json);
}

void answer_add_bool(struct answer *a, const char *name, bool value, bool is_default) {
	answer_add_literal(a, name, value ? "true" : "false", is_default);
}

void answer_add_string(struct answer *a, const char *name, const char *s, size_t len,
	bool is_default) {
	if (s)
		buf_add_json_string(answer_member(a, name, is_default), s, len);
	else
		answer_add_literal(a, name, "null", is_default);
}

int answer_add_image(struct answer *a, const char *mime, char *base64, size_t base64_len) {
	auto_free char *data = base64;
	auto_free char *type = strdup(mime);
	struct answer_image *images;

	images = realloc(a->images, (a->n_images + 1) * sizeof(*images));
	if (images)
		a->images = images;
	if (!images || !type)
		return -ENOMEM;
	images[a->n_images++] = (struct answer_image){
		.mime = take(type), .base64 = take(data), .base64_len = base64_len
	};
	return 0;
}

void answer_error_deinit(struct answer_error *e) {
	free(e->message);
	free(e->error_type);
	free(e->filename);
	free(e->traceback);
	*e = (struct answer_error){ 0 };
}

/* One member of the error object: compact leaves out what says nothing. */
static void error_string(struct buf *b, const char *name, const char *s, bool is_compact) {
	if (!s && is_compact)
		return;
	buf_addf(b, ",\"%s\":", name);
	if (s)
		buf_add_json_string(b, s, strlen(s));
	else
		buf_add_str(b, "null");
}

static void error_bool(struct buf *b, const char *name, bool value, bool is_compact) {
	if (value || !is_compact)
		buf_addf(b, ",\"%s\":%s", name, value ? "true" : "false");
}

static void error_position(struct buf *b, const char *name, long value) {
	if (value > 0)
		buf_addf(b, "\"%s\":%ld,", name, value);
	else
		buf_addf(b, "\"%s\":null,", name);
}

void answer_error_write(struct buf *b, const struct answer_error *e, enum profile profile) {
	bool is_compact = profile != PROFILE_FULL;

	if (!e) {
		buf_add_str(b, "null");
		return;
	}
	buf_addf(b, "{\"code\":\"%s\"", e->code);
	error_string(b, "message", e->message ? e->message : "", is_compact);
	error_string(b, "error_type", e->error_type, is_compact);
	if (e->filename || e->line > 0 || e->column > 0) {
		buf_add_str(b, ",\"location\":{");
		error_position(b, "line", e->line);
		error_position(b, "column", e->column);
		buf_add_str(b, "\"filename\":");
		if (e->filename)
			buf_add_json_string(b, e->filename, strlen(e->filename));
		else
			buf_add_str(b, "null");
		buf_add_char(b, '}');
	} else if (!is_compact) {
		buf_add_str(b, ",\"location\":null");
	}
	error_string(b, "traceback", e->traceback, is_compact);
	error_bool(b, "retryable", e->is_retryable, is_compact);
	if (e->retry_after_s > 0) {
		buf_add_str(b, ",\"retry_after_seconds\":");
		buf_add_number(b, e->retry_after_s);
	} else if (!is_compact) {
		buf_add_str(b, ",\"retry_after_seconds\":null");
	}
	error_bool(b, "message_truncated", e->message_truncated, is_compact);
	error_bool(b, "location_truncated", e->location_truncated, is_compact);
	error_bool(b, "traceback_truncated", e->traceback_truncated, is_compact);
	buf_add_char(b, '}');
}

void answer_set_error(struct answer *a, const struct answer_error *e, enum profile profile) {
	answer_error_write(answer_member(a, "error", false), e, profile);
	a->is_error = true;
	if (profile != PROFILE_TEXT)
		return;
	if (a->text.len)
		buf_add_char(&a->text, '\n');
	if (e->traceback)
		buf_add_str(&a->text, e->traceback);
	/* A timeout's traceback tells where the code was, not that it had no more time. */
	if (!e->traceback || !strcmp(e->code, "timeout"))
		buf_addf(&a->text, "%s[%s] %s", e->traceback ? "\n" : "", e->code,
			e->message ? e->message : "");
}

char *answer_message(const char *format, ...) {
	char *message = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	va_end(args);
	return message;
}

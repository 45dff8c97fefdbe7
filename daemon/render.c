/* SPDX-License-Identifier: MIT */
/*
 * Rendering
 *
 * From an answer's members to the result that a client gets. In profiles full and compact the
 * answer object is assembled once, as text, from members that are JSON already; the text block is
 * that text, escaped while it is copied. Profile text is put together from plain pieces, as a
 * terminal would show them.
 *
 * Two rules come from how agents show results to their models. Some show structuredContent alone
 * and lose the images beside it, so that an answer with an image has none; JavaScript rounds
 * integers beyond 2^53, so that an answer with one has none. And image blocks in an error are
 * pasted as base64 text by others, so that an error has no image.
 *
 * Some clients hang up on a line above 10 MiB. An answer that is too large is made smaller step by
 * step and written again: rare enough that the second writing does not matter.
 */

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/jscan.h"
#include "common/utf8.h"
#include "common/wire.h"
#include "daemon/config.h"
#include "daemon/render.h"

/* Not one of JSON's blanks: behind a value it makes the text no JSON, and a reader sees nothing. */
#define NO_BREAK_SPACE "\xc2\xa0"

/* What the envelope adds at most: an id of 1,024 bytes, the era's own members. */
enum { ENVELOPE_BYTES = 2048 };

/* How much had to be given up so far. */
struct shrink {
	size_t n_images;     /* left out, from the end */
	bool has_structured; /* may be sent at all */
};

static bool keeps_output(const struct render *r) {
	return r->out && r->err;
}

static void add_member(struct buf *b, const char *name, const char *json, size_t len) {
	if (b->len > 1)
		buf_add_char(b, ',');
	buf_addf(b, "\"%s\":", name);
	buf_add(b, json, len);
}

static void add_text_member(struct buf *b, const char *prefix, const char *name, const char *text,
	size_t len) {
	if (b->len > 1)
		buf_add_char(b, ',');
	buf_addf(b, "\"%s%s\":", prefix, name);
	buf_add_json_string(b, text, len);
}

static void add_stream(struct buf *b, const struct render *r, const char *name,
	const struct output_text *t) {
	if (t->head.len || r->profile == PROFILE_FULL)
		add_text_member(b, name, "", t->head.data, t->head.len);
	if (t->tail.len)
		add_text_member(b, name, "_tail", t->tail.data, t->tail.len);
	if (t->file)
		add_text_member(b, name, "_file", t->file, strlen(t->file));
}

/* execute's `truncated`; compact shows only what was. */
static void add_truncated(struct buf *b, const struct render *r) {
	const unsigned cuts = r->answer->cuts;
	const struct {
		const char *name;
		bool is_set;
	} flags[] = {
		{ "stdout", r->out->omitted_chars },
		{ "stderr", r->err->omitted_chars },
		{ "result", cuts & ANSWER_CUT_RESULT },
		{ "display_data", cuts & ANSWER_CUT_DISPLAY },
		{ "traceback", cuts & ANSWER_CUT_TRACEBACK },
		{ "items", cuts & ANSWER_CUT_ITEMS },
	};
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = {
		{ "stdout_omitted_chars", r->out->omitted_chars },
		{ "stderr_omitted_chars", r->err->omitted_chars },
	};
	bool shows_all = r->profile == PROFILE_FULL;
	auto_buf struct buf object = BUF_NULL;
	char number[24];

	buf_add_char(&object, '{');
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (flags[i].is_set)
			add_member(&object, flags[i].name, "true", 4);
		else if (shows_all)
			add_member(&object, flags[i].name, "false", 5);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		if (counts[i].n || shows_all)
			add_member(&object, counts[i].name, number,
				(size_t)snprintf(number, sizeof(number), "%llu",
					(unsigned long long)counts[i].n));
	buf_add_char(&object, '}');
	if (object.has_failed)
		b->has_failed = true;
	else if (object.len > 2)
		add_member(b, "truncated", object.data, object.len);
}

/* The answer object of profiles full and compact. */
static void write_object(const struct render *r, struct buf *b) {
	const struct answer *a = r->answer;

	buf_add_char(b, '{');
	for (size_t i = 0; i < a->n_members; i++) {
		const struct answer_member *m = &a->members[i];

		if (!m->is_default || r->profile == PROFILE_FULL)
			add_member(b, m->name, m->json.data, m->json.len);
		if (keeps_output(r) && !strcmp(m->name, "result")) {
			add_stream(b, r, "stdout", r->out);
			add_stream(b, r, "stderr", r->err);
		}
	}
	if (keeps_output(r))
		add_truncated(b, r);
	if (r->notice)
		add_text_member(b, "notice", "", r->notice, strlen(r->notice));
	buf_add_char(b, '}');
}

/*
 * Profile text.
 */

/* Begins a new line unless at the beginning of one. */
static void begin_line(struct buf *b) {
	if (b->len && b->data[b->len - 1] != '\n')
		buf_add_char(b, '\n');
}

/* With the thousands apart, for people. */
static void add_number(struct buf *b, uint64_t n) {
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf_add_char(b, ',');
		buf_add_char(b, digits[i]);
	}
}

static void add_stream_text(struct buf *b, const char *title, const struct output_text *t) {
	uint64_t unseen = t->omitted_chars - utf8_count(t->tail.data, t->tail.len);

	if (!t->head.len && !t->omitted_chars)
		return;
	begin_line(b);
	buf_add_str(b, title);
	buf_add(b, t->head.data, t->head.len);
	if (unseen) {
		begin_line(b);
		buf_add_str(b, "[… ");
		add_number(b, unseen);
		buf_add_str(b, " characters omitted");
		if (t->file)
			buf_addf(b, "; whole text: %s", t->file);
		buf_add_str(b, " …]\n");
	}
	buf_add(b, t->tail.data, t->tail.len);
}

/* Each line of the notice in brackets. First of all, because an error ends the text. */
static void add_notice_text(struct buf *b, const char *notice) {
	while (notice && *notice) {
		size_t len = strcspn(notice, "\n");

		buf_addf(b, "[%.*s]\n", (int)len, notice);
		notice += len + (notice[len] == '\n');
	}
}

static void write_text(const struct render *r, const struct shrink *s, struct buf *b) {
	const struct answer *a = r->answer;

	add_notice_text(b, r->notice);
	if (keeps_output(r)) {
		add_stream_text(b, "", r->out);
		add_stream_text(b, "[stderr]\n", r->err);
	}
	if (a->text.len) {
		begin_line(b);
		buf_add(b, a->text.data, a->text.len);
	}
	if (s->n_images) {
		begin_line(b);
		buf_addf(b,
			"[%zu images left out: IPYTHON_MCP_MAX_REPLY_BYTES would be exceeded]",
			s->n_images);
	}
	if (b->len && b->data[b->len - 1] == '\n')
		b->len--;
	if (!b->len && !a->n_images)
		buf_add_str(b, "[no output]");
}

/*
 * For people's tools, whatever the profile: the parts that a terminal keeps apart.
 */

static void write_stream_parts(const struct render *r, struct buf *b) {
	const struct {
		const char *name;
		const struct output_text *text;
	} streams[] = { { "stdout", r->out }, { "stderr", r->err } };

	for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
		auto_buf struct buf text = BUF_NULL;

		add_stream_text(&text, "", streams[i].text);
		add_text_member(b, streams[i].name, "", text.data, text.len);
		b->has_failed |= text.has_failed;
		if (streams[i].text->file)
			add_text_member(b, streams[i].name, "File", streams[i].text->file,
				strlen(streams[i].text->file));
	}
}

/* The files that display_data names, one for each image. */
static void write_image_parts(const struct answer *a, struct buf *b) {
	struct jspan items = JSPAN_NULL, item, name, payload;
	const char *separator = "";

	for (size_t i = 0; i < a->n_members; i++)
		if (!strcmp(a->members[i].name, "display_data"))
			items = (struct jspan){ a->members[i].json.data, a->members[i].json.len };
	buf_add_str(b, ",\"images\":[");
	for (size_t at = 0; jscan_next(items, &at, &item);) {
		struct jspan data = jscan_get(item, "data");

		for (size_t k = 0; jscan_next_member(data, &k, &name, &payload);) {
			struct jspan file = jscan_get(payload, "file");

			if (!file.at)
				continue;
			buf_add_str(b, separator);
			buf_add(b, file.at, file.len);
			separator = ",";
		}
	}
	buf_add_char(b, ']');
}

static void write_parts(const struct render *r, struct buf *b) {
	const struct answer *a = r->answer;

	if (keeps_output(r))
		write_stream_parts(r, b);
	add_text_member(b, "text", "", a->text.data, a->text.len);
	write_image_parts(a, b);
	if (r->notice)
		add_text_member(b, "notice", "", r->notice, strlen(r->notice));
	buf_addf(b, ",\"isError\":%s", a->is_error ? "true" : "false");
}

/*
 * The result.
 */

static size_t shown_images(const struct render *r, const struct shrink *s) {
	return r->answer->is_error ? 0 : r->answer->n_images - s->n_images;
}

static bool sends_structured(const struct render *r, const struct shrink *s) {
	if (r->profile != PROFILE_FULL || !r->revision->has_tool_title)
		return false;
	if (r->tool && r->tool->output_schema)
		return true;
	return s->has_structured && !shown_images(r, s) && !r->answer->has_wide_integer;
}

/* Whether a text is JSON as a whole and yet no object: 42, "a", [1, 2], true. */
static bool is_bare_json(const struct buf *text) {
	struct jspan value = jscan_value(text->data, text->len);
	auto_free char *copy = NULL;

	if (text->has_failed || !value.at || !value.len ||
		!strchr("-0123456789\"[tfn", value.at[0]))
		return false;
	copy = jspan_copy(value);
	return copy && jscan_check(copy, value.len, WIRE_MAX_DEPTH, NULL) == JSCAN_OK;
}

static void write_result(const struct render *r, const struct shrink *s, struct buf *b) {
	auto_buf struct buf text = BUF_NULL;
	const char *separator = "";

	if (r->revision->keeps_parts) {
		write_parts(r, b);
		return;
	}
	if (r->profile == PROFILE_TEXT) {
		write_text(r, s, &text);
		if (r->reads_json && is_bare_json(&text))
			buf_add_str(&text, NO_BREAK_SPACE);
	} else {
		write_object(r, &text);
	}
	if (text.has_failed) {
		b->has_failed = true;
		return;
	}

	buf_add_str(b, "\"content\":[");
	if (text.len) {
		buf_add_str(b, "{\"type\":\"text\",\"text\":");
		buf_add_json_string(b, text.data, text.len);
		buf_add_char(b, '}');
		separator = ",";
	}
	for (size_t i = 0; i < shown_images(r, s); i++) {
		const struct answer_image *image = &r->answer->images[i];

		buf_addf(b, "%s{\"type\":\"image\",\"data\":\"", separator);
		buf_add(b, image->base64, image->base64_len);
		buf_addf(b, "\",\"mimeType\":\"%s\"}", image->mime);
		separator = ",";
	}
	buf_add_char(b, ']');
	if (sends_structured(r, s)) {
		buf_add_str(b, ",\"structuredContent\":");
		buf_add(b, text.data, text.len);
	}
	buf_addf(b, ",\"isError\":%s", r->answer->is_error ? "true" : "false");
}

/*
 * Making it smaller: each step returns false when it has nothing left to give.
 */

static struct answer_member *find_member(struct answer *a, const char *name) {
	for (size_t i = 0; i < a->n_members; i++)
		if (!strcmp(a->members[i].name, name))
			return &a->members[i];
	return NULL;
}

/* Image blocks that belong to an item of display_data. */
static size_t count_blocks(struct jspan item) {
	struct jspan data = jscan_get(item, "data"), name, payload;
	size_t at = 0, n = 0;

	while (jscan_next_member(data, &at, &name, &payload))
		n += !strncmp(name.at, "\"image/", 7) && jscan_get(payload, "block").at;
	return n;
}

/* Drops display items from the end until at least `excess` bytes are gone. */
static bool drop_display(const struct render *r, struct shrink *s, size_t excess) {
	struct answer *a = r->answer;
	struct answer_member *m = find_member(a, "display_data");
	size_t freed = 0;

	while (m && m->json.len > 2 && freed < excess) {
		struct jspan items = { m->json.data, m->json.len }, item, last = JSPAN_NULL;
		size_t at = 0, n_blocks, before = m->json.len;
		bool is_first = true;

		while (jscan_next(items, &at, &item)) {
			is_first = !last.at;
			last = item;
		}
		if (!last.at)
			break;
		n_blocks = count_blocks(last);
		for (size_t i = 0; i < n_blocks && s->n_images < a->n_images; i++)
			freed += a->images[a->n_images - ++s->n_images].base64_len;
		/* The comma before it goes, too. */
		m->json.len = (size_t)(last.at - m->json.data) - !is_first;
		while (!is_first && m->json.data[m->json.len - 1] == ',')
			m->json.len--;
		buf_add_char(&m->json, ']');
		freed += before - m->json.len;
		m->is_default = is_first;
		a->cuts |= ANSWER_CUT_DISPLAY;
	}
	return freed > 0;
}

/* Profile text has no items, only their images. */
static bool drop_images(const struct render *r, struct shrink *s, size_t excess) {
	struct answer *a = r->answer;
	size_t freed = 0;

	while (freed < excess && s->n_images < a->n_images)
		freed += a->images[a->n_images - ++s->n_images].base64_len;
	return freed > 0;
}

static bool replace_result(const struct render *r) {
	struct answer_member *m = find_member(r->answer, "result");

	if (!m || !r->answer->result_fallback.len)
		return false;
	buf_deinit(&m->json);
	m->json = r->answer->result_fallback;
	r->answer->result_fallback = (struct buf)BUF_NULL;
	r->answer->has_wide_integer = false;
	r->answer->cuts |= ANSWER_CUT_RESULT;
	return true;
}

/* With a MAX_TEXT_CHARS near MAX_REPLY_BYTES even the bounded streams are too much. */
static bool cut_stream(struct output_text *t, size_t max_bytes) {
	size_t len = t->head.len;

	if (len <= max_bytes && t->tail.len <= max_bytes)
		return false;
	if (len > max_bytes) {
		for (len = max_bytes; len && (t->head.data[len] & 0xc0) == 0x80; len--)
			;
		t->omitted_chars += utf8_count(t->head.data + len, t->head.len - len);
		t->head.len = len;
	}
	buf_clear(&t->tail);
	return true;
}

static bool shrink(const struct render *r, struct shrink *s, size_t excess, size_t limit) {
	bool was_cut;

	/* Only execute's answers have parts that can go. */
	if (!keeps_output(r))
		return false;
	if (r->profile == PROFILE_TEXT ? drop_images(r, s, excess) : drop_display(r, s, excess))
		return true;
	if (s->has_structured && sends_structured(r, s)) {
		s->has_structured = false;
		return true;
	}
	if (replace_result(r))
		return true;
	/* Both are cut, whatever becomes of the first. */
	was_cut = cut_stream(r->out, limit / 16);
	was_cut |= cut_stream(r->err, limit / 16);
	return was_cut;
}

/* An answer that is nothing but an error, in place of one that cannot be sent. */
static void write_refusal(const struct render *r, const char *code, const char *message,
	struct buf *b) {
	auto_answer_error struct answer_error error = {
		.code = code, .message = answer_message("%s", message)
	};
	struct render refusal = *r;
	struct output_text nothing = { 0 };
	struct shrink none = { .has_structured = true };

	refusal.answer = tools_error_answer(r->tool, r->name, r->profile, &error);
	refusal.out = r->out ? &nothing : NULL;
	refusal.err = r->err ? &nothing : NULL;
	if (refusal.answer)
		write_result(&refusal, &none, b);
	else
		b->has_failed = true;
	answer_free(refusal.answer);
}

static bool has_failed(const struct render *r) {
	const struct answer *a = r->answer;
	bool failed = a->text.has_failed;

	for (size_t i = 0; i < a->n_members; i++)
		failed |= a->members[i].json.has_failed;
	return failed;
}

void render_answer(const struct render *r, struct buf *b) {
	size_t max = r->settings->max_reply_bytes;
	size_t limit = max > 2 * ENVELOPE_BYTES ? max - ENVELOPE_BYTES : max / 2;
	struct shrink s = { .has_structured = true };

	if (!r->answer || has_failed(r)) {
		write_refusal(r, "execution_error",
			"Memory was short for the answer; what the call did stays done.",
			b);
		return;
	}
	write_result(r, &s, b);
	while (b->len > limit && shrink(r, &s, b->len - limit, limit)) {
		buf_clear(b);
		write_result(r, &s, b);
	}
	if (b->len > limit) {
		buf_clear(b);
		write_refusal(r, "reply_too_large",
			"The answer exceeds IPYTHON_MCP_MAX_REPLY_BYTES; ask for a part or a "
			"summary of it, or raise that setting.",
			b);
	}
}

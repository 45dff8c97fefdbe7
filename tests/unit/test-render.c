/* SPDX-License-Identifier: MIT */
/*
 * Answers as each profile shows them; what gives way when they are too large; the catalog's lists.
 */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "daemon/catalog.h"
#include "daemon/render.h"
#include "tests/lib/check.h"

static const struct revision revision = { .name = "2025-11-25", .has_tool_title = true,
	.has_annotations = true, .index = 3 };
static const struct revision old_revision = { .name = "2024-11-05" };

void output_text_deinit(struct output_text *t) {
	buf_deinit(&t->head);
	buf_deinit(&t->tail);
	free(t->file);
	*t = (struct output_text){ 0 };
}

/* One answer and what is rendered from it. */
struct fixture {
	struct settings settings;
	struct output_text out, err;
	struct answer *answer;
	struct render r;
	json_t *result;
};

static void begin(struct fixture *f, const char *tool, enum profile profile) {
	*f = (struct fixture){ .settings.max_reply_bytes = 1 << 20 };
	f->answer = answer_new();
	f->r = (struct render){ .settings = &f->settings,
		.tool = tools_find(tool),
		.profile = profile,
		.revision = &revision,
		.answer = f->answer };
	if (f->r.tool && f->r.tool->keeps_output) {
		f->r.out = &f->out;
		f->r.err = &f->err;
	}
}

static void end(struct fixture *f) {
	output_text_deinit(&f->out);
	output_text_deinit(&f->err);
	answer_free(f->answer);
	json_decref(f->result);
}

/* An execute that went well. */
static void fill(struct fixture *f, const char *result) {
	answer_add_bool(f->answer, "ok", true, false);
	answer_add_literal(f->answer, "status", "\"ok\"", true);
	answer_add_literal(f->answer, "execution_count", "7", false);
	answer_add_literal(f->answer, "result", result, false);
	answer_add_literal(f->answer, "display_data", "[]", true);
	answer_add_literal(f->answer, "error", "null", true);
}

static void render(struct fixture *f) {
	auto_buf struct buf members = BUF_NULL, b = BUF_NULL;

	render_answer(&f->r, &members);
	buf_addf(&b, "{%.*s}", (int)members.len, members.data);
	json_decref(f->result);
	f->result = b.has_failed ? NULL : json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES, NULL);
}

static const char *text(struct fixture *f) {
	json_t *block = json_array_get(json_object_get(f->result, "content"), 0);

	return json_string_value(json_object_get(block, "text"));
}

static size_t n_blocks(struct fixture *f) {
	return json_array_size(json_object_get(f->result, "content"));
}

static void test_render_full_says_all_twice(void) {
	struct fixture f;
	json_t *parsed;

	begin(&f, "execute", PROFILE_FULL);
	fill(&f, "[1,\"\\u2028\"]");
	buf_add_str(&f.out.head, "hi\n");
	f.r.notice = "a notice";
	render(&f);
	CHECK_STR(text(&f),
		"{\"ok\":true,\"status\":\"ok\",\"execution_count\":7,\"result\":[1,\"\\u2028\"],"
		"\"stdout\":\"hi\\n\",\"stderr\":\"\",\"display_data\":[],\"error\":null,"
		"\"truncated\":{"
		"\"stdout\":false,\"stderr\":false,\"result\":false,\"display_data\":false,"
		"\"traceback\":false,\"items\":false,\"stdout_omitted_chars\":0,\"stderr_omitted_"
		"chars\":0},"
		"\"notice\":\"a notice\"}");
	parsed = json_loads(text(&f), 0, NULL);
	CHECK(parsed && json_equal(parsed, json_object_get(f.result, "structuredContent")));
	json_decref(parsed);
	CHECK(json_is_false(json_object_get(f.result, "isError")));
	f.r.revision = &old_revision;
	render(&f);
	CHECK(!json_object_get(f.result, "structuredContent"));
	end(&f);
}

static void test_render_leaves_structure_out_where_it_harms(void) {
	struct fixture f;

	begin(&f, "execute", PROFILE_FULL);
	fill(&f, "1");
	answer_add_image(f.answer, "image/png", strdup("QUJD"), 4);
	render(&f);
	CHECK(n_blocks(&f) == 2 && !json_object_get(f.result, "structuredContent"));
	end(&f);

	begin(&f, "execute", PROFILE_FULL);
	fill(&f, "9007199254740993");
	f.answer->has_wide_integer = true;
	render(&f);
	CHECK(!json_object_get(f.result, "structuredContent") &&
		strstr(text(&f), "9007199254740993"));
	end(&f);
}

static void test_render_shows_no_image_in_an_error(void) {
	struct fixture f;
	struct answer_error error = { .code = "execution_error", .message = (char *)"bad" };

	begin(&f, "execute", PROFILE_FULL);
	fill(&f, "null");
	answer_add_image(f.answer, "image/png", strdup("QUJD"), 4);
	answer_set_error(f.answer, &error, PROFILE_FULL);
	render(&f);
	CHECK(n_blocks(&f) == 1 && json_is_true(json_object_get(f.result, "isError")));
	CHECK(json_object_get(f.result, "structuredContent"));
	end(&f);
}

static void test_render_compact_leaves_defaults_out(void) {
	struct fixture f;

	begin(&f, "execute", PROFILE_COMPACT);
	fill(&f, "null");
	render(&f);
	CHECK_STR(text(&f), "{\"ok\":true,\"execution_count\":7,\"result\":null}");
	buf_add_str(&f.out.head, "abcd");
	buf_add_str(&f.out.tail, "z");
	f.out.omitted_chars = 30;
	f.out.file = strdup("/f");
	f.answer->cuts = ANSWER_CUT_ITEMS;
	render(&f);
	CHECK_STR(text(&f),
		"{\"ok\":true,\"execution_count\":7,\"result\":null,\"stdout\":\"abcd\","
		"\"stdout_tail\":\"z\",\"stdout_file\":\"/f\",\"truncated\":{\"stdout\":true,"
		"\"items\":true,\"stdout_omitted_chars\":30}}");
	end(&f);
}

static void test_render_text_reads_like_a_terminal(void) {
	struct fixture f;
	struct answer_error error = { .code = "busy", .message = (char *)"wait" };

	begin(&f, "execute", PROFILE_TEXT);
	fill(&f, "null");
	render(&f);
	CHECK_STR(text(&f), "[no output]");
	buf_add_str(&f.out.head, "out\n");
	render(&f);
	CHECK_STR(text(&f), "out");
	buf_add_str(&f.err.head, "err");
	buf_add_str(&f.answer->text, "42");
	f.r.notice = "one\ntwo";
	render(&f);
	CHECK_STR(text(&f), "[one]\n[two]\nout\n[stderr]\nerr\n42");
	f.r.notice = NULL;
	buf_clear(&f.err.head);
	buf_add_str(&f.out.tail, "end\n");
	f.out.omitted_chars = 1234571;
	f.out.file = strdup("/tmp/f.txt");
	render(&f);
	CHECK_STR(text(&f),
		"out\n[… 1,234,567 characters omitted; whole text: /tmp/f.txt …]\nend\n42");
	answer_set_error(f.answer, &error, PROFILE_TEXT);
	render(&f);
	CHECK(strstr(text(&f), "\n42\n[busy] wait"));
	end(&f);

	/* A picture says it all. */
	begin(&f, "execute", PROFILE_TEXT);
	fill(&f, "null");
	answer_add_image(f.answer, "image/png", strdup("QUJD"), 4);
	render(&f);
	CHECK(n_blocks(&f) == 1 && !text(&f));
	end(&f);
}

static void add_big_image(struct fixture *f, size_t len) {
	char *data = malloc(len);

	memset(data, 'A', len);
	answer_add_image(f->answer, "image/png", data, len);
}

static json_t *answer_object(struct fixture *f) {
	return json_loads(text(f), 0, NULL);
}

static bool flag(json_t *object, const char *name) {
	return json_is_true(json_object_get(json_object_get(object, "truncated"), name));
}

static void test_render_gives_up_display_items_first(void) {
	struct fixture f;
	json_t *object;

	begin(&f, "execute", PROFILE_FULL);
	f.settings.max_reply_bytes = 20000;
	fill(&f, "1");
	answer_add_literal(f.answer, "display_data",
		"[{\"data\":{\"image/png\":{\"block\":1}},\"metadata\":{}},"
		"{\"data\":{\"text/plain\":\"t\",\"image/png\":{\"block\":2}},\"metadata\":{}}]",
		false);
	add_big_image(&f, 9000);
	add_big_image(&f, 9000);
	render(&f);
	object = answer_object(&f);
	CHECK(n_blocks(&f) == 2 && json_array_size(json_object_get(object, "display_data")) == 1);
	CHECK(flag(object, "display_data") && !flag(object, "result"));
	json_decref(object);
	end(&f);
}

static void test_render_then_structure_then_the_result(void) {
	struct fixture f;
	auto_buf struct buf big = BUF_NULL;
	auto_free char *json = NULL;
	json_t *object;

	buf_add_char(&big, '"');
	for (int i = 0; i < 10000; i++)
		buf_add_char(&big, 'x');
	buf_add_char(&big, '"');
	json = buf_take(&big, NULL);
	begin(&f, "execute", PROFILE_FULL);
	fill(&f, json);
	buf_add_str(&f.answer->result_fallback, "{\"json_compatible\":false}");
	f.settings.max_reply_bytes = 15000;
	render(&f);
	CHECK(!json_object_get(f.result, "structuredContent") && strlen(text(&f)) > 10000);
	end(&f);

	begin(&f, "execute", PROFILE_FULL);
	fill(&f, json);
	buf_add_str(&f.answer->result_fallback, "{\"json_compatible\":false}");
	f.settings.max_reply_bytes = 8000;
	render(&f);
	object = answer_object(&f);
	CHECK(flag(object, "result"));
	CHECK(json_is_false(json_object_get(json_object_get(object, "result"), "json_compatible")));
	json_decref(object);
	end(&f);

	/* Streams last, when there is nothing else. */
	begin(&f, "execute", PROFILE_FULL);
	fill(&f, "1");
	for (int i = 0; i < 10000; i++)
		buf_add_str(&f.out.head, "ü");
	f.settings.max_reply_bytes = 10000;
	render(&f);
	object = answer_object(&f);
	CHECK(object && flag(object, "stdout"));
	CHECK(json_integer_value(json_object_get(json_object_get(object, "truncated"),
		      "stdout_omitted_chars")) > 9000);
	json_decref(object);
	end(&f);
}

static void test_render_refuses_what_cannot_shrink(void) {
	struct fixture f;

	begin(&f, "search", PROFILE_FULL);
	f.settings.max_reply_bytes = 5000;
	buf_add_char(answer_member(f.answer, "results", false), '[');
	for (int i = 0; i < 3000; i++)
		buf_addf(&f.answer->members[0].json, "%s1", i ? "," : "");
	buf_add_char(&f.answer->members[0].json, ']');
	render(&f);
	CHECK(strstr(text(&f), "\"results\":[],") && strstr(text(&f), "reply_too_large"));
	CHECK(json_is_true(json_object_get(f.result, "isError")));
	CHECK(json_object_get(f.result, "structuredContent"));
	end(&f);
}

static void test_render_tells_of_memory(void) {
	struct fixture f;

	begin(&f, "call_function", PROFILE_FULL);
	f.r.answer = NULL;
	f.r.name = "f";
	render(&f);
	CHECK(strstr(text(&f), "\"name\":\"f\"") && strstr(text(&f), "execution_error"));
	end(&f);
}

/* The catalog. */

static struct daemon *catalog_daemon(void) {
	static struct daemon d;

	d.catalog = catalog_new(&d);
	return &d;
}

static json_t *list(struct daemon *d, enum profile profile, const struct revision *r) {
	size_t len;
	const char *json = catalog_list(d, profile, r, &len);

	return json ? json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static void test_catalog_lists_by_profile(void) {
	struct daemon *d = catalog_daemon();
	json_t *full = list(d, PROFILE_FULL, &revision),
	       *old = list(d, PROFILE_FULL, &old_revision);
	json_t *compact = list(d, PROFILE_COMPACT, &revision),
	       *text_list = list(d, PROFILE_TEXT, &revision);
	json_t *tool;
	size_t i;

	CHECK(json_array_size(full) == 10 && json_array_size(compact) == 2 &&
		json_array_size(text_list) == 2);
	json_array_foreach(full, i, tool) {
		const char *description = json_string_value(json_object_get(tool, "description"));
		json_t *schema = json_object_get(tool, "inputSchema"), *property;
		const char *name;

		CHECK(description && strlen(description) < 2048);
		CHECK(json_object_get(tool, "title") && json_object_get(tool, "annotations"));
		json_object_foreach(json_object_get(schema, "properties"), name, property)
			CHECK(json_object_get(property, "description") &&
				json_object_get(property, "type"));
		tool = json_array_get(old, i);
		CHECK(!json_object_get(tool, "title") && !json_object_get(tool, "annotations") &&
			!json_object_get(tool, "_meta") && !json_object_get(tool, "outputSchema"));
	}
	json_decref(full);
	json_decref(old);
	json_decref(compact);
	json_decref(text_list);
	d->catalog = catalog_free(d->catalog);
}

static struct shell_catalog *published(uint64_t number, const char *first, const char *second) {
	struct shell_catalog *c = calloc(1, sizeof(*c));

	c->revision = number;
	c->n_tools = 2;
	c->tools = calloc(2, sizeof(*c->tools));
	c->tools[0] = (struct shell_tool){ strdup(first), strdup("d\"1"),
		strdup("{\"type\":\"object\"}"), false };
	c->tools[1] = (struct shell_tool){ strdup(second), strdup("d2"), strdup("{}"), true };
	return c;
}

static void test_catalog_swaps_registered_tools(void) {
	struct daemon *d = catalog_daemon();
	struct tool_ref ref;
	json_t *l;

	CHECK(catalog_revision(d) == 0 && !catalog_find(d, PROFILE_FULL, "alpha", &ref));
	json_decref(list(d, PROFILE_FULL, &revision));
	CHECK(catalog_publish(d, published(1, "alpha", "beta")));
	l = list(d, PROFILE_FULL, &revision);
	/* A stale one is not shown, but a call still learns why. */
	CHECK(json_array_size(l) == 11);
	CHECK_STR(json_string_value(json_object_get(json_array_get(l, 10), "name")), "alpha");
	json_decref(l);
	CHECK(catalog_find(d, PROFILE_FULL, "beta", &ref) && !ref.stable);
	CHECK(!catalog_find(d, PROFILE_TEXT, "beta", &ref));
	CHECK(catalog_find(d, PROFILE_TEXT, "execute", &ref) && ref.stable);
	CHECK(!catalog_find(d, PROFILE_COMPACT, "list", &ref));
	CHECK(!catalog_publish(d, published(1, "alpha", "beta")));
	d->catalog = catalog_free(d->catalog);
}

int main(void) {
	RUN(test_render_full_says_all_twice);
	RUN(test_render_leaves_structure_out_where_it_harms);
	RUN(test_render_shows_no_image_in_an_error);
	RUN(test_render_compact_leaves_defaults_out);
	RUN(test_render_text_reads_like_a_terminal);
	RUN(test_render_gives_up_display_items_first);
	RUN(test_render_then_structure_then_the_result);
	RUN(test_render_refuses_what_cannot_shrink);
	RUN(test_render_tells_of_memory);
	RUN(test_catalog_lists_by_profile);
	RUN(test_catalog_swaps_registered_tools);
	return check_done();
}

/* SPDX-License-Identifier: MIT */
/*
 * Catalog
 *
 * What tools/list shows: the stable tools in the order of their table, then the registered ones in
 * byte order of their names, so that a restart does not reshuffle a model's prompt. The text is
 * built once for each profile and revision that somebody asks for, and forgotten when the Python
 * half publishes: a list is served without waiting for Python, and mostly without any work.
 *
 * Registered tools belong to the profile that explains things (full); the small profiles never
 * change. Loop thread only.
 */

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "daemon/catalog.h"

struct catalog {
	struct shell_catalog *registered; /* NULL before the first publication */
	struct buf lists[N_PROFILES][N_REVISIONS];
};

struct catalog *catalog_new(struct daemon *d) {
	return calloc(1, sizeof(struct catalog));
}

static void forget_lists(struct catalog *c, enum profile profile) {
	for (size_t i = 0; i < N_REVISIONS; i++)
		buf_deinit(&c->lists[profile][i]);
}

struct catalog *catalog_free(struct catalog *c) {
	if (!c)
		return NULL;
	for (int i = 0; i < N_PROFILES; i++)
		forget_lists(c, (enum profile)i);
	shell_catalog_free(c->registered);
	free(c);
	return NULL;
}

uint64_t catalog_revision(const struct daemon *d) {
	return d->catalog->registered ? d->catalog->registered->revision : 0;
}

bool catalog_publish(struct daemon *d, struct shell_catalog *next) {
	struct catalog *c = d->catalog;
	uint64_t before = catalog_revision(d);

	shell_catalog_free(c->registered);
	c->registered = next;
	forget_lists(c, PROFILE_FULL);
	return next->revision != before;
}

/* The words of a stable tool in a profile; NULL when it is not offered there. */
static const char *words(const struct stable_tool *t, enum profile profile) {
	switch (profile) {
	case PROFILE_COMPACT:
		return t->compact_description;
	case PROFILE_TEXT:
		return t->text_description;
	default:
		return t->description;
	}
}

static const char *input_schema(const struct stable_tool *t, enum profile profile) {
	switch (profile) {
	case PROFILE_COMPACT:
		return t->compact_schema;
	case PROFILE_TEXT:
		return t->text_schema;
	default:
		return t->input_schema;
	}
}

bool catalog_find(struct daemon *d, enum profile profile, const char *name,
	struct tool_ref *ret_tool) {
	const struct stable_tool *stable = tools_find(name);
	const struct shell_catalog *registered = d->catalog->registered;
	bool is_there = stable && words(stable, profile);

	for (size_t i = 0;
		!stable && profile == PROFILE_FULL && registered && i < registered->n_tools; i++)
		is_there |= !strcmp(registered->tools[i].name, name);
	if (!is_there || strlen(name) >= sizeof(ret_tool->name))
		return false;
	ret_tool->stable = stable;
	memcpy(ret_tool->name, name, strlen(name) + 1);
	return true;
}

static void add_string(struct buf *b, const char *name, const char *s) {
	buf_addf(b, ",\"%s\":", name);
	buf_add_json_string(b, s, strlen(s));
}

static void add_stable(struct buf *b, const struct stable_tool *t, enum profile profile,
	const struct revision *revision) {
	bool explains = profile == PROFILE_FULL;

	buf_addf(b, "{\"name\":\"%s\"", t->name);
	if (explains && revision->has_tool_title)
		add_string(b, "title", t->title);
	add_string(b, "description", words(t, profile));
	buf_add_str(b, ",\"inputSchema\":");
	tools_add_json(b, input_schema(t, profile));
	if (explains && t->output_schema && revision->has_tool_title) {
		buf_add_str(b, ",\"outputSchema\":");
		tools_add_json(b, t->output_schema);
	}
	if (explains && revision->has_annotations) {
		buf_add_str(b, ",\"annotations\":");
		tools_add_json(b, t->annotations);
	}
	if (t->meta && revision->has_tool_title) {
		buf_add_str(b, ",\"_meta\":");
		tools_add_json(b, t->meta);
	}
	buf_add_char(b, '}');
}

static void add_registered(struct buf *b, const struct shell_tool *t) {
	buf_add_str(b, ",{\"name\":");
	buf_add_json_string(b, t->name, strlen(t->name));
	add_string(b, "description", t->description);
	buf_add_str(b, ",\"inputSchema\":");
	buf_add_str(b, t->schema);
	buf_add_char(b, '}');
}

const char *catalog_list(struct daemon *d, enum profile profile, const struct revision *revision,
	size_t *ret_len) {
	const struct shell_catalog *registered = d->catalog->registered;
	struct buf *list = &d->catalog->lists[profile][revision->index];

	if (!list->len) {
		buf_add_char(list, '[');
		for (const struct stable_tool *t = stable_tools; t->name; t++) {
			if (!words(t, profile))
				continue;
			if (list->len > 1)
				buf_add_char(list, ',');
			add_stable(list, t, profile, revision);
		}
		for (size_t i = 0; profile == PROFILE_FULL && registered && i < registered->n_tools;
			i++)
			if (!registered->tools[i].is_stale)
				add_registered(list, &registered->tools[i]);
		buf_add_char(list, ']');
	}
	if (list->has_failed) {
		/* Next time there may be memory. */
		buf_deinit(list);
		return NULL;
	}
	*ret_len = list->len;
	return list->data;
}

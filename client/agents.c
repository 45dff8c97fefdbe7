/* SPDX-License-Identifier: MIT */

/*
 * Agents' Configuration
 *
 * Every agent wants the same four things, a name, a command, its arguments and a time limit, each
 * in a file and spelling of its own. That is one row of the table below; the rest of this file
 * turns a row into text and finds its entry in a text again.
 *
 * The limits: an agent's own patience with a tool call is a minute to ten by default, and it then
 * throws the answer away. An hour is long enough for real work, and the daemon interrupts what the
 * agent gives up on.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/agents.h"
#include "client/jsonedit.h"
#include "client/tomledit.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/wire.h"

static const struct agent agents[] = {
	{ .name = "claude",
		.title = "Claude Code",
		.variable = "CLAUDE_CONFIG_DIR",
		.directory = "",
		.file = ".claude.json",
		.project_file = ".mcp.json",
		.group = "mcpServers",
		.fixed = { { "type", "\"stdio\"" } },
		.add = { "claude", "mcp", "add", "-s", "user", WORD_NAME, "--", WORD_COMMAND,
			WORD_ARGS },
		.remove = { "claude", "mcp", "remove", "-s", "user", WORD_NAME } },
	{ .name = "codex",
		.title = "Codex",
		.variable = "CODEX_HOME",
		.directory = ".codex",
		.file = "config.toml",
		.format = FORMAT_TOML,
		.group = "mcp_servers",
		.limit = { "tool_timeout_sec", "3600", true },
		.add = { "codex", "mcp", "add", WORD_NAME, "--", WORD_COMMAND, WORD_ARGS },
		.remove = { "codex", "mcp", "remove", WORD_NAME } },
	{ .name = "gemini",
		.title = "Gemini CLI",
		.directory = ".gemini",
		.file = "settings.json",
		.project_file = ".gemini/settings.json",
		.group = "mcpServers",
		.limit = { "timeout", "3600000", true },
		.add = { "gemini", "mcp", "add", "-s", "user", WORD_NAME, WORD_COMMAND, "--",
			WORD_ARGS },
		.remove = { "gemini", "mcp", "remove", "-s", "user", WORD_NAME } },
	{ .name = "cursor",
		.title = "Cursor",
		.directory = ".cursor",
		.file = "mcp.json",
		.project_file = ".cursor/mcp.json",
		.group = "mcpServers",
		.fixed = { { "type", "\"stdio\"" } } },
	{ .name = "vscode",
		.title = "VS Code",
		.variable = "XDG_CONFIG_HOME",
		.directory = ".config",
		.file = "Code/User/mcp.json",
		.project_file = ".vscode/mcp.json",
		.group = "servers",
		.fixed = { { "type", "\"stdio\"" } },
		.add = { "code", "--add-mcp", WORD_JSON },
		.is_file_uncertain = true },
	{ .name = "zed",
		.title = "Zed",
		.variable = "XDG_CONFIG_HOME",
		.directory = ".config",
		.file = "zed/settings.json",
		.project_file = ".zed/settings.json",
		.group = "context_servers",
		.fixed = { { "source", "\"custom\"" } },
		.limit = { "timeout", "3600", true } },
	{ 0 },
};

void agents_deinit(struct agents_task *t) {
	free(t->entry);
	free(t->command);
	free(t->path);
	free(t->command_json);
	free(t->args_json);
}

int agents_out_of_memory(void) {
	fprintf(stderr, "ipython-mcp-connect: out of memory\n");
	return WIRE_EXIT_SOFTWARE;
}

/* The agent's file, or NULL and a complaint. */
static char *agent_path(const struct agent *a) {
	const char *directory = a->variable ? getenv(a->variable) : NULL, *home = getenv("HOME");
	char *path;

	if (directory && directory[0] == '/')
		return asprintf(&path, "%s/%s", directory, a->file) < 0 ? NULL : path;
	if (!home || home[0] != '/') {
		fprintf(stderr,
			"ipython-mcp-connect: HOME is no absolute path: cannot tell where %s keeps "
			"its settings; set HOME\n",
			a->title);
		return NULL;
	}
	return asprintf(&path, "%s/%s%s%s", home, a->directory, *a->directory ? "/" : "", a->file) <
			       0
		       ? NULL
		       : path;
}

/* Our own program, to be found again whatever an agent's PATH holds. */
static char *own_path(void) {
	char *path = realpath("/proc/self/exe", NULL);

	return path ? path : strdup(BINDIR "/ipython-mcp-connect");
}

/* "ipython", or "ipython-NAME" for another namespace: agents take letters, digits, "-" and "_". */
static char *entry_name(const char *name) {
	char *entry;

	if (!name || !strcmp(name, WIRE_DEFAULT_NAME) || !strcmp(name, "auto"))
		return strdup(AGENTS_ENTRY);
	if (asprintf(&entry, AGENTS_ENTRY "-%s", name) < 0)
		return NULL;
	for (char *c = entry; *c; c++)
		if (*c == '.')
			*c = '-';
	return entry;
}

static char *json_list(char *const words[]) {
	struct buf b = BUF_NULL;

	buf_add_char(&b, '[');
	for (size_t i = 0; words[i]; i++) {
		buf_add_str(&b, i ? ", " : "");
		buf_add_json_string(&b, words[i], strlen(words[i]));
	}
	buf_add_char(&b, ']');
	return buf_take(&b, NULL);
}

static char *json_word(const char *word) {
	struct buf b = BUF_NULL;

	buf_add_json_string(&b, word, strlen(word));
	return buf_take(&b, NULL);
}

/* The row called `name`, NULL when there is none. */
static const struct agent *agent_find(const char *name) {
	for (const struct agent *a = agents; a->name; a++)
		if (!strcmp(a->name, name))
			return a;
	return NULL;
}

int agents_init(struct agents_task *t, const char *agent, const char *name, char *const args[]) {
	const struct agent *a = agent_find(agent);
	size_t n = 0;

	if (!a) {
		fprintf(stderr,
			"ipython-mcp-connect: no agent is called \"%s\"; known are " AGENTS_NAMES
			"\n",
			agent);
		return WIRE_EXIT_USAGE;
	}
	t->agent = a;
	t->path = agent_path(a);
	if (!t->path)
		return WIRE_EXIT_CONFIG;
	t->args = args;
	t->entry = entry_name(name);
	t->command = own_path();
	t->args_json = json_list(args);
	if (!t->entry || !t->command || !t->args_json)
		return agents_out_of_memory();
	t->command_json = json_word(t->command);
	if (!t->command_json)
		return agents_out_of_memory();
	for (size_t i = 0; i < ARRAY_LEN(a->fixed) && a->fixed[i].key; i++)
		t->members[n++] = a->fixed[i];
	t->members[n++] = (struct tomledit_pair){ "command", t->command_json, false };
	t->members[n++] = (struct tomledit_pair){ "args", t->args_json, false };
	if (a->limit.key)
		t->members[n++] = a->limit;
	return 0;
}

/* The whole entry as JSON, one member a line, or in one line with its name (for VS Code). */
void agents_add_entry(const struct agents_task *t, bool in_line, struct buf *out) {
	buf_add_str(out, in_line ? "{\"name\": " : "{");
	if (in_line)
		buf_add_json_string(out, t->entry, strlen(t->entry));
	for (const struct tomledit_pair *m = t->members; m->key; m++)
		buf_addf(out, "%s%s\"%s\": %s", in_line || m != t->members ? "," : "",
			in_line ? " " : "\n\t", m->key, m->value);
	buf_add_str(out, in_line ? "}" : "\n}");
}

/*
 * The four operations on a text, whichever its format. Results are jsonedit's; a TOML table in a
 * form that is not ours counts as a place that cannot be edited.
 */
static enum jsonedit_result from_toml(enum tomledit_result r) {
	switch (r) {
	case TOMLEDIT_OK:
		return JSONEDIT_OK;
	case TOMLEDIT_ABSENT:
		return JSONEDIT_ABSENT;
	case TOMLEDIT_SYNTAX:
		return JSONEDIT_SYNTAX;
	case TOMLEDIT_FOREIGN:
		break;
	}
	return JSONEDIT_NOT_OBJECT;
}

enum jsonedit_result agents_text_find(
	const struct agents_task *t, const char *text, size_t len, size_t *ret_start) {
	const char *path[] = { t->agent->group, t->entry, NULL };
	size_t end;

	return t->agent->format == FORMAT_TOML
		       ? from_toml(tomledit_find(text, len, path[0], path[1], ret_start, &end))
		       : jsonedit_find(text, len, path, ret_start, &end);
}

enum jsonedit_result agents_text_remove(
	const struct agents_task *t, const char *text, size_t len, struct buf *out) {
	const char *path[] = { t->agent->group, t->entry, NULL };

	return t->agent->format == FORMAT_TOML
		       ? from_toml(tomledit_remove(text, len, path[0], path[1], out))
		       : jsonedit_remove(text, len, path, out);
}

/* Whether two JSON texts differ in blanks alone: then the agent's own way to break lines stays. */
static bool is_same_json(const char *a, size_t a_len, const char *b) {
	const char *end = a + a_len;
	bool in_string = false;

	for (;; a++, b++) {
		while (!in_string && a < end && strchr(" \t\r\n", *a))
			a++;
		while (!in_string && *b && strchr(" \t\r\n", *b))
			b++;
		if (a == end || !*b || *a != *b)
			return a == end && !*b;
		if (*a == '\\' && a + 1 < end && a[1] == b[1])
			a++, b++;
		else if (*a == '"')
			in_string = !in_string;
	}
}

/* Sets one member of an entry that is there, or with `member` NULL the whole entry. */
static enum jsonedit_result json_set(const struct agents_task *t, const char *text, size_t len,
	const struct tomledit_pair *member, struct buf *out) {
	const char *path[] = { t->agent->group, t->entry, member ? member->key : NULL, NULL };
	auto_buf struct buf entry = BUF_NULL;
	auto_free char *value = NULL;
	size_t start, end;

	if (member) {
		if (jsonedit_find(text, len, path, &start, &end) == JSONEDIT_OK &&
			(member->is_default ||
				is_same_json(text + start, end - start, member->value))) {
			buf_add(out, text, len);
			return JSONEDIT_OK;
		}
		return jsonedit_set(text, len, path, member->value, out);
	}
	agents_add_entry(t, false, &entry);
	value = buf_take(&entry, NULL);
	if (!value) {
		out->has_failed = true;
		return JSONEDIT_OK;
	}
	return jsonedit_set(text, len, path, value, out);
}

enum jsonedit_result agents_text_set(
	const struct agents_task *t, const char *text, size_t len, struct buf *out) {
	const char *path[] = { t->agent->group, t->entry, NULL };
	auto_buf struct buf now = BUF_NULL;
	size_t start, end;
	enum jsonedit_result r;

	if (t->agent->format == FORMAT_TOML)
		return from_toml(tomledit_set(text, len, path[0], path[1], t->members, out));
	if (jsonedit_find(text, len, path, &start, &end) != JSONEDIT_OK)
		return json_set(t, text, len, NULL, out);
	/* An entry is there: members that are not ours stay. */
	buf_add(&now, text, len);
	for (const struct tomledit_pair *m = t->members; m->key; m++) {
		auto_buf struct buf next = BUF_NULL;

		r = json_set(t, now.data, now.len, m, &next);
		if (r != JSONEDIT_OK)
			return r;
		buf_clear(&now);
		buf_add(&now, next.data, next.len);
		now.has_failed |= next.has_failed;
		if (now.has_failed)
			break;
	}
	buf_add(out, now.data, now.len);
	out->has_failed |= now.has_failed;
	return JSONEDIT_OK;
}

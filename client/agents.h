/* SPDX-License-Identifier: MIT */
#pragma once

/* The agents that run the shim: what each wants written where, as text. */

#include <stdbool.h>
#include <stddef.h>

#include "client/jsonedit.h"
#include "client/tomledit.h"
#include "common/buf.h"

/* For --help. */
#define AGENTS_NAMES "claude, codex, gemini, cursor, vscode, zed"

/* An entry's name, for the default namespace. */
#define AGENTS_ENTRY "ipython"

#define AGENTS_MAX_MEMBERS 6

/* Words of an agent's own command that stand for something. */
#define WORD_NAME    "{name}"
#define WORD_COMMAND "{command}"
#define WORD_ARGS    "{args}"
#define WORD_JSON    "{json}"

enum agents_format { FORMAT_JSON, FORMAT_TOML };

struct agent {
	const char *name;
	const char *title;

	/* The file: $VARIABLE/file, or ~/directory/file when that is unset. */
	const char *variable, *directory, *file;
	const char *project_file; /* said beside it; NULL: none */
	enum agents_format format;
	const char *group;
	struct tomledit_pair fixed[2]; /* in front of the command */
	struct tomledit_pair limit;    /* behind it; a value of the user's stays */

	const char *add[10], *remove[10]; /* the agent's own commands; empty: none */
	bool is_file_uncertain;		  /* the command may write to another file */
};

/* What one run works on: an agent, and the entry that it gets. */
struct agents_task {
	const struct agent *agent;
	char *entry;   /* the entry's name in the agent's file */
	char *command; /* of the shim, absolute */
	char *path;    /* the agent's file */
	char *const *args;
	char *command_json, *args_json;
	struct tomledit_pair
		members[AGENTS_MAX_MEMBERS]; /* the same spelling serves JSON and TOML */
};

/*
 * Prepares the work on the agent called `agent`. `name` is the namespace, NULL for the default one;
 * `args`, NULL-terminated and the caller's, is what the agent is to pass to the shim. Returns 0, or
 * an exit code after a complaint on standard error; agents_deinit() is due either way.
 */
int agents_init(struct agents_task *t, const char *agent, const char *name, char *const args[]);
void agents_deinit(struct agents_task *t);

/* Complains on standard error and returns the exit code for it. */
int agents_out_of_memory(void);

/* Appends the entry as a JSON object: one member a line, or in one line and with its name. */
void agents_add_entry(const struct agents_task *t, bool in_line, struct buf *out);

/*
 * The entry in the text of an agent's file: where it begins, the text with it set, the text without
 * it. Results are jsonedit's whatever the format; a TOML table that is not in our form is
 * JSONEDIT_NOT_OBJECT. Setting keeps members that are not ours, and a limit that is there.
 */
enum jsonedit_result agents_text_find(
	const struct agents_task *t, const char *text, size_t len, size_t *ret_start);
enum jsonedit_result agents_text_set(
	const struct agents_task *t, const char *text, size_t len, struct buf *out);
enum jsonedit_result agents_text_remove(
	const struct agents_task *t, const char *text, size_t len, struct buf *out);

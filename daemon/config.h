/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Settings: one table of rows in config.c (variable, type, bounds, default, doc), one struct here.
 * Filled at start, constant afterwards, read by both halves.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

enum profile { PROFILE_FULL, PROFILE_COMPACT, PROFILE_TEXT, N_PROFILES };

struct settings {
	enum profile profile;

	/* Startup environment; strings are NULL when unset. Lists are checked JSON text in
	 * canonical form (requirements, variables, aliases) or NULL-terminated arrays. */
	char *environment_workspace;
	char *active_environment;
	char *environment_requirements; /* JSON array of strings, never NULL */
	char *environment_variables;    /* JSON object of strings, never NULL */
	double environment_setup_timeout_s;
	char **library_paths;   /* absolute; empty array when unset */
	char **preload_modules; /* dotted names; empty array when unset */
	char *module_aliases;   /* JSON object, module -> identifier, never NULL */

	/* Bounds of answers, code points unless the name says bytes. */
	size_t max_text_chars;
	size_t max_repr_chars;
	size_t max_traceback_chars;
	size_t max_results;
	size_t max_display_items;
	size_t max_json_depth;
	size_t max_tool_name_chars;
	size_t max_tool_description_chars;
	size_t max_dynamic_tools;
	size_t max_output_file_bytes; /* 0: save none */
	size_t max_image_bytes;
	size_t max_message_bytes;
	size_t max_reply_bytes;
	size_t max_pending_calls;
	size_t max_sessions;

	/* Times in seconds; 0 where the contract gives it a meaning. */
	double execution_timeout_s;
	double max_execution_timeout_s;
	double max_wait_s;

	bool raw_output;
	bool history;
	char *python;          /* as configured, NULL: the one found at build time */
	char *ipython_profile; /* NULL: none loaded */
};

/* "full" "compact" "text", and back; -1 for anything else. */
const char *profile_name(enum profile profile);
int profile_from_name(const char *name);

/*
 * Reads every setting from `environment` (like environ). Each fault appends one line, newline
 * included, to `faults`: the variable, the rule, what is allowed; never a variable's value where
 * the value may be a secret. A faulty setting keeps its default. Returns the number of faults, or
 * -ENOMEM. `project_root` (NULL: none told) is the tree that the environment workspace must lie
 * outside of.
 */
int config_load(struct settings *s, char **environment, const char *project_root,
	struct buf *faults);

/* Frees what config_load() allocated. */
void config_deinit(struct settings *s);

/* Calls `f` for each row of the table, in order: for the manual's and the README's lint. */
void config_describe(void (*f)(void *ctx, const char *variable, const char *rule,
			     const char *fallback, const char *doc),
	void *ctx);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A row of the settings' table, and the kinds of values that are more than a number. Between
 * config.c (the table) and setting.c (the kinds) only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "daemon/config.h"

/* One run of config_load(). */
struct config_run {
	struct settings *settings;
	char **environment;
	const char *project_root;
	struct buf *faults;
	int n_faults;
	bool is_out_of_memory;
};

struct config_row;

/* Stores `value` in the row's field, or leaves the field alone and reports a fault. */
typedef void config_parse(struct config_run *run, const struct config_row *row, const char *value);

struct config_row {
	const char *variable;
	config_parse *parse;
	size_t offset;        /* of the field in struct settings */
	double min, max;      /* numbers only */
	const char *rule;     /* after "must be"; NULL: made of min and max */
	const char *fallback; /* parsed like a value; NULL: the field stays NULL */
	const char *doc;
};

/* The field of a row, for the kind that the row's parser stores. */
static inline void *config_field(struct config_run *run, const struct config_row *row) {
	return (char *)run->settings + row->offset;
}

/* Reports a fault of the row's variable: "VARIABLE must be RULE: detail". `format` NULL: no
 * detail. */
void config_fault(struct config_run *run, const struct config_row *row, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The value of a variable, NULL when it is not set. */
const char *config_lookup(char **environment, const char *variable);

config_parse setting_workspace;
config_parse setting_environment_name;
config_parse setting_requirements;
config_parse setting_variables;
config_parse setting_library_paths;
config_parse setting_modules;
config_parse setting_aliases; /* after setting_modules: its keys are among them */
config_parse setting_python;
config_parse setting_ipython_profile;

/* Frees a NULL-terminated array and its strings. Accepts NULL. */
void setting_free_list(char **list);

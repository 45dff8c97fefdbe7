/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The ten stable tools, one row each: name, words, schemas, hints, and the empty form of its
 * answer.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/answer.h"

/* JSON text in it is for tools_add_json(). */
struct stable_tool {
	const char *name;
	const char *title;
	const char *description;         /* profile full */
	const char *compact_description; /* profile compact; NULL: not offered there */
	const char *text_description;    /* profile text; NULL: not offered there */
	const char *input_schema;        /* JSON, profile full */
	const char *compact_schema;
	const char *text_schema;
	const char *output_schema; /* JSON, NULL: none */
	const char *annotations;   /* JSON of the hints */
	const char *meta;          /* JSON of _meta, NULL: none */
	const char *const *empty; /* a failed answer's members before `error`: name, JSON, NULL */
	bool has_timeout;          /* takes timeout and progress_interval */
	bool keeps_output;         /* execute: stdout and stderr belong to its answer */
	bool holds_for_list;       /* answer waits until the session has listed again */
};

/* Ends with a row whose name is NULL; order is that of tools/list. */
extern const struct stable_tool stable_tools[];

/* NULL when there is no such stable tool. */
const struct stable_tool *tools_find(const char *name);

/* Appends JSON text in which ' stands for ". */
void tools_add_json(struct buf *b, const char *json);

/*
 * An answer in the tool's own shape that holds only an error: what the daemon says of a call that
 * never ran. `tool` NULL: a registered tool (call_function's shape). `name` is what the shape's
 * `name` says, if it has one: of the registered tool, or the one that was asked for; NULL: not
 * known. NULL when memory is short.
 */
struct answer *tools_error_answer(const struct stable_tool *tool, const char *name,
	enum profile profile, const struct answer_error *error);

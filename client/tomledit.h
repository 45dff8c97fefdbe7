/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Changes one table [GROUP.NAME] of a TOML text and leaves every other byte alone. Only as much of
 * TOML is read as it takes to find where statements begin and end. The text holds no NUL.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

struct tomledit_pair {
	const char *key;
	const char *value; /* in TOML's spelling */
	bool is_default;   /* a value that is there already stays */
};

enum tomledit_result {
	TOMLEDIT_OK,
	TOMLEDIT_ABSENT,  /* find, remove: no such table */
	TOMLEDIT_SYNTAX,  /* a statement that cannot be read */
	TOMLEDIT_FOREIGN, /* it is there in another form: inline, or as dotted keys */
};

/*
 * Where the table lies, from its header to the end of its last pair. On TOMLEDIT_SYNTAX *ret_start
 * is where the statement begins that cannot be read.
 */
enum tomledit_result tomledit_find(const char *text, size_t len, const char *group,
	const char *name, size_t *ret_start, size_t *ret_end);

/*
 * Appends to `out` the text with the table's pairs set; a missing table is added at the end.
 * `pairs` ends with a NULL key.
 */
enum tomledit_result tomledit_set(const char *text, size_t len, const char *group, const char *name,
	const struct tomledit_pair *pairs, struct buf *out);

/* Appends to `out` the text without the table and the tables below it. */
enum tomledit_result tomledit_remove(
	const char *text, size_t len, const char *group, const char *name, struct buf *out);

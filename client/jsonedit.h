/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Changes one member of a JSON text and leaves every other byte alone: for settings that people
 * write by hand. Comments and trailing commas are accepted, because some agents' files hold them.
 * The text holds no NUL.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

enum jsonedit_result {
	JSONEDIT_OK,
	JSONEDIT_ABSENT,     /* find, remove: nothing is there */
	JSONEDIT_SYNTAX,     /* the text is not JSON, even with comments */
	JSONEDIT_NOT_OBJECT, /* something on the path is no object */
};

/*
 * Where the value at `path`, a NULL-terminated list of names from the root down, lies in the text.
 * On JSONEDIT_SYNTAX *ret_start is the place of the fault instead. A text of blanks and comments
 * alone counts as an empty object.
 */
enum jsonedit_result jsonedit_find(
	const char *text, size_t len, const char *const *path, size_t *ret_start, size_t *ret_end);

/*
 * Appends to `out` the text with the member at `path` set to `value`, objects on the way made as
 * needed. In `value` each line after the first starts with a tab per level below the member; the
 * text's own indentation takes their place. A member that is there keeps its place.
 */
enum jsonedit_result jsonedit_set(
	const char *text, size_t len, const char *const *path, const char *value, struct buf *out);

/* Appends to `out` the text without the member at `path`. */
enum jsonedit_result jsonedit_remove(
	const char *text, size_t len, const char *const *path, struct buf *out);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Errors that cannot be survived where they arise: a negative errno, traced once at debug level
 * where it is born and then forwarded untouched. main() decides.
 */

/* Returns `err` (negative errno) after tracing file and line at debug level. */
#define err_new(err) err_trace((err), __FILE__, __LINE__)

/* Traces where an error is born, at debug level, and returns `err`. */
int err_trace(int err, const char *file, int line);

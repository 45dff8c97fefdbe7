/* SPDX-License-Identifier: MIT */
#pragma once

/* Facts as people read them, in lines that fit a terminal. */

#include <stdbool.h>
#include <stddef.h>

enum { SHOW_SIZE = 32 };

/* "12 s", "3 min 5 s", "2 h 5 min", "3 d 4 h"; returns `ret`. */
char *show_duration(double seconds, char ret[SHOW_SIZE]);

/* "85.3 MiB"; returns `ret`. */
char *show_bytes(double bytes, char ret[SHOW_SIZE]);

/* Columns of standard output when it is a terminal; SIZE_MAX when it is none: nothing is cut
 * then. */
size_t show_width(void);

/*
 * Prints `text` (UTF-8) to standard output as one line: control characters as blanks, cut to
 * `width` columns with … at its end, newline added.
 */
void show_line(const char *text, size_t width);

/*
 * A line on standard error that is replaced by the next one and taken away by show_progress_end():
 * for what takes long. Nothing when standard error is no terminal.
 */
void show_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void show_progress_end(void);

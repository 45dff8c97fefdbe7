/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The first line in each direction: what the client wants of its session, and which daemon it
 * reached.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/buf.h"

struct hello {
	const char *profile; /* chosen for this session, NULL: the daemon's */
	const char *cwd;     /* the client's directory, NULL: not known */
};

/* Appends the attach line; see common/wire.h. */
void hello_write(struct buf *out, const struct hello *hello, bool is_resumed);

/* What the daemon answered. */
struct hello_answer {
	pid_t pid;           /* 0: not told */
	const char *profile; /* in force, static; NULL: not told */
	char *differing;     /* startup variables that differ from ours, NULL: none; owned */
};

/* False when the line is not the daemon's answer to an attach line. */
bool hello_read(const char *line, size_t len, struct hello_answer *ret_answer);

/* The same text as a static string when it is the name of a profile, else NULL. */
const char *hello_profile(const char *name);

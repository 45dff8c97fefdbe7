/* SPDX-License-Identifier: MIT */
#pragma once

/* The working directory, which belongs to the session that calls. No GIL needed. */

/* Remembers where the daemon started: the place of sessions that never told theirs. Once. */
void cwd_init(void);

/*
 * Goes to a session's directory, NULL: it has none. When it is gone, goes home instead and puts a
 * note for the user into *ret_note (owned by the caller), else NULL.
 */
void cwd_enter(const char *directory, char **ret_note);

/* Where we are, also when that was deleted; owned by the caller, NULL when it cannot be told. */
char *cwd_tell(void);

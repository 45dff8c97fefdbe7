/* SPDX-License-Identifier: MIT */
#pragma once

/* A settings file of somebody else's: read, shown before it changes, kept as it was, replaced
 * whole. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct editfile {
	char *path;   /* behind symlinks, so that they stay */
	char *backup; /* beside it */
	char *text;   /* empty when there is no file */
	size_t len;
	mode_t mode;
	bool is_there;
	bool is_linked; /* reached through a symlink */
};

#define EDITFILE_NULL                                                                              \
	{ 0 }
#define auto_editfile __attribute__((cleanup(editfile_deinit)))

void editfile_deinit(struct editfile *f);

/*
 * Reads the file at `path`; one that is not there counts as empty. `tag` names the backup. 0,
 * -EFBIG or -EILSEQ for what cannot be settings, or another negative errno.
 */
int editfile_load(struct editfile *f, const char *path, const char *tag);

/* Keeps the text as it is now in the backup, when there is a file. 0 or a negative errno. */
int editfile_keep(const struct editfile *f);

/* Reads the backup: owned by the caller, NULL when there is none. */
char *editfile_kept(const struct editfile *f, size_t *ret_len);

/* Replaces the file at once, mode kept, directories made as needed. 0 or a negative errno. */
int editfile_save(const struct editfile *f, const char *text, size_t len);

/* Prints how `text` differs from what was read, as a diff of one hunk. */
void editfile_show(const struct editfile *f, const char *text, size_t len);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Directories that the settings name, as they are on disk: absolute, and no symbolic link on the
 * way. Compiled into both halves: --check looks, the start of the shell looks and opens.
 */

#include <stdbool.h>

#include "common/buf.h"
#include "daemon/config.h"

/*
 * Opens the directory `path` (absolute, normalized) with O_PATH, one component after the other,
 * none of them a link. With `ret_n_made`, missing components are made (mode 0700) and counted, also
 * on failure. Returns the descriptor; -1 with *ret_complaint (owned by the caller, NULL when memory
 * is short).
 */
int paths_open(const char *path, unsigned *ret_n_made, char **ret_complaint);

/* Removes the last `n_made` components of `path` again as far as they are empty. */
void paths_unmake(const char *path, unsigned n_made);

/* What is wrong with a workspace, which need not exist yet; NULL: nothing. Owned by the caller. */
char *paths_check_workspace(const char *path);

/* What is wrong with a directory of libraries; NULL: nothing. Owned by the caller. */
char *paths_check_library(const char *path);

/* Appends a line for each fault of the settings' directories; returns their number. */
int paths_check(const struct settings *s, struct buf *faults);

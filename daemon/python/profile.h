/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A person's IPython profile: configuration, extensions and startup files, as `ipython --profile`.
 */

#include "daemon/python/py.h"

/*
 * The configuration of profile `name` (new reference), with what the daemon needs on top. NULL with
 * *ret_message (owned by the caller), which names the file that failed.
 */
PyObject *profile_config(const char *name, char **ret_message);

/* Its directory, an IPython ProfileDir, borrowed; NULL when no profile was named. */
PyObject *profile_directory(void);

/* Loads its extensions and runs its lines and startup files in the shell. -1 as above. */
int profile_start(char **ret_message);

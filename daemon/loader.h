/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds the interpreter's libpython, opens it, then the Python half. On the Python thread only. */

#include "daemon/shell.h"

/*
 * `python` is the configured interpreter or NULL for the one found at build time. Fills *ret_ops
 * and *ret_interpreter, which live until the process ends. Returns 0, or -1 and *ret_message (owned
 * by the caller), which says which interpreter, what is missing and the command that installs it.
 * Blocks while the interpreter is asked; a cache beside the socket (`cache_directory`, NULL: none)
 * spares that when the interpreter has not changed.
 */
int loader_open(const char *python, const char *cache_directory, const struct shell_ops **ret_ops,
	struct shell_interpreter *ret_interpreter, char **ret_message);

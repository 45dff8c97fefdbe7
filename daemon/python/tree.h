/* SPDX-License-Identifier: MIT */
#pragma once

/* A directory and all that is in it. */

#include <stdbool.h>

/*
 * Removes `name` in `directory` with all below it, never following a link; directories that nobody
 * may write to are made writable. False when something is left.
 */
bool tree_remove(int directory, const char *name);

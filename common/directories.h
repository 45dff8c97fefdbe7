/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Make a directory, or the directories that a file lies in, with all that is missing above: mode
 * 0700. What exists stays as it is, whatever it is. 0 or a negative errno.
 */
int directories_make(const char *path);
int directories_make_parents(const char *path);

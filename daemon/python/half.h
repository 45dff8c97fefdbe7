/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the files of the Python half share: constant after the start, so any of its threads reads
 * it.
 */

#include "daemon/shell.h"
#include "daemon/python/py.h"

struct half {
	const struct settings *settings;
	const struct shell_interpreter *interpreter;
	const struct shell_host *host;
	const char *files_directory;
	pid_t pid; /* of the daemon: a forked child of user code differs and must leave at once */
};

extern struct half half;

/* True in a child that user code forked; it must not touch the border. Needs no GIL. */
bool half_is_forked_child(void);

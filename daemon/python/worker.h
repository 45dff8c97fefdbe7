/* SPDX-License-Identifier: MIT */
#pragma once

/* The Python thread: wait without the GIL, take a call, find its row, hand back. */

#include "daemon/shell.h"
#include "daemon/python/py.h"

/* The three of shell_ops that worker.c implements; interrupt.c has the fourth. */
int worker_run(const struct settings *settings, const struct shell_interpreter *interpreter,
	const char *files_directory, const struct shell_host *host);
void worker_submit(struct shell_call *call);
void worker_stop(void);

/* The call that runs on this thread, borrowed; NULL between calls. */
const struct shell_call *worker_call(void);

/*
 * Ends a forked child of user code as Python would end a script: flushes, exits with 0, with what
 * SystemExit says, or with 1 after printing any other exception. NULL: it ended well.
 */
_Noreturn void worker_leave_child(PyObject *exception);

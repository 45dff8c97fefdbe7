/* SPDX-License-Identifier: MIT */
#pragma once

/* IPython's asyncio loop: the cell that was interrupted on it, and background tasks between calls. */

#include "daemon/python/py.h"

/* True when tasks wait on the loop: the wait for the next call should run it. */
bool loop_has_tasks(void);

/* Runs the loop until loop_stop(), or an exception, which is printed as asyncio does. */
void loop_run(void);

/* Ends loop_run() soon. Any thread with the GIL. */
void loop_stop(void);

/*
 * Cancels the task that an interrupted coroutine left (NULL: that of a cell) and runs the loop until it
 * ends, a second at most.
 */
void loop_end_task(PyObject *coroutine);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * IPython's asyncio loop: the cell that was interrupted on it, and background tasks between calls.
 */

#include "daemon/python/py.h"

/*
 * True when tasks wait on the loop: then loop_run() or loop_leave() has to follow, and from here on
 * loop_stop() counts.
 */
bool loop_enter(void);
void loop_leave(void);

/* Runs the loop until loop_stop(), or until a task raises what ends it, which is printed. Leaves
 * it. */
void loop_run(void);

/* Ends loop_run() soon, also one that is about to start. Any thread with the GIL. */
void loop_stop(void);

/*
 * Cancels the task that an interrupted coroutine left (NULL: that of a cell) and runs the loop
 * until it ends, a second at most.
 */
void loop_end_task(PyObject *coroutine);

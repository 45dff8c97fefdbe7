/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The second thread of the Python half: flushes the streams while a call runs long, and stops
 * IPython's loop when a call arrives.
 */

#include <stdbool.h>

/* Starts the thread; the GIL is held. 0 or -1. */
int ticker_start(void);

/* Ends it; the GIL is held on entry and return, and given up in between. */
void ticker_stop(void);

/* A call begins. Any thread. */
void ticker_begin_call(void);

/*
 * A call ended. `is_lively`: threads or tasks of the user go on and may print, so that the streams
 * have to be flushed meanwhile as well. Any thread.
 */
void ticker_end_call(bool is_lively);

/* Work has arrived: stops the loop if it runs, else does nothing. Any thread, no GIL needed. */
void ticker_wake_loop(void);

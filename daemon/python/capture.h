/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Streams, display and figures: sys.stdin/stdout/stderr on descriptors 0 to 2, flush points, the
 * display hook and publisher, matplotlib's figures.
 */

#include "common/buf.h"
#include "daemon/answer.h"
#include "daemon/python/py.h"

/* Puts streams and descriptors 0 to 2 back, whatever the last cell did to them. -1 with exception. */
int capture_restore_streams(void);

/* Flushes Python's and C's buffers into the pipes. Never raises. */
void capture_flush(void);

/* Installs the audit hook (flush before a child starts) and the flush helper thread. Once. */
int capture_init(void);

/* Shadows the hook's and publisher's methods of the shell. After ipshell_new(). */
int capture_install(void);

/* Begins and ends collecting display data for one execute. */
void capture_begin(void);

/*
 * Renders and closes the figures that are still open, then writes the items that were displayed:
 * `display_data` (JSON array) into `json`, images into `a`, text forms into a->text for profile
 * text, sets ANSWER_CUT_DISPLAY. `value` (may be NULL) is a trailing value that is not JSON: its rich
 * forms are appended as an item. 0 or -1 with an exception.
 */
int capture_end(struct answer *a, struct buf *json, PyObject *value, enum profile profile);

/* The value of the trailing expression of the cell that ran, borrowed; NULL when there was none or
 * a `;` silenced it. */
PyObject *capture_result(void);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Streams, display and figures: sys.stdin/stdout/stderr on descriptors 0 to 2, flush points, the
 * display hook and publisher, matplotlib's figures.
 */

#include "common/buf.h"
#include "daemon/answer.h"
#include "daemon/python/py.h"

/*
 * Puts streams and descriptors 0 to 2 back, whatever the last cell did to them. -1 with exception.
 */
int capture_restore_streams(void);

/*
 * Has Python's end leave our streams alone, after all exit handlers of others. Before there are
 * any; -1 with an exception.
 */
int capture_leave_at_exit(void);

/* Flushes our streams' and C's buffers into the pipes. Never raises; any thread. */
void capture_flush(void);

/*
 * Flushes what user code put into the places of our streams: its own code, so only while the call
 * can be interrupted and never from another thread. Never raises.
 */
void capture_flush_replaced(void);

/* Installs the audit hook (flush before a child starts, matplotlib's backend). Once; -1 with
 * exception. */
int capture_init(void);

/*
 * Shadows the hook's and publisher's methods of the shell. After ipshell_new(). -1 with exception.
 */
int capture_install(void);

/* Begins collecting display data for one execute. */
void capture_begin(void);

/*
 * Appends what IPython's formatters make of a trailing value besides text/plain as an item. Returns
 * 1 when a text form among them serves a reader better than text/plain, else 0; -1 with an
 * exception.
 */
int capture_add_value(PyObject *value);

/* Text/plain of a value by IPython's formatter: new str, NULL without an exception when it makes
 * none. */
PyObject *capture_plain_text(PyObject *value);

/*
 * Renders and closes the figures that are still open (`value` as well, but that one is shown by
 * capture_add_value()), then writes the items that were displayed: `display_data` (JSON array,
 * nothing when there are none) into `json`, images into `a` (in a failed answer they are only
 * saved), text forms into a->text for profile text, sets ANSWER_CUT_DISPLAY. Never raises, but for
 * an interrupt of the call: -1.
 */
int capture_end(
	struct answer *a, struct buf *json, PyObject *value, enum profile profile, bool has_failed);

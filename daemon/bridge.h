/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The event half's end of the border: starts the Python thread (loader.c runs on it), submits
 * calls, carries replies, catalogs and state changes to the loop thread through a locked list and
 * an eventfd.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/daemon.h"

/*
 * Starts the thread. `faults` (NULL: none) is the configuration's complaint: the start then fails
 * at once in phase configuration. 0 or a negative errno.
 */
int bridge_start(struct daemon *d, const char *faults);

/* Takes the call. Only in DAEMON_READY and while none runs. */
void bridge_submit(struct daemon *d, struct shell_call *call);

/* See shell_ops.interrupt. */
bool bridge_interrupt(struct daemon *d, uint64_t call, enum shell_reason reason, unsigned again);

/* Sends a signal to the Python thread; nothing happens before it runs and after it has ended. */
void bridge_signal(struct daemon *d, int number);

/* Asks the Python half to end; `on_end` runs on the loop thread when the thread has ended. */
void bridge_stop(struct daemon *d, void (*on_end)(struct daemon *d));

/* Frees; a thread that did not end is left alone. */
struct bridge *bridge_free(struct bridge *b);

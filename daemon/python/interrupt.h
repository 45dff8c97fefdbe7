/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Interrupts: armed for one call; a late one is drained, never inherited by the next. An interrupt
 * is SIGINT sent to Python's main thread under a lock that the end of a call takes, too.
 */

#include "daemon/shell.h"
#include "daemon/python/py.h"

/* Remembers the calling thread as the one to signal. Once, on the Python thread. */
void interrupt_init(void);

/* Arms for call `id`: Python's default SIGINT handler and the signal mask are put back first. */
void interrupt_arm(uint64_t id);

/* Call `id` was submitted: until it is armed, an interrupt for it hits what keeps the thread. No
 * GIL. */
void interrupt_announce(uint64_t id);

/*
 * Disarms: nothing is sent afterwards, one that was sent and not yet noticed is drained. Returns
 * whether the call was interrupted and, in *ret_reason, why (the last reason).
 */
bool interrupt_disarm(enum shell_reason *ret_reason);

/* Whether the armed call was interrupted so far. Needs no GIL. */
bool interrupt_is_set(enum shell_reason *ret_reason);

/*
 * Right before user code gets control: an interrupt that came while the call was being prepared,
 * and was cleared there with errors of no interest, is sent anew.
 */
void interrupt_renew(void);

/* shell_ops.interrupt. Any thread, no GIL. */
bool interrupt_send(uint64_t id, enum shell_reason reason, unsigned again);

/* A shell command of the cell is about to start (audit hook): its children are ours to end. */
void interrupt_note_command(void);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A Python half without Python, for tests of the border and of the event half. A call of `execute`
 * runs its `code` as commands, separated by `;`:
 *
 *	out:TEXT err:TEXT	writes to descriptor 1 or 2 (\n for a newline)
 *	sleep:MS		sleeps; an interrupt makes it an error
 *	stuck:MS		sleeps whatever comes
 *	publish:REVISION	publishes a catalog with that many tools
 *	stale:REVISION		the same, the last one stale
 *	close			closes every descriptor from 3 on in the thread's table
 *	cwd:DIR note:TEXT	what the reply says of the directory
 *	image, wide, blank, nothing	an image; a wide integer; no cell ran; no answer at all
 *	value:JSON		the result
 *	big:BYTES		a result of so many bytes, with a small fallback
 * Every other tool answers with its arguments as the result; one of them, `publish`, is a
 * revision.
 */

#include "daemon/shell.h"

const struct shell_ops *fake_shell_ops(void);

/* Milliseconds that run() takes before it is ready, or fails instead. */
extern int fake_shell_start_ms;
extern bool fake_shell_fails;

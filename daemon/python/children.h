/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/*
 * Children of the cell's shell commands (`!command`, `x = !command`, %%bash, os.system): they are
 * ended with the call that is interrupted. Children that user code started itself stay.
 */

/* A call begins: no command so far. */
void children_forget(void);

/* A shell command of the cell is about to start its child: whoever lives already is not its. */
void children_note_command(void);

/* User code is about to start a child itself: the last command has ended. */
void children_note_own(void);

/* The call has ended: what is left of an interrupted command gets SIGKILL in a second. */
void children_doom(void);

/* Kills those whose second is over. True while there are some that wait. Any thread, no GIL. */
bool children_reap(void);

/* Sends `signal` to the command's children and to theirs, also to those it was sent before. Any
 * thread, no GIL. */
void children_signal(int signal);

/* SPDX-License-Identifier: MIT */
#pragma once

/* The configuration of the agents that run the shim: printed, installed, undone. */

enum setup_verb { SETUP_PRINT, SETUP_INSTALL, SETUP_UNINSTALL };

/*
 * Does `verb` for the agent called `agent` (AGENTS_NAMES): prints to standard output what belongs
 * in its file, puts it there, or takes it out again, showing each change. `name` is the namespace,
 * NULL for the default one; `args`, NULL-terminated, is what the agent is to pass to the shim.
 * Returns an exit code; complaints go to standard error.
 */
int setup_run(enum setup_verb verb, const char *agent, const char *name, char *const args[]);

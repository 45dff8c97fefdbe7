/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The startup environment: the uv environment, variables, library paths. In the fixed order of the
 * contract; each step reports its phase. Blocks the Python thread only.
 */

#include "daemon/shell.h"
#include "daemon/python/py.h"

/*
 * Before Python is initialised, no GIL: validates, creates or verifies the environment with uv.
 * *ret_site_packages (owned by the caller) is the directory that goes first on sys.path, NULL when
 * no environment is configured. 0, or -1 with *ret_phase and *ret_message (owned by the caller,
 * NULL when memory is short), which may hold secrets until environment_redact() has seen it, as all
 * messages here. Temporary directories are gone either way.
 */
int environment_provision(char **ret_site_packages, enum shell_phase *ret_phase,
	char **ret_message);

/*
 * After Python is initialised, before the shell: site-packages first on sys.path (.pth files
 * honoured), then the variables, then the library paths. -1 with *ret_phase and *ret_message.
 */
int environment_apply(const char *site_packages, enum shell_phase *ret_phase, char **ret_message);

/* Imports the preloads before the shell is built, in order. Same failure form, phase preload. */
int environment_preload(enum shell_phase *ret_phase, char **ret_message);

/* Binds the aliases in the namespace, after the shell is built. Same failure form, phase
 * binding. */
int environment_bind(enum shell_phase *ret_phase, char **ret_message);

/* Ends environment_provision() within a moment, as a failure. Any thread. */
void environment_cancel(void);

/*
 * `text` as a diagnostic may show it: configured variables' values and credentials in URLs replaced
 * by
 * ***, control characters left out, bounded by max_text_chars. Takes `text` (NULL is passed on),
 * returns new memory, NULL when short. Needs no GIL.
 */
char *environment_redact(char *text);

/* SPDX-License-Identifier: MIT */
#pragma once

/* The uv environment: verified when it exists, made when it does not. Before Python is
 * initialised. */

#include <stdbool.h>

#include "daemon/shell.h"

/* What is asked for; all borrowed. */
struct provision {
	const struct settings *settings; /* with a workspace and an environment's name */
	const struct shell_interpreter *interpreter;
	/* Told each phase as it begins. */
	void (*on_phase)(void *ctx, enum shell_phase phase);
	void *ctx;
};

/*
 * *ret_site_packages (owned by the caller) is the environment's directory of packages. False with
 * *ret_phase and *ret_message (owned by the caller, neither redacted nor bounded; NULL when memory
 * is short); then nothing is left of what was begun.
 */
bool provision_run(const struct provision *p, char **ret_site_packages, enum shell_phase *ret_phase,
	char **ret_message);

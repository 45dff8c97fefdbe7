/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The startup variables of an environment: every IPYTHON_MCP_* but those that belong to one session
 * or to the rendezvous (PROFILE, RUNTIME_DIR, SOCKET, LOG). A daemon cannot change them once it
 * runs; the shim compares its own with the daemon's and names those that differ.
 */

#include <stdbool.h>

#include "common/buf.h"

/* Appends a JSON object, variable name -> 16 hex digits of a hash of its value, sorted by name. */
void fingerprint_write(struct buf *b, char **environment);

/* True when the environment holds any startup variable. */
bool fingerprint_has_any(char **environment);

/* SPDX-License-Identifier: MIT */
#pragma once

/* The attach line, which a shim sends first: what its client wants of the session. */

#include "common/jscan.h"
#include "daemon/session.h"

/*
 * Handles notifications/ipython-mcp/attach; `params` may be anything. Ignored unless it came first.
 */
void attach_on_line(struct session *s, struct jspan params);

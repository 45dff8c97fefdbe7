/* SPDX-License-Identifier: MIT */
#pragma once

/* Registered tools: the daemon-wide registry and the catalog that is published from it. */

#include "daemon/python/py.h"

/* Once, from toolbox_init(). -1 with an exception. */
int dyntool_init(void);

/*
 * Checks each registration against its live binding and publishes a new catalog when something
 * changed. The worker calls it after every operation, before the reply. Cheap: at most 50 us with
 * 100 registrations that did not change. Never raises.
 */
void dyntool_check(void);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * list, search, inspect: looking at the namespace without changing it. Handlers are in toolbox.h.
 */

/* Keeps references to inspect's functions. -1 with an exception. */
int discover_init(void);

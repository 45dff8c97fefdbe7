/* SPDX-License-Identifier: MIT */
#pragma once

/* remove, reset, reload: what changes the namespace as a whole. Handlers are in toolbox.h. */

/* Keeps references to importlib's functions. -1 with an exception. */
int namespace_init(void);

/* SPDX-License-Identifier: MIT */
#pragma once

/* remove and reset: what changes the namespace as a whole. Handlers are in toolbox.h. */

/* Keeps a reference to importlib's function. -1 with an exception. */
int namespace_init(void);

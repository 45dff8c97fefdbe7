/* SPDX-License-Identifier: MIT */
#pragma once

/* reload: modules loaded anew in place. The handler is in toolbox.h. */

/* Keeps references to importlib's functions. -1 with an exception. */
int reload_init(void);

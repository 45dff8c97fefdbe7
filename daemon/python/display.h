/* SPDX-License-Identifier: MIT */
#pragma once

/* Display items of the running execute; see capture.h for what other files use. */

#include "daemon/python/py.h"

/* Shadows the display hook's and publisher's methods. -1 with an exception. */
int display_install(void);

/*
 * Appends an item made of `data` (dict, MIME type -> payload) and `metadata` (dict or NULL). Runs
 * no formatter. 0 or -1 with an exception.
 */
int display_add(PyObject *data, PyObject *metadata);

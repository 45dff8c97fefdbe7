/* SPDX-License-Identifier: MIT */
#pragma once

/* matplotlib's figures as PNG images; nothing of it is imported before user code does. */

#include "daemon/python/py.h"

/* The formatter for figures and `%matplotlib`. After ipshell_new(). -1 with an exception. */
int figures_install(void);

/* Audit event `import`: gives pyplot its backend before it is loaded. Never raises. */
void figures_on_import(PyObject *args);

/*
 * Shows the figures that are still open as display items and closes them; `skip` (may be NULL) is
 * only closed. 0, or -1 when the call was interrupted (exception set); other errors go to stderr.
 */
int figures_flush(PyObject *skip);

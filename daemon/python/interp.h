/* SPDX-License-Identifier: MIT */
#pragma once

/* Start and end of CPython; the only user of symbols beyond the limited API. */

#include "daemon/shell.h"
#include "daemon/python/py.h"

/*
 * Coerces the locale, initialises Python on this thread for that interpreter and leaves the GIL held.
 * 0, or -1 and *ret_message (owned by the caller).
 */
int interp_start(const struct shell_interpreter *interpreter, char **ret_message);

/* Ends Python on this thread; the GIL is held on entry and gone on return. */
void interp_end(void);

/* A C audit hook for the life of the process; 0 or -1. `hook` returns 0, runs with the GIL. */
int interp_add_audit_hook(int (*hook)(const char *event, PyObject *args, void *ctx), void *ctx);

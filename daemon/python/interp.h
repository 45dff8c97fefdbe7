/* SPDX-License-Identifier: MIT */
#pragma once

/* Start and end of CPython; the only user of symbols beyond the limited API. */

#include "daemon/shell.h"
#include "daemon/python/py.h"

/*
 * Coerces the locale, initialises Python on this thread for that interpreter and leaves the GIL
 * held. 0, or -1 and *ret_message (owned by the caller).
 */
int interp_start(const struct shell_interpreter *interpreter, char **ret_message);

/* Ends Python on this thread; the GIL is held on entry and gone on return. */
void interp_end(void);

/* A C audit hook for the life of the process; 0 or -1. `hook` returns 0, runs with the GIL. */
int interp_add_audit_hook(int (*hook)(const char *event, PyObject *args, void *ctx), void *ctx);

/*
 * What a function's signature comes from: __code__, __defaults__, __kwdefaults__, __annotations__.
 */
enum { INTERP_N_FUNCTION_PARTS = 4 };

/*
 * These parts of a plain function, borrowed, NULL where it has none: what its attributes say,
 * without the cost of looking them up. False, and nothing in ret_parts, where this libpython cannot
 * tell.
 */
bool interp_function_parts(PyObject *function, PyObject **ret_parts);

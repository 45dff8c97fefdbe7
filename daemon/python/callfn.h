/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Calling a function of the namespace with keyword arguments, for call_function and registered
 * tools.
 */

#include "daemon/python/toolbox.h"

/* Keeps references to inspect's functions. -1 with an exception. */
int callfn_init(void);

/*
 * Binds `keywords` (a dict) against the live signature of `callable`, calls it, runs a coroutine
 * that it returns to its end, and writes call_function's whole answer, `name` first. 0, or -1 with
 * an exception that is not user code's.
 */
int callfn_call(struct tool_run *run, PyObject *name, PyObject *callable, PyObject *keywords);

/* The same answer with only an error in it. `name` is a str or NULL. */
int callfn_fail(struct tool_run *run, PyObject *name, const struct answer_error *error);

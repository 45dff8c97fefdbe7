/* SPDX-License-Identifier: MIT */
#pragma once

/* The traceback of an exception in an answer: as text, and the place that it names. */

#include "daemon/answer.h"
#include "daemon/python/py.h"

/*
 * A traceback.TracebackException of `exception`, bounded against deep recursion. `text` (UTF-8
 * bytes, NULL: its own) is what it is to say of itself. NULL with an exception.
 */
PyObject *traceback_new(PyObject *exception, PyObject *text);

/*
 * File, line and column of the deepest frame of user code, if there is one. Before
 * traceback_format().
 */
void traceback_locate(PyObject *summary, struct answer_error *ret);

/*
 * Python's text of it without frames of IPython, in profile text without those of libraries,
 * bounded. Owned by the caller; NULL with or without an exception.
 */
char *traceback_format(PyObject *summary, PyObject *exception, enum profile profile, bool *ret_cut);

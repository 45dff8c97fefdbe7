/* SPDX-License-Identifier: MIT */
#pragma once

/* From a raised exception to the structured error of an answer: the place that clears it. */

#include "daemon/answer.h"
#include "daemon/python/py.h"

/*
 * Takes the raised exception and clears it. `code` is static; message, type, location and traceback
 * are bounded by the settings and never contain frames of IPython or of ourselves. Whatever the
 * exception does when it is looked at (a __str__ that raises, exits or recurses) yields a fallback
 * text. NULL in a field where memory is short. Without a raised exception: an empty error.
 */
void pyerr_take(const char *code, struct answer_error *ret);

/* The same for an exception object that was caught earlier (borrowed). */
void pyerr_describe(PyObject *exception, const char *code, struct answer_error *ret);

/* The raised exception, normalized, with its traceback attached, cleared: new reference or NULL. */
PyObject *pyerr_fetch(void);

/* Prints it to sys.stderr as an answer would tell it in full: without frames of IPython. Never
 * raises. */
void pyerr_print(PyObject *exception);

/* Clears a raised exception that is of no interest, but lets an interrupt of the running call be
 * noticed: returns -1 with KeyboardInterrupt still set when it is one, else 0. */
int pyerr_clear_unless_interrupt(void);

/* Cuts `text` (valid UTF-8) to `limit` code points, with … as the last when cut. New memory, NULL
 * when short; *ret_cut (may be NULL) tells. */
char *pyerr_bound(const char *text, size_t len, size_t limit, bool *ret_cut);

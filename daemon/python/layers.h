/* SPDX-License-Identifier: MIT */
#pragma once

/* What a callable consists of: methods, partials, wrappers, constructors, down to a function. */

#include "daemon/answer.h"
#include "daemon/python/py.h"
#include "daemon/python/watch.h"

/* Keeps references to inspect's functions. -1 with an exception. */
int layers_init(void);

/* True for a functools.partial. */
bool layers_is_partial(PyObject *callable);

/*
 * Walks through the layers of `callable` and notes in `watch` what its signature depends on.
 * *ret_globals is a new reference to the globals of the function that was annotated, NULL when
 * there is none. 0; 1 when a layer is of an unsupported kind or they run in a circle, with
 * *ret_error; -1 with an exception.
 */
int layers_walk(PyObject *callable, struct watch *watch, PyObject **ret_globals,
	struct answer_error *ret_error);

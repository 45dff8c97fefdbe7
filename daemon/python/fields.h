/* SPDX-License-Identifier: MIT */
#pragma once

/* Objects that are translated by their fields: dataclasses and pydantic models. */

#include "daemon/python/py.h"

/* Keeps a reference to dataclasses' function. -1 with an exception. */
int fields_init(void);

/*
 * Names of the fields that instances of `type` have, a new list. NULL without an exception when the
 * type has none of its own, with one when looking at it raised.
 */
PyObject *fields_names(PyTypeObject *type);

/* True when `type` derives from that class of a module that is loaded. Runs no user code. */
bool fields_derives_from(PyTypeObject *type, const char *module_name, const char *class_name);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Python.h, included the one right way: limited API of 3.11, so that one shared object serves every
 * later CPython. What that API lacks is looked up with dlsym in interp.c, nowhere else.
 *
 * Every function of this folder holds the GIL on entry and on return unless its header says
 * otherwise. The CPython habit holds inside: NULL or -1 with an exception set, up to the tool's
 * handler.
 */

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>
#include <stdbool.h>

#include "common/cleanup.h"

static inline void py_cleanup(PyObject **o) {
	Py_XDECREF(*o);
}

/* An owned reference that is given up at the end of its scope; take() hands it on. */
#define auto_py __attribute__((cleanup(py_cleanup), unused)) PyObject

/* Marks a reference that somebody else keeps alive. */
#define borrowed

/* UTF-8 of a str, surrogates replaced by U+FFFD ("?" never): owned bytes object, NULL with an
 * exception when `o` is no str or memory is short. */
PyObject *py_utf8(PyObject *o);

/*
 * Attribute by C name, NULL without an exception when it does not exist; other errors are raised.
 */
PyObject *py_getattr_or_null(PyObject *o, const char *name);

/* An attribute's UTF-8 as a bytes object; NULL without an exception when it is no str. */
PyObject *py_attr_utf8(PyObject *o, const char *name);

/* An attribute as a positive number; 0 when it is none. */
long py_attr_number(PyObject *o, const char *name);

/* Calls o.name(*args): `format` as in Py_BuildValue, always a tuple: "(O)". */
PyObject *py_call_method(PyObject *o, const char *name, const char *format, ...);

/* module.attribute, imported; NULL with an exception. */
PyObject *py_import_attr(const char *module, const char *attribute);

/* type.__module__ + "." + type.__qualname__ of an object's type, never running user code that can
 * raise: falls back to the type's bare name. New str, NULL only when memory is short. */
PyObject *py_qualified_type(PyObject *o);

/* SPDX-License-Identifier: MIT */
#pragma once

/* JSON values against the shape of a parameter. */

#include "daemon/python/shape.h"

/* Where a value is, for complaints: a chain that ends at the parameter's name. */
struct fit_place {
	const struct fit_place *up; /* NULL: the parameter */
	PyObject *key;              /* str; NULL: `index` counts */
	Py_ssize_t index;
};

/*
 * The value of the annotated type for a JSON value. NULL with an exception, or without one and a
 * complaint in *ret_message that names the place and the rule.
 */
PyObject *fit_value(const struct shape *s, PyObject *value, const struct fit_place *place,
	char **ret_message);

/* SPDX-License-Identifier: MIT */
/*
 * Names
 *
 * The contract's rules about names in one place: which ones tools show, which ones they must not
 * take away, and how a dotted one is followed without evaluating anything. Python thread.
 */

#include <stdlib.h>
#include <string.h>

#include "common/jscan.h"
#include "daemon/python/half.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/names.h"

const char *const names_of_shell[] = { "In", "Out", "get_ipython", "exit", "quit", "open", NULL };

static struct names_alias *aliases;
static size_t n_aliases;

int names_init(void) {
	const char *text = half.settings->module_aliases;
	struct jspan object = jscan_value(text, strlen(text)), name, value;

	for (size_t at = 0; jscan_next_member(object, &at, &name, &value);) {
		struct names_alias *more = realloc(aliases, (n_aliases + 1) * sizeof(*more));
		struct names_alias *a;

		if (!more)
			goto no_memory;
		aliases = more;
		a = &aliases[n_aliases];
		a->module = jspan_decode(name, NULL);
		a->alias = jspan_decode(value, NULL);
		n_aliases++;
		if (!a->module || !a->alias)
			goto no_memory;
	}
	return 0;

no_memory:
	PyErr_NoMemory();
	return -1;
}

const struct names_alias *names_aliases(size_t *ret_n) {
	*ret_n = n_aliases;
	return aliases;
}

bool names_is_visible(const char *name) {
	if (name[0] == '_')
		return false;
	for (size_t i = 0; names_of_shell[i]; i++)
		if (!strcmp(name, names_of_shell[i]))
			return false;
	return true;
}

bool names_is_protected(const char *name) {
	if (!names_is_visible(name))
		return true;
	for (size_t i = 0; i < n_aliases; i++)
		if (!strcmp(name, aliases[i].alias))
			return true;
	return false;
}

bool names_is_trimmed(PyObject *name) {
	auto_py *stripped = PyObject_CallMethod(name, "strip", NULL);
	Py_ssize_t len = stripped ? PyUnicode_GetLength(stripped) : -1;

	PyErr_Clear();
	return len > 0 && len == PyUnicode_GetLength(name);
}

PyObject *names_visible(void) {
	borrowed PyObject *key, *value;
	auto_py *names = PyList_New(0);
	Py_ssize_t at = 0;

	while (names && PyDict_Next(ipshell_namespace(), &at, &key, &value)) {
		/* A str of a class of its own could run code when it is compared. */
		const char *name = PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8AndSize(key, NULL)
							     : NULL;

		PyErr_Clear();
		if (name && names_is_visible(name) && PyList_Append(names, key) < 0)
			return NULL;
	}
	if (!names || PyList_Sort(names) < 0)
		return NULL;
	return take(names);
}

/* The attribute, or NULL without an exception when there is none. */
static PyObject *follow(PyObject *object, PyObject *name) {
	PyObject *value = PyObject_GetAttr(object, name);

	if (!value && PyErr_ExceptionMatches(PyExc_AttributeError))
		PyErr_Clear();
	return value;
}

PyObject *names_resolve(PyObject *dotted, const char **ret_code) {
	auto_py *dot = PyUnicode_FromStringAndSize(".", 1);
	auto_py *parts = dot ? PyUnicode_Split(dotted, dot, -1) : NULL;
	auto_py *object = NULL;

	*ret_code = "name_not_found";
	if (!parts) {
		PyErr_Clear();
		return NULL;
	}
	for (Py_ssize_t i = 0; i < PyList_Size(parts); i++) {
		borrowed PyObject *part = PyList_GetItem(parts, i);
		PyObject *next;

		if (!PyUnicode_GetLength(part) ||
			(PyUnicode_ReadChar(part, 0) == '_' && PyUnicode_GetLength(part) > 1 &&
				PyUnicode_ReadChar(part, 1) == '_'))
			return NULL;
		if (i) {
			next = follow(object, part);
		} else {
			next = PyDict_GetItemWithError(ipshell_namespace(), part);
			Py_XINCREF(next);
		}
		Py_XDECREF(object);
		object = next;
		if (!object) {
			if (PyErr_Occurred())
				*ret_code = "attribute_access_error";
			return NULL;
		}
	}
	return take(object);
}

/* SPDX-License-Identifier: MIT */
/*
 * Values that Fit
 *
 * The check of a call's arguments against the shapes of the parameters, and in the same walk their
 * conversion. Checks follow JSON Schema: a boolean is no number, 1.0 is an integer, sets are arrays
 * without duplicates. In a union the first member that takes a value as it is wins; only when none
 * does may an integer become a float. Python thread.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/python/convert.h"
#include "daemon/python/fit.h"
#include "daemon/python/pyerr.h"

/* `b[2].x`, from the parameter down. */
static void add_place(struct buf *b, const struct fit_place *place) {
	auto_py *key = place->key ? py_utf8(place->key) : NULL;
	auto_free char *text = NULL;

	if (place->up)
		add_place(b, place->up);
	if (!place->key) {
		buf_addf(b, "[%zd]", place->index);
		return;
	}
	PyErr_Clear();
	if (key)
		text = pyerr_bound(PyBytes_AsString(key), (size_t)PyBytes_Size(key), 100, NULL);
	buf_addf(b, "%s%s", place->up ? "." : "", text ? text : "?");
}

/* What a shape takes, in words. */
static void add_words(struct buf *b, const struct shape *s) {
	static const char *const words[] = {
		[SHAPE_STRING] = "a string",
		[SHAPE_INTEGER] = "an integer",
		[SHAPE_NUMBER] = "a number",
		[SHAPE_BOOLEAN] = "a boolean",
		[SHAPE_NULL] = "null",
		[SHAPE_LIST] = "an array",
		[SHAPE_SET] = "an array without duplicates",
		[SHAPE_FROZENSET] = "an array without duplicates",
		[SHAPE_SEQUENCE] = "an array",
		[SHAPE_TUPLE] = "an array",
		[SHAPE_DICT] = "an object",
		[SHAPE_UNION] = NULL,
	};

	if (s->kind == SHAPE_LITERAL) {
		buf_add_str(b, "one of ");
		if (convert_to_json(s->values, b, NULL) != CONVERT_OK)
			PyErr_Clear();
	} else if (s->kind != SHAPE_UNION) {
		buf_add_str(b, words[s->kind]);
		if (s->kind == SHAPE_TUPLE)
			buf_addf(b, " of %zu items", s->n_children);
	}
	for (size_t i = 0; s->kind == SHAPE_UNION && i < s->n_children; i++) {
		buf_add_str(b, i ? " or " : "");
		add_words(b, s->children[i]);
	}
}

static const char *describe(PyObject *value) {
	if (value == Py_None)
		return "null";
	if (PyBool_Check(value))
		return "a boolean";
	if (PyLong_Check(value))
		return "an integer";
	if (PyFloat_Check(value))
		return "a number";
	if (PyUnicode_Check(value))
		return "a string";
	return PyList_Check(value) ? "an array" : "an object";
}

/* The complaint that a value does not fit; `rule` NULL: it has the wrong type. Always NULL. */
static PyObject *misfit(const struct shape *s, PyObject *value, const struct fit_place *place,
	const char *rule, char **ret_message) {
	auto_buf struct buf b = BUF_NULL;

	if (!ret_message)
		return NULL;
	buf_add_char(&b, '`');
	add_place(&b, place);
	buf_add_str(&b, "` must be ");
	add_words(&b, s);
	if (rule)
		buf_addf(&b, "; %s", rule);
	else
		buf_addf(&b, ", not %s", describe(value));
	free(*ret_message);
	*ret_message = buf_take(&b, NULL);
	if (!*ret_message)
		PyErr_NoMemory();
	return NULL;
}

static PyObject *convert(const struct shape *s, PyObject *value, bool widens,
	const struct fit_place *place, char **ret_message);

/* True when two JSON scalars are the same value. -1 with an exception. */
static int same_scalar(PyObject *a, PyObject *b) {
	if (PyBool_Check(a) || PyBool_Check(b) || a == Py_None || b == Py_None)
		return a == b;
	if (PyUnicode_Check(a) != PyUnicode_Check(b) || PyList_Check(b) || PyDict_Check(b))
		return 0;
	return PyObject_RichCompareBool(a, b, Py_EQ);
}

static PyObject *convert_literal(const struct shape *s, PyObject *value,
	const struct fit_place *place, char **ret_message) {
	for (Py_ssize_t i = 0; i < PyTuple_Size(s->values); i++) {
		PyObject *literal = PyTuple_GetItem(s->values, i);
		int is_same = same_scalar(literal, value);

		if (is_same < 0)
			return NULL;
		if (is_same) {
			Py_INCREF(literal);
			return literal;
		}
	}
	if (PyList_Check(value) || PyDict_Check(value))
		return misfit(s, value, place, NULL, ret_message);
	return misfit(s, value, place, "it is another value", ret_message);
}

/*
 * True when a JSON array holds a value twice, which a set of Python may hide. -1 with an exception.
 */
static int has_duplicates(PyObject *list) {
	auto_py *texts = PySet_New(NULL);

	for (Py_ssize_t i = 0; texts && i < PyList_Size(list); i++) {
		auto_py *text = shape_canonical(PyList_GetItem(list, i));

		if (!text || PySet_Add(texts, text) < 0)
			return -1;
	}
	return texts ? PySet_Size(texts) < PyList_Size(list) : -1;
}

static PyObject *convert_array(const struct shape *s, PyObject *value, bool widens,
	const struct fit_place *place, char **ret_message) {
	Py_ssize_t len = PyList_Size(value);
	auto_py *items = PyList_New(0);
	auto_py *set = NULL;

	if (s->kind == SHAPE_TUPLE && (size_t)len != s->n_children) {
		char rule[64];

		snprintf(rule, sizeof(rule), "it has %zd", len);
		return misfit(s, value, place, rule, ret_message);
	}
	for (Py_ssize_t i = 0; items && i < len; i++) {
		struct fit_place at = { .up = place, .index = i };
		auto_py *item = convert(s->children[s->kind == SHAPE_TUPLE ? i : 0],
			PyList_GetItem(value, i), widens, &at, ret_message);

		if (!item || PyList_Append(items, item) < 0)
			return NULL;
	}
	if (!items || s->kind == SHAPE_LIST)
		return take(items);
	if (s->kind == SHAPE_SEQUENCE || s->kind == SHAPE_TUPLE)
		return PyList_AsTuple(items);

	set = s->kind == SHAPE_SET ? PySet_New(items) : PyFrozenSet_New(items);
	if (set && PySet_Size(set) < len) {
		int r = has_duplicates(value);

		if (r < 0)
			return NULL;
		if (r)
			return misfit(s, value, place, "an item is there twice", ret_message);
	}
	return take(set);
}

static PyObject *convert_object(const struct shape *s, PyObject *value, bool widens,
	const struct fit_place *place, char **ret_message) {
	auto_py *dict = PyDict_New();
	borrowed PyObject *key, *item;
	Py_ssize_t pos = 0;

	while (dict && PyDict_Next(value, &pos, &key, &item)) {
		struct fit_place at = { .up = place, .key = key };
		auto_py *converted = convert(s->children[0], item, widens, &at, ret_message);

		if (!converted || PyDict_SetItem(dict, key, converted) < 0)
			return NULL;
	}
	return take(dict);
}

/* True when both are arrays or both are objects. */
static bool is_container_for(const struct shape *s, PyObject *value) {
	if (s->kind == SHAPE_DICT)
		return PyDict_Check(value);
	return PyList_Check(value) && (s->kind == SHAPE_LIST || s->kind == SHAPE_SET ||
		s->kind == SHAPE_FROZENSET || s->kind == SHAPE_SEQUENCE || s->kind == SHAPE_TUPLE);
}

static PyObject *convert_union(const struct shape *s, PyObject *value, bool widens,
	const struct fit_place *place, char **ret_message) {
	const struct shape *only = NULL;
	size_t n_similar = 0;

	for (int pass = 0; pass <= widens; pass++)
		for (size_t i = 0; i < s->n_children; i++) {
			PyObject *converted = convert(s->children[i], value, pass, place, NULL);

			if (converted || PyErr_Occurred())
				return converted;
		}
	for (size_t i = 0; i < s->n_children && n_similar < 2; i++)
		if (is_container_for(s->children[i], value))
			only = n_similar++ ? NULL : s->children[i];
	/*
	 * When one member alone is of the value's kind, its complaint says more than all names
	 * together.
	 */
	return only ? convert(only, value, widens, place, ret_message)
		    : misfit(s, value, place, NULL, ret_message);
}

/* As fit_value(); `widens`: an integer may become a float. Without ret_message nobody reads it. */
static PyObject *convert(const struct shape *s, PyObject *value, bool widens,
	const struct fit_place *place, char **ret_message) {
	bool fits = false;

	switch (s->kind) {
	case SHAPE_STRING:
		fits = PyUnicode_Check(value);
		break;
	case SHAPE_INTEGER:
		if (PyFloat_Check(value) && isfinite(PyFloat_AsDouble(value)) &&
			PyFloat_AsDouble(value) == trunc(PyFloat_AsDouble(value)))
			return PyNumber_Long(value);
		fits = PyLong_Check(value) && !PyBool_Check(value);
		break;
	case SHAPE_NUMBER:
		if (PyLong_Check(value) && !PyBool_Check(value) && widens) {
			PyObject *number = PyNumber_Float(value);

			if (number || !PyErr_ExceptionMatches(PyExc_OverflowError))
				return number;
			PyErr_Clear();
			return misfit(s, value, place, "it is beyond a float's range", ret_message);
		}
		fits = PyFloat_Check(value) && isfinite(PyFloat_AsDouble(value));
		break;
	case SHAPE_BOOLEAN:
		fits = PyBool_Check(value);
		break;
	case SHAPE_NULL:
		fits = value == Py_None;
		break;
	case SHAPE_LITERAL:
		return convert_literal(s, value, place, ret_message);
	case SHAPE_LIST:
	case SHAPE_SET:
	case SHAPE_FROZENSET:
	case SHAPE_SEQUENCE:
	case SHAPE_TUPLE:
		if (PyList_Check(value))
			return convert_array(s, value, widens, place, ret_message);
		break;
	case SHAPE_DICT:
		if (PyDict_Check(value))
			return convert_object(s, value, widens, place, ret_message);
		break;
	case SHAPE_UNION:
		return convert_union(s, value, widens, place, ret_message);
	}
	if (!fits)
		return misfit(s, value, place, NULL, ret_message);
	Py_INCREF(value);
	return value;
}

PyObject *fit_value(const struct shape *s, PyObject *value, const struct fit_place *place,
	char **ret_message) {
	return convert(s, value, true, place, ret_message);
}

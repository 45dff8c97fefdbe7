/* SPDX-License-Identifier: MIT */
/*
 * Watching Objects
 *
 * A fact keeps a reference to the object it compares with, so that an address is never taken for
 * another object's. All but the copies of mutable defaults compare addresses only. Python thread.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/python/interp.h"
#include "daemon/python/watch.h"

enum fact_kind { FACT_ATTRIBUTE, FACT_FUNCTION, FACT_ITEM, FACT_CONTENT, FACT_VALUE };

struct watch_fact {
	enum fact_kind kind;
	PyObject *owner;    /* the object asked; a dict for items and contents */
	PyObject *key;      /* name or key; interned names make the lookup fast */
	PyObject *expected; /* ATTRIBUTE, ITEM: the object, NULL: none. VALUE: a copy */
	PyObject **pairs;   /* CONTENT: key, value, key, value … */
	Py_ssize_t n_pairs;
	PyObject *parts[INTERP_N_FUNCTION_PARTS]; /* FUNCTION */
};

static void fact_deinit(struct watch_fact *f) {
	Py_XDECREF(f->owner);
	Py_XDECREF(f->key);
	Py_XDECREF(f->expected);
	for (size_t i = 0; i < INTERP_N_FUNCTION_PARTS; i++)
		Py_XDECREF(f->parts[i]);
	for (Py_ssize_t i = 0; i < 2 * f->n_pairs; i++)
		Py_DECREF(f->pairs[i]);
	free(f->pairs);
}

void watch_deinit(struct watch *w) {
	/* Emptied first: a destructor may come back here. */
	struct watch old = *w;

	*w = (struct watch)WATCH_NULL;
	for (size_t i = 0; i < old.n_facts; i++)
		fact_deinit(&old.facts[i]);
	free(old.facts);
}

/* A new fact about `owner`; the rest is the caller's to fill. NULL with an exception. */
static struct watch_fact *add(struct watch *w, enum fact_kind kind, PyObject *owner) {
	struct watch_fact *facts = realloc(w->facts, (w->n_facts + 1) * sizeof(*facts));

	if (!facts) {
		PyErr_NoMemory();
		return NULL;
	}
	w->facts = facts;
	Py_INCREF(owner);
	facts[w->n_facts] = (struct watch_fact){ .kind = kind, .owner = owner };
	return &facts[w->n_facts++];
}

/* The attribute, NULL when looking at it raises anything. */
static PyObject *get(PyObject *owner, PyObject *name) {
	PyObject *value = PyObject_GetAttr(owner, name);

	if (!value)
		PyErr_Clear();
	return value;
}

int watch_attribute(struct watch *w, PyObject *owner, const char *name) {
	auto_py *key = PyUnicode_InternFromString(name);
	struct watch_fact *f = key ? add(w, FACT_ATTRIBUTE, owner) : NULL;

	if (!f)
		return -1;
	f->key = take(key);
	f->expected = get(owner, f->key);
	return 0;
}

int watch_function(struct watch *w, PyObject *function) {
	static const char *const names[] = { "__code__", "__defaults__", "__kwdefaults__",
		"__annotations__" };
	PyObject *parts[INTERP_N_FUNCTION_PARTS];
	struct watch_fact *f;

	if (!interp_function_parts(function, parts)) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			if (watch_attribute(w, function, names[i]) < 0)
				return -1;
		return 0;
	}
	f = add(w, FACT_FUNCTION, function);
	if (!f)
		return -1;
	for (size_t i = 0; i < INTERP_N_FUNCTION_PARTS; i++) {
		Py_XINCREF(parts[i]);
		f->parts[i] = parts[i];
	}
	return 0;
}

int watch_item(struct watch *w, PyObject *dict, PyObject *key) {
	struct watch_fact *f = add(w, FACT_ITEM, dict);

	if (!f)
		return -1;
	Py_INCREF(key);
	f->key = key;
	f->expected = PyDict_GetItemWithError(dict, key);
	Py_XINCREF(f->expected);
	return PyErr_Occurred() ? -1 : 0;
}

int watch_content(struct watch *w, PyObject *dict) {
	borrowed PyObject *key, *value;
	Py_ssize_t at = 0;
	struct watch_fact *f;

	if (!PyDict_Check(dict))
		return 0;
	f = add(w, FACT_CONTENT, dict);
	if (!f)
		return -1;
	f->pairs = calloc((size_t)PyDict_Size(dict) + 1, 2 * sizeof(*f->pairs));
	if (!f->pairs) {
		PyErr_NoMemory();
		return -1;
	}
	while (PyDict_Next(dict, &at, &key, &value)) {
		Py_INCREF(key);
		Py_INCREF(value);
		f->pairs[2 * f->n_pairs] = key;
		f->pairs[2 * f->n_pairs + 1] = value;
		f->n_pairs++;
	}
	return 0;
}

/* A copy of a JSON value: lists and dicts anew, anything else itself. */
static PyObject *copy(PyObject *value) {
	auto_py *result = NULL;

	if (Py_EnterRecursiveCall(" while a default was copied"))
		return NULL;
	if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
		bool is_list = PyList_CheckExact(value);
		Py_ssize_t len = is_list ? PyList_Size(value) : PyTuple_Size(value);

		result = PyList_New(0);
		for (Py_ssize_t i = 0; result && i < len; i++) {
			auto_py *item = copy(is_list ? PyList_GetItem(value, i)
						     : PyTuple_GetItem(value, i));

			if (!item || PyList_Append(result, item) < 0)
				Py_CLEAR(result);
		}
	} else if (PyDict_CheckExact(value)) {
		borrowed PyObject *key, *item;
		Py_ssize_t at = 0;

		result = PyDict_New();
		while (result && PyDict_Next(value, &at, &key, &item)) {
			auto_py *twin = copy(item);

			if (!twin || PyDict_SetItem(result, key, twin) < 0)
				Py_CLEAR(result);
		}
	} else {
		Py_INCREF(value);
		result = value;
	}
	Py_LeaveRecursiveCall();
	return take(result);
}

/* True when `value` would be copied to just that. Values inside are compared by address. */
static bool equals_copy(PyObject *value, PyObject *twin) {
	if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
		bool is_list = PyList_CheckExact(value);
		Py_ssize_t len = is_list ? PyList_Size(value) : PyTuple_Size(value);

		if (!PyList_CheckExact(twin) || PyList_Size(twin) != len)
			return false;
		for (Py_ssize_t i = 0; i < len; i++)
			if (!equals_copy(is_list ? PyList_GetItem(value, i)
						 : PyTuple_GetItem(value, i),
				    PyList_GetItem(twin, i)))
				return false;
		return true;
	}
	if (PyDict_CheckExact(value)) {
		borrowed PyObject *key, *item;
		Py_ssize_t at = 0;

		if (!PyDict_CheckExact(twin) || PyDict_Size(twin) != PyDict_Size(value))
			return false;
		while (PyDict_Next(value, &at, &key, &item)) {
			borrowed PyObject *other = PyDict_GetItemWithError(twin, key);

			if (!other || !equals_copy(item, other))
				return false;
		}
		return true;
	}
	return value == twin;
}

int watch_value(struct watch *w, PyObject *value) {
	struct watch_fact *f;

	if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value) && !PyDict_CheckExact(value))
		return 0;
	f = add(w, FACT_VALUE, value);
	if (!f)
		return -1;
	f->expected = copy(value);
	return f->expected ? 0 : -1;
}

static bool content_holds(const struct watch_fact *f) {
	borrowed PyObject *key, *value;
	Py_ssize_t at = 0, n = 0;

	/*
	 * Order counts, too: that of parameters does not follow it, but a moved key is a changed
	 * one.
	 */
	while (PyDict_Next(f->owner, &at, &key, &value)) {
		if (n == f->n_pairs || f->pairs[2 * n] != key || f->pairs[2 * n + 1] != value)
			return false;
		n++;
	}
	return n == f->n_pairs;
}

static bool attribute_holds(const struct watch_fact *f) {
	auto_py *value = get(f->owner, f->key);

	return value == f->expected;
}

static bool function_holds(const struct watch_fact *f) {
	PyObject *parts[INTERP_N_FUNCTION_PARTS];

	return interp_function_parts(f->owner, parts) && !memcmp(parts, f->parts, sizeof(parts));
}

static bool fact_holds(const struct watch_fact *f) {
	switch (f->kind) {
	case FACT_ATTRIBUTE:
		return attribute_holds(f);
	case FACT_FUNCTION:
		return function_holds(f);
	case FACT_ITEM:
		return PyDict_GetItemWithError(f->owner, f->key) == f->expected;
	case FACT_CONTENT:
		return content_holds(f);
	case FACT_VALUE:
		return f->expected && equals_copy(f->owner, f->expected);
	}
	return false;
}

bool watch_holds(const struct watch *w) {
	bool holds = true;

	for (size_t i = 0; holds && i < w->n_facts; i++)
		holds = fact_holds(&w->facts[i]);
	PyErr_Clear();
	return holds;
}

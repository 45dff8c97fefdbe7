/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The shape of a parameter: an annotation compiled into a tree that serves three uses, the JSON
 * Schema, the check of a JSON value, and its conversion into the annotated Python type (fit.h).
 */

#include "daemon/python/py.h"
#include "daemon/python/watch.h"

enum shape_kind {
	SHAPE_STRING,
	SHAPE_INTEGER,
	SHAPE_NUMBER,
	SHAPE_BOOLEAN,
	SHAPE_NULL,
	SHAPE_LITERAL,
	SHAPE_LIST,      /* one child: the items */
	SHAPE_SET,
	SHAPE_FROZENSET,
	SHAPE_SEQUENCE,  /* tuple[T, ...] */
	SHAPE_TUPLE,     /* a child for each place */
	SHAPE_DICT,      /* one child: the values */
	SHAPE_UNION,     /* children as declared */
};

struct shape {
	enum shape_kind kind;
	PyObject *values; /* LITERAL: tuple of its values */
	struct shape **children;
	size_t n_children;
};

/* Keeps references to typing's functions. -1 with an exception. */
int shape_init(void);

/*
 * Compiles an annotation; strings in it are evaluated in `globals` (a dict, NULL: they cannot be),
 * and the names they use noted in `watch`. NULL with an exception, or without one and a complaint
 * in *ret_message (owned by the caller; the annotation itself is unsupported).
 */
struct shape *shape_new(PyObject *annotation, PyObject *globals, struct watch *watch,
	char **ret_message);

/* Accepts NULL, returns NULL. */
struct shape *shape_free(struct shape *s);

/* The JSON Schema as a new dict, NULL with an exception. */
PyObject *shape_schema(const struct shape *s);

/* True when a JSON string may fit. */
bool shape_takes_string(const struct shape *s);

/*
 * Python's json.dumps(value, sort_keys=True, separators=(',', ':'), ensure_ascii=False). New str.
 */
PyObject *shape_canonical(PyObject *value);

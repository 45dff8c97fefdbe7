/* SPDX-License-Identifier: MIT */
/*
 * Layers of a Callable
 *
 * A callable is walked down to the function that does the work: bound methods, partials,
 * __wrapped__ chains, constructors, __call__. On the way each layer's kind is checked, the globals
 * in which its annotations were written are found, and all that a signature depends on is noted.
 * Looking at user code's objects may run it: what raises counts as not there. Python thread.
 */

#include "daemon/python/interrupt.h"
#include "daemon/python/layers.h"
#include "daemon/python/toolbox.h"

enum { MAX_LAYERS = 100 };

/* Kept references: what user code does to the modules' names later does not reach us. */
static struct {
	PyObject *is_coroutine_function;
	PyObject *is_generator_function;
	PyObject *is_async_generator_function;
	PyTypeObject *function;
	PyTypeObject *method;
	PyTypeObject *partial;
} kept;

int layers_init(void) {
	kept.is_coroutine_function = py_import_attr("inspect", "iscoroutinefunction");
	kept.is_generator_function = py_import_attr("inspect", "isgeneratorfunction");
	kept.is_async_generator_function = py_import_attr("inspect", "isasyncgenfunction");
	kept.function = (PyTypeObject *)py_import_attr("types", "FunctionType");
	kept.method = (PyTypeObject *)py_import_attr("types", "MethodType");
	kept.partial = (PyTypeObject *)py_import_attr("functools", "partial");
	return kept.is_coroutine_function && kept.is_generator_function &&
			kept.is_async_generator_function && kept.function && kept.method &&
			kept.partial
		? 0
		: -1;
}

bool layers_is_partial(PyObject *callable) {
	return PyType_IsSubtype(Py_TYPE(callable), kept.partial);
}

/* The walk through a callable's layers. */
struct walk {
	struct watch *watch;
	PyObject *globals;            /* of the function that was annotated; NULL: not found */
	PyObject *layers[MAX_LAYERS]; /* from the outermost to where we are; callers hold them */
	size_t depth;
	size_t n_visits;
	bool was_interrupted; /* the call was, before this walk began */
	struct answer_error *error;
};

/* All that walk: 0; 1 with a refusal in w->error; -1 with an exception. */
static int walk(struct walk *w, PyObject *object);

static int check_kind(struct walk *w, PyObject *object) {
	const struct {
		PyObject *test;
		const char *name;
	} kinds[] = {
		{ kept.is_coroutine_function, "a coroutine function" },
		{ kept.is_generator_function, "a generator function" },
		{ kept.is_async_generator_function, "an async generator function" },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		auto_py *answer = PyObject_CallFunctionObjArgs(kinds[i].test, object, NULL);

		if (!answer)
			return toolbox_refuse_raised(w->error, "unsupported_callable_kind",
				"The callable cannot be looked at");
		if (answer == Py_True) {
			toolbox_refuse(w->error, "unsupported_callable_kind",
				"It is, or leads to, %s; only what returns its value at once can "
				"be a tool. Wrap it in a plain function.",
				kinds[i].name);
			return 1;
		}
	}
	return 0;
}

/* The attribute; NULL without an exception when there is none or looking at it raises. */
static PyObject *look(PyObject *object, const char *name) {
	PyObject *value = PyObject_GetAttrString(object, name);

	PyErr_Clear();
	return value;
}

/* 1 with a refusal when this walk was interrupted: the next look would hang, too. */
static int check_interrupt(struct walk *w) {
	if (w->was_interrupted || !interrupt_is_set(NULL))
		return 0;
	toolbox_refuse(w->error, "unsupported_signature", "Looking at it was interrupted.");
	return 1;
}

static int watch_attributes(struct walk *w, PyObject *object, const char *const *names) {
	int r = 0;

	for (; !r && *names; names++)
		r = watch_attribute(w->watch, object, *names) < 0 ? -1 : check_interrupt(w);
	return r;
}

/* Goes on with an attribute's object when there is one. */
static int walk_into(struct walk *w, PyObject *object, const char *name) {
	auto_py *next = look(object, name);

	return next && next != Py_None ? walk(w, next) : 0;
}

static int walk_function(struct walk *w, PyObject *function) {
	static const char *const overrides[] = { "__wrapped__", "__signature__" };
	auto_py *named_defaults = look(function, "__kwdefaults__");
	auto_py *annotations = look(function, "__annotations__");
	auto_py *dict = look(function, "__dict__");
	PyObject *globals = look(function, "__globals__");

	if (globals) {
		Py_XDECREF(w->globals);
		w->globals = globals;
	}
	if (watch_function(w->watch, function) < 0 ||
		watch_attribute(w->watch, function, "__dict__") < 0 ||
		(named_defaults && watch_content(w->watch, named_defaults) < 0) ||
		(annotations && watch_content(w->watch, annotations) < 0))
		return -1;
	/*
	 * An empty one, the usual case, is seen to be empty faster than two keys are missed in it.
	 */
	if (dict && !PyDict_Size(dict) && watch_content(w->watch, dict) < 0)
		return -1;
	for (size_t i = 0; dict && PyDict_Size(dict) && i < ARRAY_LEN(overrides); i++) {
		auto_py *key = PyUnicode_InternFromString(overrides[i]);

		if (!key || watch_item(w->watch, dict, key) < 0)
			return -1;
	}
	return walk_into(w, function, "__wrapped__");
}

static int walk_partial(struct walk *w, PyObject *partial) {
	static const char *const attributes[] = { "func", "args", "keywords", "__signature__",
		"__wrapped__", NULL };
	auto_py *keywords = look(partial, "keywords");
	int r = watch_attributes(w, partial, attributes);

	if (!r && keywords)
		r = watch_content(w->watch, keywords);
	if (!r)
		r = walk_into(w, partial, "func");
	return r ? r : walk_into(w, partial, "__wrapped__");
}

/* One of a class's ways to make an instance, when it is written in Python. */
static int walk_constructor(struct walk *w, PyObject *owner, const char *name) {
	auto_py *function = look(owner, name);

	if (watch_attribute(w->watch, owner, name) < 0)
		return -1;
	return function && Py_TYPE(function) == kept.function ? walk(w, function) : 0;
}

static int walk_class(struct walk *w, PyObject *class) {
	static const char *const attributes[] = { "__signature__", "__wrapped__", NULL };
	int r = watch_attributes(w, class, attributes);

	/* The one that inspect prefers comes last: the last function's globals count. */
	if (!r)
		r = walk_constructor(w, class, "__init__");
	if (!r)
		r = walk_constructor(w, class, "__new__");
	if (!r)
		r = walk_constructor(w, (PyObject *)Py_TYPE(class), "__call__");
	return r ? r : walk_into(w, class, "__wrapped__");
}

static int walk_object(struct walk *w, PyObject *object) {
	static const char *const attributes[] = { "__signature__", "__wrapped__", NULL };
	int r = watch_attributes(w, object, attributes);

	if (!r)
		r = walk_constructor(w, (PyObject *)Py_TYPE(object), "__call__");
	return r ? r : walk_into(w, object, "__wrapped__");
}

static int walk_layer(struct walk *w, PyObject *object) {
	PyTypeObject *type = Py_TYPE(object);

	if (type == kept.function)
		return walk_function(w, object);
	if (type == kept.method)
		return walk_into(w, object, "__func__");
	if (layers_is_partial(object))
		return walk_partial(w, object);
	if (PyType_Check(object))
		return walk_class(w, object);
	return PyCFunction_Check(object) ? 0 : walk_object(w, object);
}

static int walk(struct walk *w, PyObject *object) {
	int r;

	for (size_t i = 0; i < w->depth; i++)
		if (w->layers[i] == object) {
			toolbox_refuse(w->error, "unsupported_signature",
				"Its `__wrapped__` chain runs in a circle.");
			return 1;
		}
	if (w->depth == MAX_LAYERS || ++w->n_visits > 10 * MAX_LAYERS) {
		toolbox_refuse(w->error, "unsupported_signature",
			"It is wrapped in more than %d layers.", MAX_LAYERS);
		return 1;
	}
	w->layers[w->depth++] = object;
	r = check_kind(w, object);
	if (!r)
		r = walk_layer(w, object);
	if (!r)
		r = check_interrupt(w);
	w->depth--;
	return r;
}


int layers_walk(PyObject *callable, struct watch *watch, PyObject **ret_globals,
	struct answer_error *ret_error) {
	struct walk w = {
		.watch = watch,
		.was_interrupted = interrupt_is_set(NULL),
		.error = ret_error,
	};
	int r = walk(&w, callable);

	if (r)
		Py_CLEAR(w.globals);
	*ret_globals = w.globals;
	return r;
}

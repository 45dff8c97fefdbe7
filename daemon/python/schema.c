/* SPDX-License-Identifier: MIT */
/*
 * Schemas
 *
 * A callable is walked down to the function that does the work (bound methods, partials,
 * __wrapped__ chains, constructors, __call__) to see of what kind each layer is, to find the
 * globals in which its annotations were written, and to note all that a signature depends on.
 * inspect then tells the signature itself. Python thread.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/python/fit.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/schema.h"
#include "daemon/python/shape.h"
#include "daemon/python/toolbox.h"
#include "daemon/python/watch.h"

enum { MAX_LAYERS = 100 };

struct parameter {
	PyObject *name;
	struct shape *shape;
	bool is_required;
};

struct schema {
	struct parameter *parameters;
	size_t n_parameters;
	struct watch watch;
	char *text;
	char *fingerprint;
};

/* Kept references: what user code does to the modules' names later does not reach us. */
static struct {
	PyObject *signature;
	PyObject *empty; /* inspect.Parameter.empty */
	PyObject *is_coroutine_function;
	PyObject *is_generator_function;
	PyObject *is_async_generator_function;
	PyTypeObject *function;
	PyTypeObject *method;
	PyTypeObject *partial;
	PyObject *sha256;
	PyObject *encode; /* of the JSONEncoder for the wire */
} kept;

int schema_init(void) {
	auto_py *parameter = py_import_attr("inspect", "Parameter");
	auto_py *encoder_type = py_import_attr("json.encoder", "JSONEncoder");
	auto_py *args = PyTuple_New(0);
	auto_py *options = Py_BuildValue("{s:O,s:(ss)}", "allow_nan", Py_False, "separators", ",",
		":");
	auto_py *encoder = encoder_type && args && options
		? PyObject_Call(encoder_type, args, options)
		: NULL;

	kept.encode = encoder ? PyObject_GetAttrString(encoder, "encode") : NULL;
	kept.empty = parameter ? PyObject_GetAttrString(parameter, "empty") : NULL;
	kept.signature = py_import_attr("inspect", "signature");
	kept.is_coroutine_function = py_import_attr("inspect", "iscoroutinefunction");
	kept.is_generator_function = py_import_attr("inspect", "isgeneratorfunction");
	kept.is_async_generator_function = py_import_attr("inspect", "isasyncgenfunction");
	kept.function = (PyTypeObject *)py_import_attr("types", "FunctionType");
	kept.method = (PyTypeObject *)py_import_attr("types", "MethodType");
	kept.partial = (PyTypeObject *)py_import_attr("functools", "partial");
	kept.sha256 = py_import_attr("hashlib", "sha256");
	if (!kept.encode || !kept.empty || !kept.signature || !kept.is_coroutine_function ||
		!kept.is_generator_function || !kept.is_async_generator_function ||
		!kept.function || !kept.method || !kept.partial || !kept.sha256)
		return -1;
	return shape_init();
}

struct schema *schema_free(struct schema *s) {
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->n_parameters; i++) {
		Py_XDECREF(s->parameters[i].name);
		shape_free(s->parameters[i].shape);
	}
	free(s->parameters);
	watch_deinit(&s->watch);
	free(s->text);
	free(s->fingerprint);
	free(s);
	return NULL;
}

static void schema_cleanup(struct schema **s) {
	schema_free(*s);
}

#define auto_schema __attribute__((cleanup(schema_cleanup))) struct schema

bool schema_is_partial(PyObject *callable) {
	return PyType_IsSubtype(Py_TYPE(callable), kept.partial);
}

const char *schema_text(const struct schema *s) {
	return s->text;
}

const char *schema_fingerprint(const struct schema *s) {
	return s->fingerprint;
}

bool schema_is_fresh(const struct schema *s) {
	return watch_holds(&s->watch);
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

/* Refuses with the raised exception's own words. */
static int refuse_raised(struct answer_error *error, const char *code, const char *what) {
	auto_answer_error struct answer_error raised = { 0 };

	if (PyErr_ExceptionMatches(PyExc_MemoryError))
		return -1;
	pyerr_take(code, &raised);
	toolbox_refuse(error, code, "%s: %s: %s", what,
		raised.error_type ? raised.error_type : "error",
		raised.message ? raised.message : "");
	return 1;
}

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
			return refuse_raised(w->error, "unsupported_callable_kind",
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
	if (schema_is_partial(object))
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

/* A parameter is refused: always 1. */
static int refuse_parameter(struct answer_error *error, PyObject *name, const char *why) {
	auto_py *bytes = py_utf8(name);

	PyErr_Clear();
	toolbox_refuse(error, "unsupported_signature", "Parameter `%s`: %s.",
		bytes ? PyBytes_AsString(bytes) : "?", why);
	return 1;
}

/*
 * A default as JSON would hold it: tuples as lists, scalars of the plain types. NULL without an
 * exception when it is no JSON value.
 */
static PyObject *plain_json(PyObject *value) {
	auto_py *result = NULL;

	if (value == Py_None || PyBool_Check(value)) {
		Py_INCREF(value);
		return value;
	}
	if (PyLong_Check(value))
		return PyNumber_Index(value);
	if (PyFloat_Check(value)) {
		double number = PyFloat_AsDouble(value);

		return isfinite(number) ? PyFloat_FromDouble(number) : NULL;
	}
	if (PyUnicode_Check(value))
		return PyUnicode_FromObject(value);

	if (Py_EnterRecursiveCall(" while a default was read"))
		return NULL;
	if (PyList_Check(value) || PyTuple_Check(value)) {
		auto_py *items = PySequence_List(value);

		for (Py_ssize_t i = 0; items && i < PyList_Size(items); i++) {
			PyObject *item = plain_json(PyList_GetItem(items, i));

			if (!item || PyList_SetItem(items, i, item) < 0)
				Py_CLEAR(items);
		}
		result = take(items);
	} else if (PyDict_Check(value)) {
		borrowed PyObject *key, *item;
		Py_ssize_t at = 0;

		result = PyDict_New();
		while (result && PyDict_Next(value, &at, &key, &item)) {
			auto_py *plain = PyUnicode_CheckExact(key) ? plain_json(item) : NULL;

			if (!plain || PyDict_SetItem(result, key, plain) < 0)
				Py_CLEAR(result);
		}
	}
	Py_LeaveRecursiveCall();
	return take(result);
}

/* Adds a default to a parameter's schema. 0, 1 or -1 as all that refuse. */
static int add_default(struct schema *s, const struct parameter *p, PyObject *value,
	PyObject *property, struct answer_error *error) {
	struct fit_place place = { .key = p->name };
	auto_free char *complaint = NULL;
	auto_py *plain = plain_json(value);
	auto_py *converted = NULL;

	if (!plain && PyErr_Occurred())
		return refuse_raised(error, "unsupported_signature", "A default cannot be read");
	if (!plain)
		return refuse_parameter(error, p->name, "its default is no JSON value");
	converted = fit_value(p->shape, plain, &place, &complaint);
	if (!converted && PyErr_Occurred())
		return refuse_raised(error, "unsupported_signature", "A default cannot be checked");
	if (!converted)
		return refuse_parameter(error, p->name,
			"its default does not match its annotation");
	if (watch_value(&s->watch, value) < 0 ||
		PyDict_SetItemString(property, "default", plain) < 0)
		return -1;
	return 0;
}

/* One parameter of inspect's into s->parameters and `properties`. */
static int add_parameter(struct schema *s, PyObject *parameter, PyObject *globals,
	PyObject *properties, PyObject *required, struct answer_error *error) {
	enum { POSITIONAL_OR_KEYWORD = 1, KEYWORD_ONLY = 3 };
	struct parameter *p = &s->parameters[s->n_parameters];
	auto_py *kind = PyObject_GetAttrString(parameter, "kind");
	auto_py *annotation = kind ? PyObject_GetAttrString(parameter, "annotation") : NULL;
	auto_py *value = annotation ? PyObject_GetAttrString(parameter, "default") : NULL;
	auto_py *property = NULL;
	auto_free char *complaint = NULL;
	long k;

	p->name = value ? PyObject_GetAttrString(parameter, "name") : NULL;
	if (!p->name)
		return -1;
	s->n_parameters++;
	k = PyLong_AsLong(kind);
	if (k == -1 && PyErr_Occurred())
		return -1;
	if (k != POSITIONAL_OR_KEYWORD && k != KEYWORD_ONLY)
		return refuse_parameter(error, p->name,
			"only parameters that can be given by keyword are supported, no "
			"positional-only ones, no *args and no **kwargs");
	if (annotation == kept.empty)
		return refuse_parameter(error, p->name, "it has no annotation");

	p->shape = shape_new(annotation, globals, &s->watch, &complaint);
	if (!p->shape && PyErr_Occurred())
		return refuse_raised(error, "unsupported_signature",
			"An annotation cannot be read");
	if (!p->shape)
		return refuse_parameter(error, p->name, complaint ? complaint : "its annotation");
	property = shape_schema(p->shape);
	if (!property || PyDict_SetItem(properties, p->name, property) < 0)
		return -1;
	p->is_required = value == kept.empty;
	if (p->is_required)
		return PyList_Append(required, p->name);
	return add_default(s, p, value, property, error);
}

static char *copy_text(PyObject *bytes) {
	char *copy = bytes ? strdup(PyBytes_AsString(bytes)) : NULL;

	if (bytes && !copy)
		PyErr_NoMemory();
	return copy;
}

/* The schema as text for the wire, and its fingerprint. 0 or -1 with an exception. */
static int write_texts(struct schema *s, PyObject *schema) {
	auto_py *wire = PyObject_CallFunctionObjArgs(kept.encode, schema, NULL);
	auto_py *wire_bytes = wire ? PyUnicode_AsUTF8String(wire) : NULL;
	auto_py *canonical = wire_bytes ? shape_canonical(schema) : NULL;
	/* Strict: a lone surrogate has no bytes to be hashed. */
	auto_py *bytes = canonical ? PyUnicode_AsUTF8String(canonical) : NULL;
	auto_py *hash = bytes ? PyObject_CallFunctionObjArgs(kept.sha256, bytes, NULL) : NULL;
	auto_py *digest = hash ? PyObject_CallMethod(hash, "hexdigest", NULL) : NULL;
	auto_py *digest_bytes = digest ? PyUnicode_AsUTF8String(digest) : NULL;

	s->text = copy_text(wire_bytes);
	s->fingerprint = copy_text(digest_bytes);
	return s->text && s->fingerprint ? 0 : -1;
}

/* Compiles the parameters of inspect's signature. */
static int compile(struct schema *s, PyObject *signature, PyObject *globals,
	struct answer_error *error) {
	auto_py *mapping = PyObject_GetAttrString(signature, "parameters");
	auto_py *parameters = mapping ? PyMapping_Values(mapping) : NULL;
	auto_py *properties = PyDict_New();
	auto_py *required = PyList_New(0);
	auto_py *schema = NULL;
	Py_ssize_t n = parameters ? PyList_Size(parameters) : -1;

	if (n < 0 || !properties || !required)
		return -1;
	s->parameters = calloc((size_t)n + 1, sizeof(*s->parameters));
	if (!s->parameters) {
		PyErr_NoMemory();
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		int r = add_parameter(s, PyList_GetItem(parameters, i), globals, properties,
			required, error);

		if (r)
			return r;
	}
	schema = Py_BuildValue("{s:s,s:O}", "type", "object", "properties", properties);
	if (!schema ||
		(PyList_Size(required) && PyDict_SetItemString(schema, "required", required) < 0) ||
		PyDict_SetItemString(schema, "additionalProperties", Py_False) < 0)
		return -1;
	return write_texts(s, schema);
}

int schema_new(PyObject *callable, struct schema **ret_schema, struct answer_error *ret_error) {
	auto_schema *s = calloc(1, sizeof(*s));
	struct walk w = {
		.watch = s ? &s->watch : NULL,
		.was_interrupted = interrupt_is_set(NULL),
		.error = ret_error,
	};
	auto_py *globals = NULL;
	auto_py *signature = NULL;
	int r;

	if (!s) {
		PyErr_NoMemory();
		return -1;
	}
	r = walk(&w, callable);
	globals = w.globals;
	if (r)
		return r;
	signature = PyObject_CallFunctionObjArgs(kept.signature, callable, NULL);
	if (!signature)
		return refuse_raised(ret_error, "unsupported_signature",
			"Its signature cannot be told");
	r = compile(s, signature, globals, ret_error);
	if (r < 0)
		return refuse_raised(ret_error, "unsupported_signature",
			"Its signature has no JSON Schema");
	if (!r)
		*ret_schema = take(s);
	return r;
}

/* A complaint about the arguments: 1, or -1 with an exception. */
static int complain(const char *before, PyObject *name, const char *after, char **ret_message) {
	auto_py *bytes = py_utf8(name);
	auto_free char *text = NULL;

	if (!bytes)
		return -1;
	text = pyerr_bound(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes), 100, NULL);
	*ret_message = text ? answer_message("%s`%s`%s", before, text, after) : NULL;
	if (*ret_message)
		return 1;
	PyErr_NoMemory();
	return -1;
}

static bool is_parameter(const struct schema *s, PyObject *name) {
	for (size_t i = 0; i < s->n_parameters; i++)
		if (PyUnicode_Compare(s->parameters[i].name, name) == 0)
			return true;
	return false;
}

/*
 * The value for one argument; strings that hold JSON are taken as what they say. NULL as
 * fit_value().
 */
static PyObject *convert_argument(const struct parameter *p, PyObject *value, char **ret_message) {
	struct fit_place place = { .key = p->name };
	auto_py *decoded = NULL;

	if (PyUnicode_Check(value) && !shape_takes_string(p->shape)) {
		decoded = toolbox_decode(value);
		if (!decoded)
			PyErr_Clear();
		else if (decoded != Py_None && !PyUnicode_Check(decoded))
			value = decoded;
	}
	return fit_value(p->shape, value, &place, ret_message);
}

int schema_arguments(const struct schema *s, PyObject *arguments, PyObject **ret_keywords,
	char **ret_message) {
	auto_py *keywords = PyDict_New();
	borrowed PyObject *key, *value;
	Py_ssize_t at = 0;

	while (PyDict_Next(arguments, &at, &key, &value))
		if (!is_parameter(s, key))
			return complain("There is no parameter ", key, ".", ret_message);
	for (size_t i = 0; keywords && i < s->n_parameters; i++) {
		const struct parameter *p = &s->parameters[i];
		auto_py *converted = NULL;

		value = PyDict_GetItemWithError(arguments, p->name);
		if (!value && PyErr_Occurred())
			return -1;
		if (!value && p->is_required)
			return complain("", p->name, " is missing; it is required.", ret_message);
		if (!value)
			continue;
		converted = convert_argument(p, value, ret_message);
		if (!converted)
			return PyErr_Occurred() ? -1 : 1;
		if (PyDict_SetItem(keywords, p->name, converted) < 0)
			return -1;
	}
	if (!keywords)
		return -1;
	*ret_keywords = take(keywords);
	return 0;
}

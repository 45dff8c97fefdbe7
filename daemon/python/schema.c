/* SPDX-License-Identifier: MIT */
/*
 * Schemas
 *
 * A callable's layers (layers.c) say whether it can be a tool at all; inspect tells its signature,
 * and each parameter's annotation becomes a shape. The JSON Schema is built from these once, as a
 * Python dict, and written by Python's own encoder, which is what the fingerprint is defined by.
 * Python thread.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/python/fit.h"
#include "daemon/python/layers.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/schema.h"
#include "daemon/python/shape.h"
#include "daemon/python/toolbox.h"

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
	kept.sha256 = py_import_attr("hashlib", "sha256");
	if (!kept.encode || !kept.empty || !kept.signature || !kept.sha256)
		return -1;
	return layers_init() < 0 || shape_init() < 0 ? -1 : 0;
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

const char *schema_text(const struct schema *s) {
	return s->text;
}

const char *schema_fingerprint(const struct schema *s) {
	return s->fingerprint;
}

bool schema_is_fresh(const struct schema *s) {
	return watch_holds(&s->watch);
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
		return toolbox_refuse_raised(
			error, "unsupported_signature", "A default cannot be read");
	if (!plain)
		return refuse_parameter(error, p->name, "its default is no JSON value");
	converted = fit_value(p->shape, plain, &place, &complaint);
	if (!converted && PyErr_Occurred())
		return toolbox_refuse_raised(
			error, "unsupported_signature", "A default cannot be checked");
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
		return toolbox_refuse_raised(error, "unsupported_signature",
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
	auto_py *globals = NULL;
	auto_py *signature = NULL;
	int r;

	if (!s) {
		PyErr_NoMemory();
		return -1;
	}
	r = layers_walk(callable, &s->watch, &globals, ret_error);
	if (r)
		return r;
	signature = PyObject_CallFunctionObjArgs(kept.signature, callable, NULL);
	if (!signature)
		return toolbox_refuse_raised(ret_error, "unsupported_signature",
			"Its signature cannot be told");
	r = compile(s, signature, globals, ret_error);
	if (r < 0)
		return toolbox_refuse_raised(ret_error, "unsupported_signature",
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

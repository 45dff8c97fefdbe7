/* SPDX-License-Identifier: MIT */
/*
 * Shapes
 *
 * An annotation is looked at once, when a function is registered; from then on its tree of nodes
 * does the work of each call (fit.c) without typing. Python thread.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/answer.h"
#include "daemon/python/convert.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/shape.h"

enum { MAX_DEPTH = 50 };

/* JSON Schema's word for each kind that has one of its own. */
static const char *const type_words[] = {
	[SHAPE_STRING] = "string",
	[SHAPE_INTEGER] = "integer",
	[SHAPE_NUMBER] = "number",
	[SHAPE_BOOLEAN] = "boolean",
	[SHAPE_NULL] = "null",
	[SHAPE_LITERAL] = NULL,
	[SHAPE_LIST] = "array",
	[SHAPE_SET] = "array",
	[SHAPE_FROZENSET] = "array",
	[SHAPE_SEQUENCE] = "array",
	[SHAPE_TUPLE] = "array",
	[SHAPE_DICT] = "object",
	[SHAPE_UNION] = NULL,
};

/* Kept references: what user code does to the modules' names later does not reach us. */
static struct {
	PyObject *get_origin; /* typing.get_origin */
	PyObject *get_args;   /* typing.get_args */
	PyObject *union_type; /* typing.Union */
	PyObject *bar_union;  /* types.UnionType, A | B */
	PyObject *literal;    /* typing.Literal */
	PyObject *annotated;  /* typing.Annotated */
	PyObject *forward;    /* typing.ForwardRef */
	PyObject *encode;     /* of the canonical JSONEncoder */
} kept;

int shape_init(void) {
	auto_py *encoder_type = py_import_attr("json.encoder", "JSONEncoder");
	auto_py *args = PyTuple_New(0);
	auto_py *options = Py_BuildValue("{s:O,s:O,s:O,s:(ss)}", "ensure_ascii", Py_False,
		"allow_nan", Py_False, "sort_keys", Py_True, "separators", ",", ":");
	auto_py *encoder = encoder_type && args && options
		? PyObject_Call(encoder_type, args, options)
		: NULL;

	kept.encode = encoder ? PyObject_GetAttrString(encoder, "encode") : NULL;
	kept.get_origin = py_import_attr("typing", "get_origin");
	kept.get_args = py_import_attr("typing", "get_args");
	kept.union_type = py_import_attr("typing", "Union");
	kept.bar_union = py_import_attr("types", "UnionType");
	kept.literal = py_import_attr("typing", "Literal");
	kept.annotated = py_import_attr("typing", "Annotated");
	kept.forward = py_import_attr("typing", "ForwardRef");
	return kept.encode && kept.get_origin && kept.get_args && kept.union_type &&
			kept.bar_union && kept.literal && kept.annotated && kept.forward
		? 0
		: -1;
}

PyObject *shape_canonical(PyObject *value) {
	return PyObject_CallFunctionObjArgs(kept.encode, value, NULL);
}

struct shape *shape_free(struct shape *s) {
	if (!s)
		return NULL;
	Py_XDECREF(s->values);
	for (size_t i = 0; i < s->n_children; i++)
		shape_free(s->children[i]);
	free(s->children);
	free(s);
	return NULL;
}

static void shape_cleanup(struct shape **s) {
	shape_free(*s);
}

#define auto_shape __attribute__((cleanup(shape_cleanup))) struct shape

/* NULL with an exception. */
static struct shape *new_node(enum shape_kind kind, size_t n_children) {
	struct shape *s = calloc(1, sizeof(*s));

	if (s && n_children)
		s->children = calloc(n_children, sizeof(*s->children));
	if (!s || (n_children && !s->children)) {
		free(s);
		PyErr_NoMemory();
		return NULL;
	}
	s->kind = kind;
	return s;
}

/* One annotation while it is read. */
struct reader {
	PyObject *globals; /* strings are resolved there; NULL: they cannot be */
	struct watch *watch;
	char **ret_message;
	unsigned depth;
};

/* All that read: NULL with an exception, or without one and a complaint. */
static struct shape *read_annotation(struct reader *r, PyObject *annotation);

/* A complaint about an annotation; always NULL. */
static struct shape *unsupported(struct reader *r, PyObject *annotation, const char *why) {
	auto_free char *text = convert_repr(annotation, 200, NULL);

	if (!text)
		return NULL;
	*r->ret_message = answer_message("the annotation %s %s", text, why);
	if (!*r->ret_message)
		PyErr_NoMemory();
	return NULL;
}

/* Reads the first n of a tuple of arguments as children of `s`. */
static bool add_children(struct reader *r, struct shape *s, PyObject *args, size_t n) {
	for (size_t i = 0; i < n; i++) {
		struct shape *child = read_annotation(r, PyTuple_GetItem(args, (Py_ssize_t)i));

		if (!child)
			return false;
		s->children[s->n_children++] = child;
	}
	return true;
}

/* True when every value of the shape can be put into a set. */
static bool is_hashable(const struct shape *s) {
	if (s->kind == SHAPE_LIST || s->kind == SHAPE_SET || s->kind == SHAPE_DICT)
		return false;
	if (s->kind == SHAPE_FROZENSET)
		return true; /* its own items were checked */
	for (size_t i = 0; i < s->n_children; i++)
		if (!is_hashable(s->children[i]))
			return false;
	return true;
}

static bool is_json_scalar(PyObject *value) {
	return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
		PyUnicode_CheckExact(value) ||
		(PyFloat_CheckExact(value) && isfinite(PyFloat_AsDouble(value)));
}

static struct shape *read_literal(struct reader *r, PyObject *annotation, PyObject *args) {
	auto_shape *s = new_node(SHAPE_LITERAL, 0);

	if (!s)
		return NULL;
	for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++)
		if (!is_json_scalar(PyTuple_GetItem(args, i)))
			return unsupported(r, annotation,
				"has a value that is no JSON scalar (string, number, boolean, "
				"null)");
	Py_INCREF(args);
	s->values = args;
	return take(s);
}

/* list[T] and the like: `origin` with its arguments. */
static struct shape *read_generic(struct reader *r, PyObject *annotation, PyObject *origin,
	PyObject *args) {
	Py_ssize_t n = PyTuple_Size(args);
	auto_shape *s = NULL;
	enum shape_kind kind;

	if (origin == (PyObject *)&PyDict_Type && n == 2) {
		auto_py *values = PyTuple_GetSlice(args, 1, 2);

		if (PyTuple_GetItem(args, 0) != (PyObject *)&PyUnicode_Type)
			return unsupported(r, annotation, "must have str keys");
		s = values ? new_node(SHAPE_DICT, 1) : NULL;
		return s && add_children(r, s, values, 1) ? take(s) : NULL;
	}
	if (origin == (PyObject *)&PyTuple_Type && n) {
		bool is_open = n == 2 && PyTuple_GetItem(args, 1) == Py_Ellipsis;
		size_t n_children = is_open ? 1 : (size_t)n;

		s = new_node(is_open ? SHAPE_SEQUENCE : SHAPE_TUPLE, n_children);
		return s && add_children(r, s, args, n_children) ? take(s) : NULL;
	}

	if (origin == (PyObject *)&PyList_Type)
		kind = SHAPE_LIST;
	else if (origin == (PyObject *)&PySet_Type)
		kind = SHAPE_SET;
	else if (origin == (PyObject *)&PyFrozenSet_Type)
		kind = SHAPE_FROZENSET;
	else
		kind = SHAPE_UNION;
	if (kind == SHAPE_UNION || n != 1)
		return unsupported(r, annotation,
			"is not supported; use str, int, float, bool, None, list[T], set[T], "
			"frozenset[T], tuple[T, ...], tuple[A, B], dict[str, T], unions, Optional "
			"or Literal");
	s = new_node(kind, 1);
	if (!s || !add_children(r, s, args, 1))
		return NULL;
	if (kind != SHAPE_LIST && !is_hashable(s->children[0]))
		return unsupported(r, annotation, "has items that cannot be in a set");
	return take(s);
}

/* Notes which names of `globals` a compiled string uses. 0 or -1 with an exception. */
static int watch_names(struct watch *watch, PyObject *code, PyObject *globals) {
	auto_py *names = PyObject_GetAttrString(code, "co_names");

	if (!names)
		return -1;
	for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++)
		if (watch_item(watch, globals, PyTuple_GetItem(names, i)) < 0)
			return -1;
	return 0;
}

/* The annotation that a string stands for. */
static PyObject *evaluate(struct reader *r, PyObject *annotation, PyObject *string) {
	auto_py *source = py_utf8(string);
	auto_py *code = NULL;
	auto_py *locals = NULL;
	PyObject *value;

	if (!source)
		return NULL;
	if (!r->globals) {
		unsupported(r, annotation,
			"is a string, and its function has no globals to resolve it in");
		return NULL;
	}
	code = Py_CompileString(PyBytes_AsString(source), "<annotation>", Py_eval_input);
	locals = code ? PyDict_New() : NULL;
	value = locals && watch_names(r->watch, code, r->globals) == 0
		? PyEval_EvalCode(code, r->globals, locals)
		: NULL;
	if (!value && pyerr_clear_unless_interrupt() == 0)
		unsupported(r, annotation, "cannot be resolved in the function's globals");
	return value;
}

/* The string that an annotation is, or holds as a forward reference; NULL without an exception. */
static PyObject *as_string(PyObject *annotation) {
	if (PyUnicode_Check(annotation)) {
		Py_INCREF(annotation);
		return annotation;
	}
	if ((PyObject *)Py_TYPE(annotation) == kept.forward)
		return py_getattr_or_null(annotation, "__forward_arg__");
	return NULL;
}

/* What typing sees in an annotation that is no plain type. */
static struct shape *read_form(struct reader *r, PyObject *annotation) {
	auto_py *string = as_string(annotation);
	auto_py *origin = NULL;
	auto_py *args = NULL;

	if (string) {
		auto_py *value = evaluate(r, annotation, string);

		return value ? read_annotation(r, value) : NULL;
	}
	origin = PyErr_Occurred() ? NULL
				  : PyObject_CallFunctionObjArgs(kept.get_origin, annotation, NULL);
	args = origin ? PyObject_CallFunctionObjArgs(kept.get_args, annotation, NULL) : NULL;
	if (!args || !PyTuple_Check(args))
		return NULL;
	if (origin == kept.literal)
		return read_literal(r, annotation, args);
	if (origin == kept.annotated && PyTuple_Size(args))
		return read_annotation(r, PyTuple_GetItem(args, 0));
	if (origin == kept.union_type || origin == kept.bar_union) {
		size_t n = (size_t)PyTuple_Size(args);
		auto_shape *s = new_node(SHAPE_UNION, n);

		return s && add_children(r, s, args, n) ? take(s) : NULL;
	}
	return read_generic(r, annotation, origin, args);
}

static struct shape *read_annotation(struct reader *r, PyObject *annotation) {
	static const struct {
		PyTypeObject *type;
		enum shape_kind kind;
	} plain[] = {
		{ &PyUnicode_Type, SHAPE_STRING },
		{ &PyLong_Type, SHAPE_INTEGER },
		{ &PyFloat_Type, SHAPE_NUMBER },
		{ &PyBool_Type, SHAPE_BOOLEAN },
	};
	struct shape *s;

	if (annotation == Py_None || annotation == (PyObject *)Py_TYPE(Py_None))
		return new_node(SHAPE_NULL, 0);
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (annotation == (PyObject *)plain[i].type)
			return new_node(plain[i].kind, 0);

	/* Strings may stand for strings without end, and clients take no schema of any depth. */
	if (r->depth == MAX_DEPTH) {
		*r->ret_message = answer_message("the annotation is nested more than %d deep",
			MAX_DEPTH);
		return *r->ret_message ? NULL : (struct shape *)PyErr_NoMemory();
	}
	r->depth++;
	s = read_form(r, annotation);
	r->depth--;
	return s;
}

struct shape *shape_new(PyObject *annotation, PyObject *globals, struct watch *watch,
	char **ret_message) {
	struct reader r = { .globals = globals, .watch = watch, .ret_message = ret_message };

	return read_annotation(&r, annotation);
}

/* The word for a literal's type; 1 and 1.5 have different ones. */
static const char *literal_word(PyObject *value) {
	if (value == Py_None)
		return "null";
	if (PyBool_Check(value))
		return "boolean";
	if (PyLong_Check(value))
		return "integer";
	return PyFloat_Check(value) ? "number" : "string";
}

/* `enum` in declared order, with `type` when all values have one. */
static PyObject *literal_schema(const struct shape *s) {
	const char *word = literal_word(PyTuple_GetItem(s->values, 0));
	auto_py *list = PySequence_List(s->values);

	for (Py_ssize_t i = 1; word && i < PyTuple_Size(s->values); i++)
		if (strcmp(literal_word(PyTuple_GetItem(s->values, i)), word))
			word = NULL;
	if (!list)
		return NULL;
	return word ? Py_BuildValue("{s:s,s:O}", "type", word, "enum", list)
		    : Py_BuildValue("{s:O}", "enum", list);
}

/* The children's schemas as a new list. */
static PyObject *child_schemas(const struct shape *s) {
	auto_py *list = PyList_New(0);

	for (size_t i = 0; list && i < s->n_children; i++) {
		auto_py *schema = shape_schema(s->children[i]);

		if (!schema || PyList_Append(list, schema) < 0)
			return NULL;
	}
	return take(list);
}

/* `anyOf` sorted by canonical JSON, so that the order of declaration makes no other schema. */
static PyObject *union_schema(const struct shape *s) {
	auto_py *schemas = child_schemas(s);
	auto_py *rows = schemas ? PyList_New(0) : NULL;
	auto_py *sorted = PyList_New(0);

	for (Py_ssize_t i = 0; rows && i < PyList_Size(schemas); i++) {
		borrowed PyObject *schema = PyList_GetItem(schemas, i);
		auto_py *text = shape_canonical(schema);
		auto_py *row = text ? Py_BuildValue("(OnO)", text, i, schema) : NULL;

		if (!row || PyList_Append(rows, row) < 0)
			return NULL;
	}
	if (!rows || !sorted || PyList_Sort(rows) < 0)
		return NULL;
	for (Py_ssize_t i = 0; i < PyList_Size(rows); i++)
		if (PyList_Append(sorted, PyTuple_GetItem(PyList_GetItem(rows, i), 2)) < 0)
			return NULL;
	return Py_BuildValue("{s:O}", "anyOf", sorted);
}

PyObject *shape_schema(const struct shape *s) {
	const char *word = type_words[s->kind];
	auto_py *child = NULL;

	switch (s->kind) {
	case SHAPE_STRING:
	case SHAPE_INTEGER:
	case SHAPE_NUMBER:
	case SHAPE_BOOLEAN:
	case SHAPE_NULL:
		return Py_BuildValue("{s:s}", "type", word);
	case SHAPE_LITERAL:
		return literal_schema(s);
	case SHAPE_UNION:
		return union_schema(s);
	case SHAPE_TUPLE:
		child = child_schemas(s);
		return child ? Py_BuildValue("{s:s,s:O,s:O,s:n,s:n}", "type", word, "prefixItems",
				       child, "items", Py_False, "minItems",
				       (Py_ssize_t)s->n_children, "maxItems",
				       (Py_ssize_t)s->n_children)
			     : NULL;
	case SHAPE_LIST:
	case SHAPE_SEQUENCE:
	case SHAPE_SET:
	case SHAPE_FROZENSET:
	case SHAPE_DICT:
		break;
	}
	child = shape_schema(s->children[0]);
	if (!child)
		return NULL;
	if (s->kind == SHAPE_DICT)
		return Py_BuildValue("{s:s,s:O}", "type", word, "additionalProperties", child);
	if (s->kind == SHAPE_SET || s->kind == SHAPE_FROZENSET)
		return Py_BuildValue("{s:s,s:O,s:O}", "type", word, "items", child, "uniqueItems",
			Py_True);
	return Py_BuildValue("{s:s,s:O}", "type", word, "items", child);
}

bool shape_takes_string(const struct shape *s) {
	if (s->kind == SHAPE_STRING)
		return true;
	for (Py_ssize_t i = 0; s->kind == SHAPE_LITERAL && i < PyTuple_Size(s->values); i++)
		if (PyUnicode_Check(PyTuple_GetItem(s->values, i)))
			return true;
	for (size_t i = 0; s->kind == SHAPE_UNION && i < s->n_children; i++)
		if (shape_takes_string(s->children[i]))
			return true;
	return false;
}

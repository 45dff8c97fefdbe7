/* SPDX-License-Identifier: MIT */
/*
 * Looking Around
 *
 * list, search and inspect. What an object says of itself comes from user code: a documentation
 * that exits, a representation that hangs, a signature that is none. So each part is asked for by
 * itself, a part that raises is null (or, in inspect, the answer's error), and only an interrupt of
 * the call ends the whole. Kinds are told by real types and run no code. Python thread.
 */

#include <string.h>

#include "daemon/python/convert.h"
#include "daemon/python/discover.h"
#include "daemon/python/half.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/names.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/toolbox.h"

/* Kept references: what user code does to the modules' names later does not reach us. */
static struct {
	PyObject *signature;   /* inspect.signature */
	PyObject *getdoc;      /* inspect.getdoc */
	PyTypeObject *function; /* the three that make a `function` */
	PyTypeObject *method;
	PyTypeObject *builtin;
} kept;

int discover_init(void) {
	kept.signature = py_import_attr("inspect", "signature");
	kept.getdoc = py_import_attr("inspect", "getdoc");
	kept.function = (PyTypeObject *)py_import_attr("types", "FunctionType");
	kept.method = (PyTypeObject *)py_import_attr("types", "MethodType");
	kept.builtin = (PyTypeObject *)py_import_attr("types", "BuiltinFunctionType");
	return kept.signature && kept.getdoc && kept.function && kept.method && kept.builtin ? 0
											     : -1;
}

static const char *kind_of(PyObject *object) {
	PyTypeObject *type = Py_TYPE(object);

	if (PyType_IsSubtype(type, &PyModule_Type))
		return "module";
	if (PyType_Check(object))
		return "type";
	if (type == kept.function || type == kept.method || type == kept.builtin)
		return "function";
	return PyCallable_Check(object) ? "callable" : "variable";
}

/*
 * The parts. Each gives a new str, or NULL with what user code raised, or NULL without an exception
 * when the object has no such thing.
 */
static PyObject *look_at_signature(PyObject *object) {
	auto_py *signature = NULL;

	if (!PyCallable_Check(object))
		return NULL;
	signature = PyObject_CallFunctionObjArgs(kept.signature, object, NULL);
	if (signature)
		return PyObject_Str(signature);
	if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError))
		PyErr_Clear();
	return NULL;
}

static PyObject *look_at_documentation(PyObject *object) {
	auto_py *text = PyObject_CallFunctionObjArgs(kept.getdoc, object, NULL);

	return text && PyUnicode_Check(text) ? take(text) : NULL;
}

static PyObject *look_at_module(PyObject *object) {
	auto_py *name = py_getattr_or_null(object, "__module__");

	return name && PyUnicode_Check(name) ? take(name) : NULL;
}

/* The object's module, else that of its type. */
static PyObject *look_at_any_module(PyObject *object) {
	PyObject *name = look_at_module(object);

	return name || PyErr_Occurred() ? name : look_at_module((PyObject *)Py_TYPE(object));
}

/*
 * What a look_at function returned (taken) as a member of an item; null when there was nothing or
 * user code raised. 0; -1 with an exception: the call's interrupt, or no memory.
 */
static int add_look(struct buf *b, const char *name, PyObject *look, size_t limit, bool *ret_cut) {
	auto_py *text = look;

	*ret_cut = false;
	if (!text && PyErr_Occurred() && pyerr_clear_unless_interrupt() < 0)
		return -1;
	/*
	 * User code may have turned the interrupt into something else; the next look would hang
	 * again.
	 */
	if (interrupt_is_set(NULL)) {
		PyErr_SetNone(PyExc_KeyboardInterrupt);
		return -1;
	}
	buf_addf(b, ",\"%s\":", name);
	if (text)
		return convert_add_str(b, text, limit, ret_cut);
	buf_add_str(b, "null");
	return 0;
}

/* Which parts were cut, an object. */
static void add_cuts(struct buf *b, const char *const *names, const bool *cuts, size_t n) {
	buf_add_char(b, '{');
	for (size_t i = 0; i < n; i++)
		buf_addf(b, "%s\"%s\":%s", i ? "," : "", names[i], cuts[i] ? "true" : "false");
	buf_add_char(b, '}');
}

/* One callable of `list`. 0 or -1 as add_look(). */
static int add_function(struct buf *b, PyObject *name, PyObject *function) {
	static const char *const parts[] = { "signature", "module", "description" };
	size_t max_text = half.settings->max_text_chars;
	bool cuts[ARRAY_LEN(parts)];
	PyObject *signature;

	buf_add_str(b, "{\"name\":");
	if (convert_add_str(b, name, max_text, NULL) < 0)
		return -1;
	signature = look_at_signature(function);
	if (!signature && !PyErr_Occurred())
		signature = PyUnicode_FromString("(...)");
	if (add_look(b, parts[0], signature, max_text, &cuts[0]) < 0 ||
		add_look(b, parts[1], look_at_module(function), max_text, &cuts[1]) < 0 ||
		add_look(b, parts[2], look_at_documentation(function), max_text, &cuts[2]) < 0)
		return -1;
	buf_add_str(b, ",\"truncated\":");
	add_cuts(b, parts, cuts, ARRAY_LEN(parts));
	buf_add_char(b, '}');
	return 0;
}

/* One name of `search`. 0 or -1 as add_look(). */
static int add_result(struct buf *b, PyObject *name, PyObject *object) {
	static const char *const parts[] = { "qualified_type", "representation", "description" };
	size_t max_text = half.settings->max_text_chars;
	bool cuts[ARRAY_LEN(parts)];

	buf_add_str(b, "{\"name\":");
	if (convert_add_str(b, name, max_text, NULL) < 0)
		return -1;
	buf_addf(b, ",\"kind\":\"%s\"", kind_of(object));
	if (add_look(b, parts[0], py_qualified_type(object), max_text, &cuts[0]) < 0 ||
		add_look(b, parts[1], convert_repr_str(object), half.settings->max_repr_chars,
			&cuts[1]) < 0 ||
		add_look(b, parts[2], look_at_documentation(object), max_text, &cuts[2]) < 0)
		return -1;
	buf_add_str(b, ",\"truncated\":");
	add_cuts(b, parts, cuts, ARRAY_LEN(parts));
	buf_add_char(b, '}');
	return 0;
}

/* True when the name is to be in the answer; negative with an exception. */
typedef int choose_fn(PyObject *name, PyObject *object, void *ctx);
typedef int add_fn(struct buf *b, PyObject *name, PyObject *object);

/* Writes at most `limit` chosen items of the namespace into array member `member`. */
static int write_items(struct tool_run *run, const char *member, choose_fn *choose, void *ctx,
	add_fn *add, size_t limit) {
	struct buf *b = answer_member(run->answer, member, false);
	auto_py *names = names_visible();
	bool is_truncated = false;
	size_t n = 0;

	if (!names)
		return -1;
	buf_add_char(b, '[');
	for (Py_ssize_t i = 0; i < PyList_Size(names); i++) {
		borrowed PyObject *name = PyList_GetItem(names, i);
		auto_py *object = PyDict_GetItemWithError(ipshell_namespace(), name);
		int is_chosen;

		Py_XINCREF(object);
		if (!object) /* a look at another object removed it */
			continue;
		is_chosen = choose(name, object, ctx);
		if (is_chosen < 0)
			return -1;
		if (!is_chosen)
			continue;
		if (n == limit) {
			is_truncated = true;
			break;
		}
		if (n++)
			buf_add_char(b, ',');
		if (add(b, name, object) < 0)
			return -1;
	}
	buf_add_char(b, ']');
	answer_add_bool(run->answer, "truncated", is_truncated, !is_truncated);
	answer_add_literal(run->answer, "error", "null", true);
	return 0;
}

/* The answer of list and search when there is only an error. */
static int fail_items(struct tool_run *run, const char *member, const struct answer_error *error) {
	answer_add_literal(run->answer, member, "[]", true);
	answer_add_literal(run->answer, "truncated", "false", true);
	answer_set_error(run->answer, error, run->call->profile);
	return 0;
}

/* What both end with: an interrupt makes an error of the whole answer. */
static int finish_items(struct tool_run *run, const char *member, int r) {
	auto_answer_error struct answer_error error = { 0 };

	if (r < 0) {
		if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
			return -1;
		toolbox_take_error(run, "inspection_error", &error);
	} else if (!toolbox_timed_out(run, &error)) {
		return 0;
	}
	return fail_items(run, member, &error);
}

static int choose_callable(PyObject *name, PyObject *object, void *ctx) {
	return PyCallable_Check(object);
}

int discover_list(struct tool_run *run) {
	static const struct arg args[] = { { 0 } };
	auto_answer_error struct answer_error error = { 0 };
	borrowed PyObject *values[ARRAY_LEN(args)];
	int r;

	r = toolbox_arguments(run, args, values, &error);
	if (r < 0)
		return -1;
	if (r)
		return fail_items(run, "functions", &error);
	r = write_items(run, "functions", choose_callable, NULL, add_function,
		half.settings->max_results);
	return finish_items(run, "functions", r);
}

struct query {
	PyObject *text;
	bool is_exact;
};

static int choose_match(PyObject *name, PyObject *object, void *ctx) {
	const struct query *query = ctx;
	auto_py *folded = NULL;

	if (query->is_exact)
		return PyObject_RichCompareBool(name, query->text, Py_EQ);
	folded = PyObject_CallMethod(name, "casefold", NULL);
	return folded ? PyUnicode_Contains(folded, query->text) : -1;
}

/* The limit that the caller named, clamped. */
static size_t search_limit(PyObject *value) {
	size_t most = half.settings->max_results;
	long long limit = 50;
	int overflow = 0;

	if (value)
		limit = PyLong_AsLongLongAndOverflow(value, &overflow);
	if (overflow > 0)
		return most;
	if (overflow < 0 || limit < 1)
		return 1;
	return (unsigned long long)limit < most ? (size_t)limit : most;
}

int discover_search(struct tool_run *run) {
	static const struct arg args[] = {
		{ "query", ARG_STRING, true, "invalid_query" },
		{ "exact", ARG_BOOL },
		{ "limit", ARG_INTEGER },
		{ 0 },
	};
	auto_answer_error struct answer_error error = { 0 };
	borrowed PyObject *values[ARRAY_LEN(args)];
	auto_py *folded = NULL;
	struct query query = { 0 };
	int r;

	r = toolbox_arguments(run, args, values, &error);
	if (r < 0)
		return -1;
	if (!r && (size_t)PyUnicode_GetLength(values[0]) > half.settings->max_text_chars) {
		toolbox_refuse(&error, "invalid_query", "A query has at most %zu characters.",
			half.settings->max_text_chars);
		r = 1;
	}
	if (r)
		return fail_items(run, "results", &error);

	query.text = values[0];
	query.is_exact = values[1] == Py_True;
	if (!query.is_exact) {
		folded = PyObject_CallMethod(query.text, "casefold", NULL);
		if (!folded)
			return -1;
		query.text = folded;
	}
	r = write_items(run, "results", choose_match, &query, add_result, search_limit(values[2]));
	return finish_items(run, "results", r);
}

/* inspect's parts, in the order in which they are looked at. */
static const struct look {
	const char *name;
	PyObject *(*look)(PyObject *object);
	const char *code;
} looks[] = {
	{ "signature", look_at_signature, "inspection_error" },
	{ "module", look_at_any_module, "inspection_error" },
	{ "documentation", look_at_documentation, "inspection_error" },
	{ "representation", convert_repr_str, "representation_error" },
};

/* A part as an answer member of its own. */
static int add_member(struct tool_run *run, const char *name, PyObject *text, size_t limit,
	bool *ret_cut) {
	*ret_cut = false;
	if (text)
		return convert_add_str(answer_member(run->answer, name, false), text, limit,
			ret_cut);
	answer_add_literal(run->answer, name, "null", true);
	return 0;
}

/*
 * The answer of inspect; `object` NULL: nothing is known. `error` gets the first part's that fails.
 */
static int write_inspection(struct tool_run *run, PyObject *name, PyObject *object,
	struct answer_error *error) {
	static const char *const cut_names[] = { "qualified_type", "signature", "module",
		"documentation", "representation" };
	size_t max_text = half.settings->max_text_chars;
	auto_py *type = object ? py_qualified_type(object) : NULL;
	bool cuts[ARRAY_LEN(cut_names)];
	bool is_cut;

	answer_add_bool(run->answer, "ok", false, false);
	answer_add_literal(run->answer, "name", "\"\"", true);
	if (name && add_member(run, "name", name, max_text, &is_cut) < 0)
		return -1;
	if (object)
		buf_addf(answer_member(run->answer, "kind", false), "\"%s\"", kind_of(object));
	else
		answer_add_literal(run->answer, "kind", "null", true);
	if (add_member(run, "qualified_type", type, max_text, &cuts[0]) < 0)
		return -1;
	if (object)
		answer_add_bool(run->answer, "callable", PyCallable_Check(object), false);
	else
		answer_add_literal(run->answer, "callable", "null", true);

	for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
		bool is_repr = i == ARRAY_LEN(looks) - 1;
		auto_py *text = NULL;

		/* After an interrupt the next look would hang again. */
		if (object && !interrupt_is_set(NULL))
			text = looks[i].look(object);
		if (PyErr_Occurred() && error->code)
			PyErr_Clear();
		else if (PyErr_Occurred())
			toolbox_take_error(run, looks[i].code, error);
		if (add_member(run, looks[i].name, text,
			    is_repr ? half.settings->max_repr_chars : max_text, &cuts[i + 1]) < 0)
			return -1;
	}

	add_cuts(answer_member(run->answer, "truncated", false), cut_names, cuts,
		ARRAY_LEN(cut_names));
	if (!error->code)
		toolbox_timed_out(run, error);
	if (error->code) {
		answer_set_error(run->answer, error, run->call->profile);
		return 0;
	}
	answer_add_bool(run->answer, "ok", true, false);
	answer_add_literal(run->answer, "error", "null", true);
	return 0;
}

int discover_inspect(struct tool_run *run) {
	static const struct arg args[] = {
		{ "name", ARG_STRING, true, "invalid_name" },
		{ 0 },
	};
	auto_answer_error struct answer_error error = { 0 };
	borrowed PyObject *values[ARRAY_LEN(args)] = { NULL };
	auto_py *object = NULL;
	const char *code;
	int r;

	r = toolbox_arguments(run, args, values, &error);
	if (r < 0)
		return -1;
	if (!r && !names_is_trimmed(values[0])) {
		toolbox_refuse(&error, "invalid_name",
			"A name has text and no blanks around it: `df` or `pd.DataFrame.head`.");
	} else if (!r) {
		object = names_resolve(values[0], &code);
		if (!object && PyErr_Occurred())
			toolbox_take_error(run, code, &error);
		else if (!object)
			toolbox_refuse_name(&error, values[0]);
	}
	return write_inspection(run, values[0], object, &error);
}

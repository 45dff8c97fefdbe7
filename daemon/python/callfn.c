/* SPDX-License-Identifier: MIT */
/*
 * Calling a Function
 *
 * Resolve, check that it can be called, bind, call, turn the value into JSON. Binding comes first
 * so that a wrong argument is told from a TypeError that the function itself raises. inspect does
 * it for whatever has a signature, in tens of microseconds; a plain function's code object tells in
 * one whether the arguments fit, and only when they do not is inspect asked, for its words. Python
 * thread.
 */

#include <string.h>

#include "daemon/python/callfn.h"
#include "daemon/python/convert.h"
#include "daemon/python/half.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/loop.h"
#include "daemon/python/names.h"
#include "daemon/python/pyerr.h"

/* Kept references: what user code does to the modules' names later does not reach us. */
static struct {
	PyObject *signature;       /* inspect.signature */
	PyTypeObject *function;    /* types.FunctionType */
	PyTypeObject *method;      /* types.MethodType */
	PyTypeObject *coroutine;   /* types.CoroutineType */
	PyObject *no_arguments;    /* () */
} kept;

static PyTypeObject *import_type(const char *name) {
	return (PyTypeObject *)py_import_attr("types", name);
}

int callfn_init(void) {
	kept.signature = py_import_attr("inspect", "signature");
	kept.function = import_type("FunctionType");
	kept.method = import_type("MethodType");
	kept.coroutine = import_type("CoroutineType");
	kept.no_arguments = PyTuple_New(0);
	return kept.signature && kept.function && kept.method && kept.coroutine &&
			kept.no_arguments
		? 0
		: -1;
}

static long get_long(PyObject *object, const char *name) {
	auto_py *value = PyObject_GetAttrString(object, name);

	return value ? PyLong_AsLong(value) : -1;
}

/*
 * True when a plain function takes exactly these keywords; false when it does not, or when that
 * cannot be told here. `n_bound` parameters are taken already (self of a method).
 */
static bool fits_function(PyObject *function, PyObject *keywords, Py_ssize_t n_bound) {
	enum { TAKES_ANY_KEYWORD = 0x08 }; /* CO_VARKEYWORDS */
	auto_py *attributes = PyObject_GetAttrString(function, "__dict__");
	auto_py *code = PyObject_GetAttrString(function, "__code__");
	auto_py *defaults = PyObject_GetAttrString(function, "__defaults__");
	auto_py *named_defaults = PyObject_GetAttrString(function, "__kwdefaults__");
	auto_py *names = code ? PyObject_GetAttrString(code, "co_varnames") : NULL;
	Py_ssize_t n_places, n_names, n_defaults, n_given = 0;

	if (!attributes || !defaults || !named_defaults || !names)
		return false;
	/* __wrapped__ and __signature__ live there. */
	if (PyDict_Size(attributes) || get_long(code, "co_posonlyargcount") ||
		get_long(code, "co_flags") & TAKES_ANY_KEYWORD)
		return false;

	n_places = get_long(code, "co_argcount");
	n_names = n_places + get_long(code, "co_kwonlyargcount");
	n_defaults = PyTuple_Check(defaults) ? PyTuple_Size(defaults) : 0;
	for (Py_ssize_t i = n_bound; i < n_names; i++) {
		borrowed PyObject *name = PyTuple_GetItem(names, i);
		bool has_default = i < n_places
			? i >= n_places - n_defaults
			: PyDict_Check(named_defaults) &&
				PyDict_GetItemWithError(named_defaults, name);

		if (PyDict_GetItemWithError(keywords, name))
			n_given++;
		else if (!has_default)
			return false;
	}
	return n_given == PyDict_Size(keywords);
}

static bool fits_plainly(PyObject *callable, PyObject *keywords) {
	bool fits;

	if (Py_TYPE(callable) == kept.function) {
		fits = fits_function(callable, keywords, 0);
	} else if (Py_TYPE(callable) == kept.method) {
		auto_py *function = PyObject_GetAttrString(callable, "__func__");

		fits = function && Py_TYPE(function) == kept.function &&
			fits_function(function, keywords, 1);
	} else {
		return false;
	}
	if (PyErr_Occurred()) {
		PyErr_Clear();
		return false;
	}
	return fits;
}

/*
 * Binds through inspect. 0 and new references to the call's arguments, or -1 with the exception
 * that says why not.
 */
static int bind(PyObject *callable, PyObject *keywords, PyObject **ret_args,
	PyObject **ret_keywords) {
	auto_py *signature = PyObject_CallFunctionObjArgs(kept.signature, callable, NULL);
	auto_py *bind = signature ? PyObject_GetAttrString(signature, "bind") : NULL;
	auto_py *bound = bind ? PyObject_Call(bind, kept.no_arguments, keywords) : NULL;
	auto_py *args = bound ? PyObject_GetAttrString(bound, "args") : NULL;
	auto_py *named = args ? PyObject_GetAttrString(bound, "kwargs") : NULL;

	if (!named)
		return -1;
	if (!PyTuple_Check(args) || !PyDict_Check(named)) {
		PyErr_SetString(PyExc_TypeError, "the callable's signature binds to no arguments");
		return -1;
	}
	*ret_args = take(args);
	*ret_keywords = take(named);
	return 0;
}

/* An error of binding: inspect's own frames would only be in the way. */
static void take_binding_error(struct tool_run *run, struct answer_error *ret_error) {
	bool is_inspect = PyErr_ExceptionMatches(PyExc_TypeError) ||
		PyErr_ExceptionMatches(PyExc_ValueError);

	toolbox_take_error(run, "argument_binding_error", ret_error);
	if (!is_inspect)
		return;
	free(take(ret_error->traceback));
	free(take(ret_error->filename));
	ret_error->line = ret_error->column = 0;
	ret_error->traceback_truncated = ret_error->location_truncated = false;
}

/*
 * The value of a coroutine, run on the shell's loop to its end; other values as they are. Steals.
 */
static PyObject *finish(PyObject *value) {
	auto_py *coroutine = value;
	auto_py *runner = NULL;
	PyObject *result;

	if (!value || Py_TYPE(value) != kept.coroutine)
		return take(coroutine);
	runner = PyObject_GetAttrString(ipshell_get(), "loop_runner");
	result = runner ? PyObject_CallFunctionObjArgs(runner, coroutine, NULL) : NULL;
	if (!result && interrupt_is_set(NULL)) {
		PyObject *type, *exception, *traceback;

		/* Its task is still on the loop; it ends before the call does. */
		PyErr_Fetch(&type, &exception, &traceback);
		loop_end_task(coroutine);
		PyErr_Restore(type, exception, traceback);
	}
	return result;
}

/* `ok` and `name`, the answer's first members. 0, or -1 with an exception. */
static int begin(struct tool_run *run, PyObject *name, bool is_ok, bool *ret_cut) {
	*ret_cut = false;
	answer_add_bool(run->answer, "ok", is_ok, false);
	if (name)
		return convert_add_str(answer_member(run->answer, "name", false), name,
			half.settings->max_text_chars, ret_cut);
	answer_add_literal(run->answer, "name", "\"\"", true);
	return 0;
}

int callfn_fail(struct tool_run *run, PyObject *name, const struct answer_error *error) {
	bool is_cut;

	if (begin(run, name, false, &is_cut) < 0)
		return -1;
	answer_add_literal(run->answer, "result", "null", true);
	answer_set_error(run->answer, error, run->call->profile);
	answer_add_literal(run->answer, "truncated", "false", true);
	answer_add_bool(run->answer, "name_truncated", is_cut, !is_cut);
	return 0;
}

/* Why a value has no JSON form: says what it is. 0, or -1 with an exception. */
static int refuse_value(struct tool_run *run, PyObject *value, struct answer_error *ret_error) {
	auto_py *type = py_qualified_type(value);
	auto_py *bytes = type ? py_utf8(type) : NULL;
	auto_free char *text = NULL;

	if (!bytes)
		return -1;
	text = convert_repr(value, half.settings->max_repr_chars, NULL);
	if (!text) {
		if (PyErr_ExceptionMatches(PyExc_MemoryError))
			return -1;
		toolbox_take_error(run, "callable_error", ret_error);
		return 0;
	}
	toolbox_refuse(ret_error, "result_not_json", "The value, a %s, has no JSON form: %s",
		PyBytes_AsString(bytes), text);
	return 0;
}

/* The answer for a value. A failure on the way rewrites the members that were begun. */
static int succeed(struct tool_run *run, PyObject *name, PyObject *value) {
	auto_answer_error struct answer_error error = { 0 };
	struct convert_flags flags = { 0 };
	struct buf *json;
	bool is_cut;

	if (begin(run, name, true, &is_cut) < 0)
		return -1;
	json = answer_member(run->answer, "result", false);
	switch (convert_to_json(value, json, &flags)) {
	case CONVERT_OK:
		break;
	case CONVERT_NOT_JSON:
		if (refuse_value(run, value, &error) < 0)
			return -1;
		break;
	case CONVERT_TOO_LARGE:
		toolbox_refuse(&error, "reply_too_large",
			"The value's JSON text exceeds %zu bytes; return a part or a summary of "
			"it, or raise IPYTHON_MCP_MAX_REPLY_BYTES.",
			half.settings->max_reply_bytes);
		break;
	case CONVERT_INTERRUPTED:
		toolbox_take_error(run, "callable_error", &error);
		break;
	case CONVERT_NO_MEMORY:
		PyErr_NoMemory();
		return -1;
	}
	if (error.code || toolbox_timed_out(run, &error))
		return callfn_fail(run, name, &error);

	if (run->call->profile == PROFILE_TEXT)
		buf_add(&run->answer->text, json->data, json->len);
	answer_add_literal(run->answer, "error", "null", true);
	answer_add_bool(run->answer, "truncated", flags.is_cut, !flags.is_cut);
	answer_add_bool(run->answer, "name_truncated", is_cut, !is_cut);
	run->answer->has_wide_integer = flags.has_wide_integer;
	return 0;
}

int callfn_call(struct tool_run *run, PyObject *name, PyObject *callable, PyObject *keywords) {
	auto_answer_error struct answer_error error = { 0 };
	auto_py *args = NULL;
	auto_py *named = NULL;
	auto_py *value = NULL;

	if (!PyCallable_Check(callable)) {
		auto_py *type = py_qualified_type(callable);
		auto_py *bytes = type ? py_utf8(type) : NULL;

		auto_buf struct buf quoted = BUF_NULL;

		if (!bytes || convert_add_str(&quoted, name, 200, NULL) < 0)
			return -1;
		toolbox_refuse(&error, "not_callable", "%.*s is a %s, which cannot be called.",
			(int)quoted.len, quoted.data, PyBytes_AsString(bytes));
		return callfn_fail(run, name, &error);
	}
	if (!fits_plainly(callable, keywords)) {
		if (bind(callable, keywords, &args, &named) < 0) {
			take_binding_error(run, &error);
			return callfn_fail(run, name, &error);
		}
		keywords = named;
	}
	interrupt_renew();
	value = finish(PyObject_Call(callable, args ? args : kept.no_arguments, keywords));
	if (!value) {
		toolbox_take_error(run, "callable_error", &error);
		return callfn_fail(run, name, &error);
	}
	return succeed(run, name, value);
}

int callfn_run(struct tool_run *run) {
	static const struct arg args[] = {
		{ "name", ARG_STRING, true, "invalid_name" },
		{ "arguments", ARG_OBJECT, true },
		{ "timeout", ARG_NUMBER },
		{ "progress_interval", ARG_NUMBER },
		{ 0 },
	};
	auto_answer_error struct answer_error error = { 0 };
	borrowed PyObject *values[ARRAY_LEN(args)] = { NULL };
	auto_py *callable = NULL;
	const char *code;
	int r;

	r = toolbox_arguments(run, args, values, &error);
	if (r < 0)
		return -1;
	if (r)
		return callfn_fail(run, values[0], &error);
	if (!names_is_trimmed(values[0])) {
		toolbox_refuse(&error, "invalid_name",
			"A name has text and no blanks around it: `f` or `module.f`.");
		return callfn_fail(run, values[0], &error);
	}
	callable = names_resolve(values[0], &code);
	if (!callable) {
		if (PyErr_Occurred())
			toolbox_take_error(run, code, &error);
		else
			toolbox_refuse_name(&error, values[0]);
		return callfn_fail(run, values[0], &error);
	}
	return callfn_call(run, values[0], callable, values[1]);
}

/* SPDX-License-Identifier: MIT */
/*
 * Toolbox
 *
 * One row for each stable tool, and what their handlers share: the check of arguments, and errors
 * that tell a deadline from what user code raised. Python thread.
 */

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/jscan.h"
#include "common/wire.h"
#include "daemon/python/callfn.h"
#include "daemon/python/convert.h"
#include "daemon/python/discover.h"
#include "daemon/python/dyntool.h"
#include "daemon/python/half.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/names.h"
#include "daemon/python/namespace.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/reload.h"
#include "daemon/python/toolbox.h"

static const struct {
	const char *name;
	tool_handler *handler;
} rows[] = {
	{ "execute", execute_run },
	{ "call_function", callfn_run },
	{ "list", discover_list },
	{ "search", discover_search },
	{ "inspect", discover_inspect },
	{ "remove", namespace_remove },
	{ "reset", namespace_reset },
	{ "reload", reload_run },
	{ "register_tool", dyntool_register },
	{ "unregister_tool", dyntool_unregister },
};

static const char *const kind_names[] = {
	[ARG_STRING] = "a string",
	[ARG_STRING_OR_NULL] = "a string or null",
	[ARG_BOOL] = "a boolean",
	[ARG_INTEGER] = "an integer",
	[ARG_NUMBER] = "a finite number",
	[ARG_OBJECT] = "an object",
	[ARG_ARRAY] = "an array",
};

int toolbox_init(void) {
	if (names_init() < 0 || convert_init() < 0 || callfn_init() < 0 || discover_init() < 0 ||
		namespace_init() < 0 || reload_init() < 0 || dyntool_init() < 0)
		return -1;
	return 0;
}

tool_handler *toolbox_find(const char *name) {
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!strcmp(name, rows[i].name))
			return rows[i].handler;
	return dyntool_run;
}

void toolbox_refuse(struct answer_error *ret_error, const char *code, const char *format, ...) {
	enum { OUR_WORDS = 500 }; /* they are never cut, but what they quote may be long */
	size_t limit = half.settings->max_text_chars;
	auto_free char *message = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	va_end(args);
	*ret_error = (struct answer_error){ .code = code };
	if (message)
		ret_error->message = pyerr_bound(message, strlen(message),
			limit > OUR_WORDS ? limit : OUR_WORDS, &ret_error->message_truncated);
}

int toolbox_refuse_raised(struct answer_error *ret_error, const char *code, const char *what) {
	auto_answer_error struct answer_error raised = { 0 };

	if (PyErr_ExceptionMatches(PyExc_MemoryError))
		return -1;
	pyerr_take(code, &raised);
	toolbox_refuse(ret_error, code, "%s: %s: %s", what,
		raised.error_type ? raised.error_type : "error",
		raised.message ? raised.message : "");
	return 1;
}

void toolbox_refuse_name(struct answer_error *ret_error, PyObject *name) {
	auto_buf struct buf text = BUF_NULL;

	/* As a JSON string: a name may hold anything, a message is one line. */
	if (convert_add_str(&text, name, 200, NULL) < 0)
		PyErr_Clear();
	toolbox_refuse(ret_error, "name_not_found",
		"There is no %.*s in the namespace; a dotted name is followed by attribute access "
		"alone.",
		(int)text.len, text.len ? text.data : "");
}

bool toolbox_timed_out(struct tool_run *run, struct answer_error *ret_error) {
	enum shell_reason reason;

	if (!interrupt_is_set(&reason) || reason != SHELL_TIMEOUT)
		return false;
	toolbox_refuse(ret_error, "timeout", "The call was interrupted at its limit of %g s.",
		run->call->timeout_s);
	return true;
}

void toolbox_take_error(struct tool_run *run, const char *code, struct answer_error *ret_error) {
	auto_answer_error struct answer_error timeout = { 0 };

	pyerr_take(code, ret_error);
	if (!toolbox_timed_out(run, &timeout))
		return;
	/* Where the code was when it was stopped stays; what it raised then says nothing. */
	free(ret_error->message);
	ret_error->code = timeout.code;
	ret_error->message = take(timeout.message);
	ret_error->message_truncated = false;
}

static bool is_kind(PyObject *value, enum arg_kind kind) {
	switch (kind) {
	case ARG_STRING:
		return PyUnicode_Check(value);
	case ARG_STRING_OR_NULL:
		return PyUnicode_Check(value) || value == Py_None;
	case ARG_BOOL:
		return PyBool_Check(value);
	case ARG_INTEGER:
		return (PyLong_Check(value) && !PyBool_Check(value)) ||
			(PyFloat_Check(value) &&
				PyFloat_AsDouble(value) == trunc(PyFloat_AsDouble(value)));
	case ARG_NUMBER:
		return (PyLong_Check(value) && !PyBool_Check(value)) ||
			(PyFloat_Check(value) && isfinite(PyFloat_AsDouble(value)));
	case ARG_OBJECT:
		return PyDict_Check(value);
	case ARG_ARRAY:
		return PyList_Check(value);
	}
	return false;
}

/* What a JSON value is, for complaints. */
static const char *describe(PyObject *value) {
	if (value == Py_None)
		return "null";
	if (PyBool_Check(value))
		return "a boolean";
	if (PyLong_Check(value) || PyFloat_Check(value))
		return "a number";
	if (PyUnicode_Check(value))
		return "a string";
	return PyList_Check(value) ? "an array" : "an object";
}

PyObject *toolbox_decode(PyObject *string) {
	auto_py *bytes = py_utf8(string);
	auto_free char *text = NULL;
	char *at;
	Py_ssize_t len;

	if (!bytes || PyBytes_AsStringAndSize(bytes, &at, &len) < 0)
		return NULL;
	/* A copy: the check mends surrogates in place. */
	text = malloc((size_t)len + 1);
	if (!text)
		return PyErr_NoMemory();
	memcpy(text, at, (size_t)len + 1);
	if (jscan_check(text, (size_t)len, WIRE_MAX_DEPTH, NULL) != JSCAN_OK)
		return NULL;
	return convert_from_json(text, (size_t)len);
}

/* Puts `value` in the place of an argument; it is borrowed from there. */
static PyObject *replace(PyObject *arguments, const char *name, PyObject *value) {
	return PyDict_SetItemString(arguments, name, value) < 0 ? NULL : value;
}

/*
 * Borrowed from the arguments; NULL with an exception, or without one when it is of another kind.
 */
static PyObject *take_argument(PyObject *arguments, const struct arg *arg, PyObject *value) {
	auto_py *decoded = NULL;

	if (!is_kind(value, arg->kind) && PyUnicode_Check(value)) {
		decoded = toolbox_decode(value);
		if (!decoded)
			return NULL;
		value = decoded;
	}
	if (!is_kind(value, arg->kind))
		return NULL;
	if (arg->kind == ARG_INTEGER && PyFloat_Check(value)) {
		auto_py *whole = PyNumber_Long(value); /* 5.0 is an integer to JSON Schema */

		return whole ? replace(arguments, arg->name, whole) : NULL;
	}
	return decoded ? replace(arguments, arg->name, value) : value;
}

/* The first argument that no row names, as owned UTF-8; NULL when there is none. */
static char *find_unknown(PyObject *arguments, const struct arg *args) {
	borrowed PyObject *key, *value;
	Py_ssize_t at = 0;

	while (PyDict_Next(arguments, &at, &key, &value)) {
		const struct arg *arg = args;

		while (arg->name && PyUnicode_CompareWithASCIIString(key, arg->name))
			arg++;
		if (!arg->name) {
			auto_py *name = py_utf8(key);

			return name ? pyerr_bound(PyBytes_AsString(name),
					      (size_t)PyBytes_Size(name), 100, NULL)
				    : NULL;
		}
	}
	return NULL;
}

int toolbox_arguments(struct tool_run *run, const struct arg *args, PyObject **values,
	struct answer_error *ret_error) {
	auto_free char *unknown = NULL;
	auto_buf struct buf known = BUF_NULL;

	for (const struct arg *arg = args; arg->name; arg++) {
		const char *code = arg->code ? arg->code : "invalid_arguments";
		borrowed PyObject *given = PyDict_GetItemString(run->arguments, arg->name);

		values[arg - args] = NULL;
		if (!given) {
			if (!arg->is_required)
				continue;
			toolbox_refuse(ret_error, code,
				"The argument `%s` is missing: %s is required.", arg->name,
				kind_names[arg->kind]);
			return 1;
		}
		values[arg - args] = take_argument(run->arguments, arg, given);
		if (values[arg - args])
			continue;
		if (PyErr_ExceptionMatches(PyExc_MemoryError))
			return -1;
		PyErr_Clear();
		toolbox_refuse(ret_error, code, "The argument `%s` must be %s, not %s.", arg->name,
			kind_names[arg->kind], describe(given));
		return 1;
	}

	unknown = find_unknown(run->arguments, args);
	if (!unknown)
		return PyErr_Occurred() ? -1 : 0;
	for (const struct arg *arg = args; arg->name; arg++)
		buf_addf(&known, "%s`%s`", arg == args ? "" : ", ", arg->name);
	if (known.len)
		toolbox_refuse(ret_error, "invalid_arguments",
			"There is no argument `%s`; the tool takes %.*s.", unknown, (int)known.len,
			known.data);
	else
		toolbox_refuse(ret_error, "invalid_arguments",
			"There is no argument `%s`; the tool takes none.", unknown);
	return 1;
}

bool toolbox_check_strings(PyObject *array, const struct string_rule *rule,
	struct answer_error *ret_error) {
	size_t max_items = half.settings->max_results;
	Py_ssize_t len = PyList_Size(array);

	if ((size_t)len > max_items) {
		toolbox_refuse(ret_error, rule->code,
			"`%s` holds %zd entries; at most %zu are taken at once.", rule->argument,
			len, max_items);
		return false;
	}
	for (Py_ssize_t i = 0; i < len; i++) {
		borrowed PyObject *item = PyList_GetItem(array, i);

		if (!PyUnicode_Check(item) || (!rule->takes_empty && !PyUnicode_GetLength(item))) {
			toolbox_refuse(ret_error, rule->code, "`%s[%zd]` must be a %sstring.",
				rule->argument, i, rule->takes_empty ? "" : "non-empty ");
			return false;
		}
		if ((size_t)PyUnicode_GetLength(item) > rule->max_chars) {
			toolbox_refuse(ret_error, rule->code,
				"`%s[%zd]` is longer than %zu characters.", rule->argument, i,
				rule->max_chars);
			return false;
		}
	}
	return true;
}

int toolbox_add_strings(struct tool_run *run, const char *member, PyObject *strings) {
	Py_ssize_t len = PyList_Size(strings);
	struct buf *b = answer_member(run->answer, member, !len);

	buf_add_char(b, '[');
	for (Py_ssize_t i = 0; i < len; i++) {
		if (i)
			buf_add_char(b, ',');
		if (convert_add_str(b, PyList_GetItem(strings, i), half.settings->max_text_chars,
			    NULL) < 0)
			return -1;
	}
	buf_add_char(b, ']');
	return 0;
}

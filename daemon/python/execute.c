/* SPDX-License-Identifier: MIT */
/*
 * execute
 *
 * One cell through IPython's own run_cell, and what came of it as an answer. The members are
 * written in the contract's order; stdout, stderr and `truncated` are the event half's, which knows
 * the pipes. The count is kept here: IPython's own goes back on `%reset` and jumps on some errors.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/python/capture.h"
#include "daemon/python/convert.h"
#include "daemon/python/half.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/loop.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/toolbox.h"
#include "daemon/python/worker.h"

/* What became of the cell. */
struct outcome {
	PyObject *value;     /* of a trailing expression; NULL: none */
	PyObject *exception; /* NULL: it ended well */
	const char *code;    /* of the error */
	long count;          /* 0: a blank cell */
};

static void outcome_deinit(struct outcome *o) {
	Py_CLEAR(o->value);
	Py_CLEAR(o->exception);
}

/*
 * The `code` argument: 0, 1 and a refusal when it is missing, blank or no string or when there are
 * arguments that the tool does not have, -1 with an exception. Borrowed from the arguments.
 */
static int find_code(struct tool_run *run, PyObject **ret_code, struct answer_error *ret_error) {
	static const struct arg args[] = {
		{ "code", ARG_STRING, true, "invalid_code" },
		{ "timeout", ARG_NUMBER },
		{ "progress_interval", ARG_NUMBER },
		{ 0 },
	};
	PyObject *values[ARRAY_LEN(args)] = { NULL };
	auto_py *stripped = NULL;
	int r = toolbox_arguments(run, args, values, ret_error);

	if (r)
		return r;
	stripped = PyObject_CallMethod(values[0], "strip", NULL);
	if (!stripped)
		return -1;
	if (PyUnicode_GetLength(stripped) == 0) {
		toolbox_refuse(
			ret_error, "invalid_code", "`code` is blank; there is nothing to run.");
		return 1;
	}
	*ret_code = values[0];
	return 0;
}

static long get_count(PyObject *shell) {
	auto_py *count = PyObject_GetAttrString(shell, "execution_count");
	long n = count ? PyLong_AsLong(count) : 0;

	PyErr_Clear();
	return n;
}

/* May fail when the call is interrupted just then; the next cell tries again. */
static void set_count(PyObject *shell, long n) {
	auto_py *count = get_count(shell) == n ? NULL : PyLong_FromLong(n);

	if (count && PyObject_SetAttrString(shell, "execution_count", count) < 0)
		PyErr_Clear();
}

/*
 * The number of the cell that begins: never one that was used before, whatever became of IPython's.
 */
static long begin_count(PyObject *shell) {
	static long last;
	long n = get_count(shell);

	last = n > last ? n : last + 1;
	set_count(shell, last);
	return last;
}

/* Empties a container of IPython's that would keep a piece of every cell for ever. */
static void clear_container(PyObject *owner, const char *name) {
	auto_py *container = owner ? py_getattr_or_null(owner, name) : NULL;
	auto_py *result = NULL;

	if (container && PyObject_Size(container) > 0)
		result = py_call_method(container, "clear", "()");
	PyErr_Clear();
}

/* Drops the oldest values of `Out` before IPython does so with a warning, 200 at a time. */
static void trim_cache(PyObject *namespace) {
	borrowed PyObject *out = PyDict_GetItemString(namespace, "_oh");

	while (out && PyDict_Check(out) && PyDict_Size(out) > ipshell_cache_size()) {
		PyObject *key, *value;
		Py_ssize_t at = 0;
		auto_py *number = NULL;
		auto_py *name = NULL;

		PyDict_Next(out, &at, &key, &value);
		Py_INCREF(key);
		number = key;
		name = PyUnicode_FromFormat("_%S", number);
		if (!name || PyDict_DelItem(out, number) < 0)
			break;
		if (PyDict_GetItemWithError(namespace, name) && PyDict_DelItem(namespace, name) < 0)
			break;
	}
	PyErr_Clear();
}

/* After each cell: what IPython would keep of it is bounded. */
static void trim(PyObject *shell) {
	auto_py *history = py_getattr_or_null(shell, "history_manager");
	borrowed PyObject *namespace = ipshell_namespace();

	PyErr_Clear();
	clear_container(history, "outputs");
	clear_container(history, "exceptions");
	if (!half.settings->history)
		clear_container(history, "db_input_cache");
	if (namespace)
		trim_cache(namespace);
}

/* The attribute when it is not None: new reference; NULL without an exception. */
static PyObject *get_some(PyObject *o, const char *name) {
	auto_py *value = py_getattr_or_null(o, name);

	PyErr_Clear();
	return value && value != Py_None ? take(value) : NULL;
}

/*
 * IPython compiles so that it can tell an unfinished cell, and then says only that. Compiled once
 * more without that flag, Python says what was left open.
 */
static void explain_incomplete(PyObject *code, PyObject **exception) {
	auto_py *message = py_getattr_or_null(*exception, "msg");
	auto_py *filename = py_getattr_or_null(*exception, "filename");
	auto_py *cell = NULL;
	auto_py *source = NULL;
	auto_py *name = NULL;
	auto_py *compiled = NULL;

	PyErr_Clear();
	if (!message || !PyUnicode_Check(message) || !filename || !PyUnicode_Check(filename) ||
		PyUnicode_CompareWithASCIIString(message, "incomplete input") != 0)
		return;
	/* Without its magics. */
	cell = py_call_method(ipshell_get(), "transform_cell", "(O)", code);
	source = cell ? py_utf8(cell) : NULL;
	name = py_utf8(filename);
	if (source && name)
		compiled = Py_CompileString(
			PyBytes_AsString(source), PyBytes_AsString(name), Py_file_input);
	if (PyErr_ExceptionMatches(PyExc_SyntaxError)) {
		Py_DECREF(*exception);
		*exception = pyerr_fetch();
	}
	PyErr_Clear();
}

/*
 * Without its own cache IPython would fail each cell that ends in an expression, and only then:
 * a cell that deleted or rebound it, as `globals().clear()` does, is not to break those after it.
 */
static void restore_cache(PyObject *shell) {
	borrowed PyObject *namespace = ipshell_namespace();
	borrowed PyObject *out = namespace ? PyDict_GetItemString(namespace, "_oh") : NULL;
	auto_py *result = NULL;

	if (!out || !PyDict_Check(out))
		result = PyObject_CallMethod(shell, "init_user_ns", NULL);
	PyErr_Clear();
}

/* Runs the cell; whatever it does ends up in the outcome. */
static void run_cell(PyObject *code, struct outcome *ret) {
	borrowed PyObject *shell = ipshell_get();
	long count = begin_count(shell);
	auto_py *run = PyObject_GetAttrString(shell, "run_cell");
	auto_py *args = PyTuple_Pack(1, code);
	auto_py *kwargs = Py_BuildValue("{s:O}", "store_history", Py_True);
	auto_py *result = NULL;
	PyObject *shown;
	bool is_swallowed;

	restore_cache(shell);
	interrupt_renew();
	if (run && args && kwargs)
		result = PyObject_Call(run, args, kwargs);
	*ret = (struct outcome){ .code = "execution_error", .count = count };
	if (!result) {
		ret->exception = pyerr_fetch();
	} else {
		ret->exception = get_some(result, "error_before_exec");
		/* Anything else that stopped it there is no fault of its text: an interrupt. */
		if (ret->exception &&
			PyObject_TypeCheck(ret->exception, (PyTypeObject *)PyExc_Exception)) {
			ret->code = "syntax_error";
			explain_incomplete(code, &ret->exception);
		}
		if (!ret->exception)
			ret->exception = get_some(result, "error_in_exec");
		if (!ret->exception)
			ret->value = get_some(result, "result");
	}
	if (half_is_forked_child())
		worker_leave_child(ret->exception);

	/* A cell stopped in a top-level await has left its task behind; its own end tells where. */
	if (interrupt_is_set(NULL))
		loop_end_task(NULL);
	shown = ipshell_take_shown(&is_swallowed);
	if (shown && (ret->exception ? PyObject_TypeCheck(ret->exception,
					       (PyTypeObject *)PyExc_KeyboardInterrupt)
				     : is_swallowed)) {
		Py_XDECREF(ret->exception);
		ret->exception = take(shown);
		Py_CLEAR(ret->value);
	}
	Py_XDECREF(shown);
	set_count(shell, count + 1);
	trim(shell);
}

/* `representation` of a value that is not JSON: its text/plain form, else its repr. */
static char *represent(PyObject *value, size_t limit) {
	auto_py *text = capture_plain_text(value);
	auto_py *bytes = text ? py_utf8(text) : NULL;

	if (bytes)
		return pyerr_bound(
			PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes), limit, NULL);
	if (PyErr_Occurred() && pyerr_clear_unless_interrupt() < 0)
		return NULL;
	return convert_repr(value, limit, NULL);
}

/*
 * Writes the object that stands for a value without a JSON form. -1 with an exception or without.
 */
static int write_stand_in(struct buf *b, PyObject *value) {
	auto_py *type = py_qualified_type(value);
	auto_py *type_text = type ? py_utf8(type) : NULL;
	auto_free char *text = type_text ? represent(value, half.settings->max_repr_chars) : NULL;
	auto_free char *name = NULL;

	if (!text)
		return -1;
	name = pyerr_bound(PyBytes_AsString(type_text), (size_t)PyBytes_Size(type_text),
		half.settings->max_text_chars, NULL);
	if (!name)
		return -1;
	buf_add_str(b, "{\"json_compatible\":false,\"type\":");
	buf_add_json_string(b, name, strlen(name));
	buf_add_str(b, ",\"representation\":");
	buf_add_json_string(b, text, strlen(text));
	buf_add_char(b, '}');
	return 0;
}

/*
 * The value as JSON into `b`. *ret_is_json tells whether it had such a form. -1 with an exception,
 * which is the call's interrupt or memory.
 */
static int write_result(struct answer *a, struct buf *b, PyObject *value, bool *ret_is_json) {
	struct convert_flags flags = { 0 };

	*ret_is_json = true;
	if (!value) {
		buf_add_str(b, "null");
		return 0;
	}
	switch (convert_to_json(value, b, &flags)) {
	case CONVERT_OK:
		a->has_wide_integer = flags.has_wide_integer;
		a->cuts |= flags.is_cut ? ANSWER_CUT_RESULT : 0;
		a->cuts |= flags.lost_items ? ANSWER_CUT_ITEMS : 0;
		/* Near the bound of a reply something smaller has to be at hand. */
		if (b->len > half.settings->max_reply_bytes / 8)
			return write_stand_in(&a->result_fallback, value);
		return 0;
	case CONVERT_NOT_JSON:
	case CONVERT_TOO_LARGE:
		*ret_is_json = false;
		a->cuts |= ANSWER_CUT_RESULT;
		buf_clear(b);
		return write_stand_in(b, value);
	case CONVERT_INTERRUPTED:
		return -1;
	case CONVERT_NO_MEMORY:
		break;
	}
	PyErr_NoMemory();
	return -1;
}

/* The value as a person reads it, at the end of profile text's body. */
static int add_value_text(struct answer *a, PyObject *value) {
	auto_free char *text = represent(value, half.settings->max_text_chars);

	if (!text)
		return -1;
	if (a->text.len && *text)
		buf_add_char(&a->text, '\n');
	buf_add_str(&a->text, text);
	return 0;
}

/*
 * The value in the forms that the profile wants: JSON and rich forms, or text. All of it runs user
 * code. -1 with an exception, which is the call's interrupt or memory.
 */
static int show_value(
	struct tool_run *run, PyObject *value, struct buf *result, bool *ret_has_text) {
	bool is_json;
	int shown = 0;

	if (write_result(run->answer, result, value, &is_json) < 0)
		return -1;
	if (value && !is_json)
		shown = capture_add_value(value);
	*ret_has_text = value && shown == 0;
	return shown < 0 ? -1 : 0;
}

/* The error of what was raised; once the deadline has passed that is what it says. */
static void take_error(struct tool_run *run, const struct outcome *o, struct answer_error *ret) {
	PyErr_SetObject((PyObject *)Py_TYPE(o->exception), o->exception);
	toolbox_take_error(run, o->code, ret);
}

static void write_answer(struct tool_run *run, const struct outcome *o, const struct buf *result,
	const struct buf *display, const struct answer_error *error) {
	struct answer *a = run->answer;

	answer_add_bool(a, "ok", !error, false);
	answer_add_literal(a, "status", error ? "\"error\"" : "\"ok\"", !error);
	if (o->count)
		buf_addf(answer_member(a, "execution_count", false), "%ld", o->count);
	else
		answer_add_literal(a, "execution_count", "null", true);
	if (error)
		answer_add_literal(a, "result", "null", true);
	else
		buf_add(answer_member(a, "result", false), result->data, result->len);
	if (display->len)
		buf_add(answer_member(a, "display_data", false), display->data, display->len);
	else
		answer_add_literal(a, "display_data", "[]", true);
	if (error) {
		a->cuts |= error->traceback_truncated ? ANSWER_CUT_TRACEBACK : 0;
		answer_set_error(a, error, run->call->profile);
	} else {
		answer_add_literal(a, "error", "null", true);
	}
}

int execute_run(struct tool_run *run) {
	borrowed PyObject *code = NULL;
	__attribute__((cleanup(outcome_deinit))) struct outcome o = { 0 };
	auto_answer_error struct answer_error error = { 0 };
	auto_buf struct buf result = BUF_NULL;
	auto_buf struct buf display = BUF_NULL;
	bool has_failed = true, has_text = false;
	int r = find_code(run, &code, &error);

	if (r < 0)
		return -1;
	capture_begin();
	if (r == 0) {
		run_cell(code, &o);
		capture_flush_replaced();
		if (o.exception)
			take_error(run, &o, &error);
		else if (show_value(run, o.value, &result, &has_text) < 0)
			toolbox_take_error(run, "execution_error", &error);
		else
			has_failed = toolbox_timed_out(run, &error);
	}
	if (capture_end(run->answer, &display, o.value, run->call->profile, has_failed) < 0 ||
		(!has_failed && has_text && run->call->profile == PROFILE_TEXT &&
			add_value_text(run->answer, o.value) < 0)) {
		if (has_failed)
			PyErr_Clear();
		else
			toolbox_take_error(run, "execution_error", &error);
		has_failed = true;
	}
	write_answer(run, &o, &result, &display, has_failed ? &error : NULL);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Errors
 *
 * An exception as an answer tells it. The object is user code's: its text may raise, exit or never
 * end, so every look at it may fail and leaves what was learned so far. traceback.c has its
 * traceback.
 */

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/utf8.h"
#include "daemon/python/half.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/traceback.h"
#include "daemon/python/worker.h"

PyObject *pyerr_fetch(void) {
	PyObject *type, *value, *traceback;

	PyErr_Fetch(&type, &value, &traceback);
	if (!type)
		return NULL;
	PyErr_NormalizeException(&type, &value, &traceback);
	if (value && traceback)
		PyException_SetTraceback(value, traceback);
	Py_XDECREF(type);
	Py_XDECREF(traceback);
	return value;
}

void pyerr_print(PyObject *exception) {
	auto_py *summary = traceback_new(exception, NULL);
	auto_free char *text = NULL;
	borrowed PyObject *file = PySys_GetObject("stderr");
	bool is_cut;

	if (summary)
		text = traceback_format(summary, exception, PROFILE_FULL, &is_cut);
	PyErr_Clear();
	if (text && file && PyFile_WriteString(text, file) < 0)
		PyErr_Clear();
}

int pyerr_clear_unless_interrupt(void) {
	if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) && interrupt_is_set(NULL))
		return -1;
	PyErr_Clear();
	return 0;
}

char *pyerr_bound(const char *text, size_t len, size_t limit, bool *ret_cut) {
	auto_buf struct buf b = BUF_NULL;
	bool is_cut = len > limit && utf8_count(text, len) > limit;

	if (is_cut) {
		buf_add(&b, text, utf8_prefix(text, len, limit ? limit - 1 : 0));
		buf_add_str(&b, "…");
	} else {
		buf_add(&b, text, len);
	}
	if (ret_cut)
		*ret_cut = is_cut;
	return buf_take(&b, NULL);
}

static bool is_a(PyObject *exception, PyObject *type) {
	return PyObject_TypeCheck(exception, (PyTypeObject *)type);
}

/* True for pdb's way out at the end of input. */
static bool is_debugger_quit(PyObject *exception) {
	auto_py *name = PyType_GetName(Py_TYPE(exception));

	return name && PyUnicode_CompareWithASCIIString(name, "BdbQuit") == 0;
}

/* What an exception says of itself, as a bytes object; NULL only when memory is short. */
static PyObject *own_text(PyObject *exception) {
	auto_py *text = PyObject_Str(exception);
	PyObject *bytes = text ? py_utf8(text) : NULL;

	PyErr_Clear();
	return bytes ? bytes : PyBytes_FromString("<exception str() failed>");
}

/* The message: where the exception alone would puzzle somebody who has no terminal, what it means
 * here. */
static PyObject *exception_text(PyObject *exception) {
	auto_py *text = NULL;
	PyObject *bytes;

	/* str() of a syntax error repeats file and line, which `location` has. */
	if (is_a(exception, PyExc_SyntaxError)) {
		bytes = py_attr_utf8(exception, "msg");
		if (bytes)
			return bytes;
	}
	text = own_text(exception);
	if (!text)
		return NULL;
	if (is_a(exception, PyExc_SystemExit))
		return PyBytes_FromFormat("Exit%s%s: only this call has ended, the shell and its "
					  "variables stay.",
			PyBytes_Size(text) ? " with status " : "", PyBytes_AsString(text));
	if (is_a(exception, PyExc_KeyboardInterrupt) && PyBytes_Size(text) == 0)
		return PyBytes_FromString("The call was interrupted.");
	if (is_a(exception, PyExc_EOFError) || is_debugger_quit(exception))
		return PyBytes_FromFormat("%s%sInteractive input is not available.",
			PyBytes_AsString(text), PyBytes_Size(text) ? ": " : "");
	return take(text);
}

/* True when the message says more than the exception does: its traceback has to say it as well. */
static bool is_unattended(PyObject *exception) {
	return is_a(exception, PyExc_SystemExit) || is_a(exception, PyExc_EOFError) ||
	       is_debugger_quit(exception);
}

/* Where a syntax error says that it is. */
static void locate_syntax(PyObject *exception, struct answer_error *ret) {
	auto_py *filename = py_attr_utf8(exception, "filename");

	ret->filename = filename ? strdup(PyBytes_AsString(filename)) : NULL;
	ret->line = py_attr_number(exception, "lineno");
	ret->column = py_attr_number(exception, "offset");
}

void pyerr_describe(PyObject *exception, const char *code, struct answer_error *ret) {
	const struct shell_call *call = worker_call();
	enum profile profile = call ? call->profile : PROFILE_FULL;
	size_t max_text = half.settings->max_text_chars;
	auto_py *type = PyType_GetName(Py_TYPE(exception));
	auto_py *type_text = type ? py_utf8(type) : NULL;
	auto_py *text = exception_text(exception);
	auto_py *summary = NULL;

	/* A forked child ends like a script; nobody waits for its answer. */
	if (half_is_forked_child())
		worker_leave_child(exception);
	PyErr_Clear();
	*ret = (struct answer_error){ .code = code };
	if (type_text)
		ret->error_type = pyerr_bound(PyBytes_AsString(type_text),
			(size_t)PyBytes_Size(type_text), max_text, NULL);
	if (text)
		ret->message = pyerr_bound(PyBytes_AsString(text), (size_t)PyBytes_Size(text),
			max_text, &ret->message_truncated);

	summary = traceback_new(exception, is_unattended(exception) ? text : NULL);
	if (summary) {
		traceback_locate(summary, ret);
		ret->traceback =
			traceback_format(summary, exception, profile, &ret->traceback_truncated);
	}
	PyErr_Clear();
	if (!ret->filename && is_a(exception, PyExc_SyntaxError))
		locate_syntax(exception, ret);
	if (ret->filename) {
		char *bounded = pyerr_bound(
			ret->filename, strlen(ret->filename), max_text, &ret->location_truncated);

		free(ret->filename);
		ret->filename = bounded;
	}
	if (!ret->traceback && ret->error_type && ret->message)
		ret->traceback = answer_message("%s: %s", ret->error_type, ret->message);
}

void pyerr_take(const char *code, struct answer_error *ret) {
	auto_py *exception = pyerr_fetch();

	*ret = (struct answer_error){ .code = code };
	if (exception)
		pyerr_describe(exception, code, ret);
}

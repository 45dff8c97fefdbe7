/* SPDX-License-Identifier: MIT */
/*
 * Errors
 *
 * An exception as an answer tells it. The object is user code's: its text may raise, exit or never
 * end, so every look at it may fail and leaves what was learned so far. Python's own traceback module
 * does the wording, because people and models know it; frames of IPython are taken out first. Profile
 * text gets the user's own frames only, and nothing that says the same twice.
 */

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/utf8.h"
#include "daemon/python/half.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/worker.h"

#define CELL "<ipython-input-"

enum {
	MAX_FRAMES = 1000, /* of one exception; deeper recursion shows its innermost end */
	MAX_CHAIN = 50,    /* exceptions of a chain or group whose frames are looked at */
};

static bool starts_with(const char *s, const char *prefix) {
	return !strncmp(s, prefix, strlen(prefix));
}

/* The directory of the standard library, with a slash at its end; "" when it cannot be told. */
static const char *stdlib_directory(void) {
	static char *directory;

	if (!directory) {
		auto_py *file = py_import_attr("os", "__file__");
		auto_py *bytes = file ? py_utf8(file) : NULL;
		char *slash;

		directory = strdup(bytes ? PyBytes_AsString(bytes) : "");
		PyErr_Clear();
		slash = directory ? strrchr(directory, '/') : NULL;
		if (slash)
			slash[1] = '\0';
	}
	return directory ? directory : "";
}

/* Frames that no traceback shows: IPython's, and what its decorators generate. */
static bool is_machinery(const char *filename) {
	const char *package = ipshell_package_directory();

	return (*package && starts_with(filename, package)) ||
		starts_with(filename, "<decorator-gen-");
}

/* Frames of the user's own code: cells, and files that belong to no library. */
static bool is_user(const char *filename) {
	const char *library = stdlib_directory();

	if (filename[0] == '<')
		return starts_with(filename, CELL);
	return !is_machinery(filename) && !strstr(filename, "/site-packages/") &&
		!strstr(filename, "/dist-packages/") && !(*library && starts_with(filename, library));
}

/* An attribute's UTF-8 as a bytes object; NULL without an exception when it is no str. */
static PyObject *attribute_utf8(PyObject *o, const char *name) {
	auto_py *value = PyObject_GetAttrString(o, name);
	PyObject *bytes = value && PyUnicode_Check(value) ? py_utf8(value) : NULL;

	PyErr_Clear();
	return bytes;
}

/* An attribute as a positive number; 0 when it is none. */
static long attribute_number(PyObject *o, const char *name) {
	auto_py *value = PyObject_GetAttrString(o, name);
	long n = value && PyLong_Check(value) ? PyLong_AsLong(value) : 0;

	PyErr_Clear();
	return n > 0 ? n : 0;
}

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

/* The message: where the exception alone would puzzle somebody who has no terminal, what it means here. */
static PyObject *exception_text(PyObject *exception) {
	auto_py *text = NULL;
	PyObject *bytes;

	/* str() of a syntax error repeats file and line, which `location` has. */
	if (is_a(exception, PyExc_SyntaxError)) {
		bytes = attribute_utf8(exception, "msg");
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
	if (is_a(exception, PyExc_EOFError) || is_debugger_quit(exception))
		return PyBytes_FromFormat("%s%sInteractive input is not available.", PyBytes_AsString(text),
			PyBytes_Size(text) ? ": " : "");
	return take(text);
}

/* traceback.TracebackException of `exception`; NULL with an exception. */
static PyObject *summarize(PyObject *exception) {
	auto_py *class = py_import_attr("traceback", "TracebackException");
	auto_py *traceback = PyException_GetTraceback(exception);
	auto_py *args = NULL;
	auto_py *kwargs = NULL;
	Py_ssize_t depth = 0;

	/* Counting first: a huge recursion must not be summarized whole. */
	for (PyObject *tb = traceback; tb && tb != Py_None && depth <= MAX_FRAMES; depth++) {
		auto_py *next = PyObject_GetAttrString(tb, "tb_next");

		tb = next; /* borrowed: its predecessor keeps it alive */
	}
	PyErr_Clear();
	args = Py_BuildValue("(OOO)", Py_TYPE(exception), exception, traceback ? traceback : Py_None);
	kwargs = depth > MAX_FRAMES ? Py_BuildValue("{s:O,s:i}", "compact", Py_True, "limit",
					     -MAX_FRAMES)
				    : Py_BuildValue("{s:O}", "compact", Py_True);
	return class && args && kwargs ? PyObject_Call(class, args, kwargs) : NULL;
}

/*
 * Takes frames out of `summary` and of the exceptions it leads to. Returns how many of the summary's
 * own frames are left, or -1 with an exception.
 */
static Py_ssize_t filter(PyObject *summary, bool only_user, int *budget) {
	static const char *const links[] = { "__cause__", "__context__" };
	auto_py *stack = PyObject_GetAttrString(summary, "stack");
	auto_py *kept = PyList_New(0);
	auto_py *group = NULL;

	if (!stack || !kept)
		return -1;
	for (Py_ssize_t i = 0; i < PyList_Size(stack); i++) {
		borrowed PyObject *frame = PyList_GetItem(stack, i);
		auto_py *filename = attribute_utf8(frame, "filename");
		const char *name = filename ? PyBytes_AsString(filename) : "";

		if ((only_user ? is_user(name) : !is_machinery(name)) && PyList_Append(kept, frame) < 0)
			return -1;
	}
	if (PyList_SetSlice(stack, 0, PyList_Size(stack), kept) < 0)
		return -1;
	if (--*budget < 0)
		return PyList_Size(kept);

	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		auto_py *linked = PyObject_GetAttrString(summary, links[i]);
		Py_ssize_t n = linked && linked != Py_None ? filter(linked, only_user, budget) : 1;

		if (!linked || n < 0)
			return -1;
		/* A library's inner failure says nothing to somebody who sees no library frames. */
		if (n == 0 && only_user && PyObject_SetAttrString(summary, links[i], Py_None) < 0)
			return -1;
	}
	group = PyObject_GetAttrString(summary, "exceptions");
	if (!group)
		return -1;
	for (Py_ssize_t i = 0; group != Py_None && i < PyList_Size(group); i++)
		if (filter(PyList_GetItem(group, i), only_user, budget) < 0)
			return -1;
	return PyList_Size(kept);
}

/* Joins what a generator method of `summary` yields, up to about `limit` code points. */
static int join(PyObject *summary, const char *method, size_t limit, struct buf *b) {
	auto_py *pieces = py_call_method(summary, method, "()");
	auto_py *iterator = pieces ? PyObject_GetIter(pieces) : NULL;

	while (iterator && b->len <= limit * 4) {
		auto_py *piece = PyIter_Next(iterator);
		auto_py *bytes = piece ? py_utf8(piece) : NULL;

		if (!bytes)
			break;
		buf_add(b, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
	}
	return PyErr_Occurred() ? -1 : 0;
}

/* `  File "<ipython-input-3-0123>", line 2, in f` as `In[3], line 2, in f`. */
static void add_frame_line(struct buf *b, const char *line, size_t len) {
	const char *cell = memmem(line, len, "File \"" CELL, strlen("File \"" CELL));
	const char *number = cell ? cell + strlen("File \"" CELL) : NULL;
	const char *end = number ? memchr(number, '"', len - (size_t)(number - line)) : NULL;
	static const char module[] = ", in <module>";

	if (end) {
		buf_add(b, line, (size_t)(cell - line));
		buf_addf(b, "In[%.*s]", (int)strspn(number, "0123456789"), number);
		len -= (size_t)(end + 1 - line);
		line = end + 1;
	}
	if (len >= strlen(module) && !memcmp(line + len - strlen(module), module, strlen(module)))
		len -= strlen(module);
	buf_add(b, line, len);
}

/* Leaves out what a reader of text does not need: the headline and the underlines of frames. */
static void tighten(const char *text, size_t len, bool keeps_underlines, struct buf *b) {
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		bool is_underline = n > 0 && strspn(text, " |~^") >= n && memchr(text, '^', n);

		if (!(n == 34 && !memcmp(text, "Traceback (most recent call last):", n)) &&
			!(is_underline && !keeps_underlines)) {
			size_t indent = strspn(text, " ");

			/* Two blanks before a frame carry nothing without the headline. */
			if (indent == 2 && n > 7 && !memcmp(text + 2, "File ", 5))
				add_frame_line(b, text + 2, n - 2);
			else
				add_frame_line(b, text, n);
			buf_add_char(b, '\n');
		}
		n += end ? 1 : 0;
		text += n;
		len -= n;
	}
	while (b->len && b->data[b->len - 1] == '\n')
		b->len--;
}

/* Bounds profile text's traceback: frames give way, "Type: message" at the end stays. */
static char *bound_text(struct buf *b, size_t last_len, size_t limit, bool *ret_cut) {
	auto_free char *last = NULL;
	auto_buf struct buf cut = BUF_NULL;
	size_t head_len;

	*ret_cut = b->len > limit && utf8_count(b->data, b->len) > limit;
	if (!*ret_cut)
		return buf_take(b, NULL);
	if (last_len > b->len)
		last_len = b->len;
	head_len = b->len - last_len;
	last = pyerr_bound(b->data + head_len, last_len, limit / 2, NULL);
	if (!last)
		return NULL;
	buf_add(&cut, b->data,
		utf8_prefix(b->data, head_len, limit - limit / 2 > 2 ? limit - limit / 2 - 2 : 0));
	buf_add_str(&cut, "…\n");
	buf_add_str(&cut, last);
	return buf_take(&cut, NULL);
}

/* The traceback text of `summary`, whose frames are filtered. */
static char *format(PyObject *summary, PyObject *exception, enum profile profile, bool *ret_cut) {
	size_t limit = half.settings->max_traceback_chars;
	auto_buf struct buf b = BUF_NULL;
	auto_buf struct buf last = BUF_NULL;
	auto_buf struct buf tight = BUF_NULL;
	bool is_syntax = is_a(exception, PyExc_SyntaxError);

	if (join(summary, "format", limit, &b) < 0)
		return NULL;
	if (profile == PROFILE_TEXT) {
		if (join(summary, "format_exception_only", limit, &last) < 0)
			return NULL;
		tighten(b.data, b.len, is_syntax, &tight);
		return bound_text(&tight, last.len ? last.len - 1 : 0, limit, ret_cut);
	}
	*ret_cut = utf8_count(b.data, b.len) > limit;
	if (*ret_cut)
		b.len = utf8_prefix(b.data, b.len, limit);
	return buf_take(&b, NULL);
}

/* True when the message says more than the exception does: its traceback has to say it as well. */
static bool is_unattended(PyObject *exception) {
	return is_a(exception, PyExc_SystemExit) || is_a(exception, PyExc_EOFError) ||
		is_debugger_quit(exception);
}

/* Puts the message into the summary as the exception's own text. Never raises. */
static void replace_text(PyObject *summary, PyObject *text) {
	auto_py *str = text ? PyUnicode_FromEncodedObject(text, "utf-8", "replace") : NULL;

	if (!str || PyObject_SetAttrString(summary, "_str", str) < 0)
		PyErr_Clear();
}

/* The deepest frame of user code. */
static void locate(PyObject *summary, struct answer_error *ret) {
	auto_py *stack = PyObject_GetAttrString(summary, "stack");
	Py_ssize_t i = stack ? PyList_Size(stack) : 0;

	PyErr_Clear();
	while (i-- > 0) {
		borrowed PyObject *frame = PyList_GetItem(stack, i);
		auto_py *filename = attribute_utf8(frame, "filename");
		auto_py *column = NULL;

		if (!filename || !is_user(PyBytes_AsString(filename)))
			continue;
		ret->filename = strdup(PyBytes_AsString(filename));
		ret->line = attribute_number(frame, "lineno");
		column = PyObject_GetAttrString(frame, "colno");
		if (column && PyLong_Check(column))
			ret->column = PyLong_AsLong(column) + 1;
		PyErr_Clear();
		return;
	}
}

/* Where a syntax error says that it is. */
static void locate_syntax(PyObject *exception, struct answer_error *ret) {
	auto_py *filename = attribute_utf8(exception, "filename");

	ret->filename = filename ? strdup(PyBytes_AsString(filename)) : NULL;
	ret->line = attribute_number(exception, "lineno");
	ret->column = attribute_number(exception, "offset");
}

void pyerr_describe(PyObject *exception, const char *code, struct answer_error *ret) {
	const struct shell_call *call = worker_call();
	enum profile profile = call ? call->profile : PROFILE_FULL;
	size_t max_text = half.settings->max_text_chars;
	auto_py *type = PyType_GetName(Py_TYPE(exception));
	auto_py *type_text = type ? py_utf8(type) : NULL;
	auto_py *text = exception_text(exception);
	auto_py *summary = NULL;
	int budget = MAX_CHAIN;

	PyErr_Clear();
	*ret = (struct answer_error){ .code = code };
	if (type_text)
		ret->error_type = pyerr_bound(PyBytes_AsString(type_text),
			(size_t)PyBytes_Size(type_text), max_text, NULL);
	if (text)
		ret->message = pyerr_bound(PyBytes_AsString(text), (size_t)PyBytes_Size(text), max_text,
			&ret->message_truncated);

	summary = summarize(exception);
	if (summary && is_unattended(exception))
		replace_text(summary, text);
	if (summary) {
		locate(summary, ret);
		if (filter(summary, profile == PROFILE_TEXT, &budget) >= 0)
			ret->traceback = format(summary, exception, profile,
				&ret->traceback_truncated);
	}
	PyErr_Clear();
	if (!ret->filename && is_a(exception, PyExc_SyntaxError))
		locate_syntax(exception, ret);
	if (ret->filename) {
		char *bounded = pyerr_bound(ret->filename, strlen(ret->filename), max_text,
			&ret->location_truncated);

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

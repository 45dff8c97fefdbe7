/* SPDX-License-Identifier: MIT */
/*
 * Tracebacks
 *
 * Python's own traceback module does the wording, because people and models know it; frames of
 * IPython are taken out of its summary first. Profile text gets the user's own frames only, and
 * nothing that says the same twice. The summary looks at the exception, which is user code's: every
 * step may fail.
 */

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/utf8.h"
#include "daemon/python/half.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/traceback.h"

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

/* Frames of a library that Cython compiled: they name their source as it lay when it was built. */
static bool is_compiled(const char *filename) {
	const char *suffix = strrchr(filename, '.');

	return filename[0] != '/' && suffix && (!strcmp(suffix, ".pyx") || !strcmp(suffix, ".pxi"));
}

/* Frames of the user's own code: cells, and files that belong to no library. */
static bool is_user(const char *filename) {
	const char *library = stdlib_directory();

	if (filename[0] == '<')
		return starts_with(filename, CELL);
	return !is_machinery(filename) && !is_compiled(filename) &&
	       !strstr(filename, "/site-packages/") && !strstr(filename, "/dist-packages/") &&
	       !(*library && starts_with(filename, library));
}

/* Puts a text into the summary as the exception's own. Never raises. */
static void replace_text(PyObject *summary, PyObject *text) {
	auto_py *str = PyUnicode_FromEncodedObject(text, "utf-8", "replace");

	if (!str || PyObject_SetAttrString(summary, "_str", str) < 0)
		PyErr_Clear();
}

PyObject *traceback_new(PyObject *exception, PyObject *text) {
	auto_py *class = py_import_attr("traceback", "TracebackException");
	auto_py *traceback = PyException_GetTraceback(exception);
	auto_py *args = NULL;
	auto_py *kwargs = NULL;
	PyObject *summary;
	Py_ssize_t depth = 0;

	/* Counting first: a huge recursion must not be summarized whole. */
	for (PyObject *tb = traceback; tb && tb != Py_None && depth <= MAX_FRAMES; depth++) {
		auto_py *next = PyObject_GetAttrString(tb, "tb_next");

		tb = next; /* borrowed: its predecessor keeps it alive */
	}
	PyErr_Clear();
	args = Py_BuildValue(
		"(OOO)", Py_TYPE(exception), exception, traceback ? traceback : Py_None);
	kwargs = depth > MAX_FRAMES
			 ? Py_BuildValue("{s:O,s:i}", "compact", Py_True, "limit", -MAX_FRAMES)
			 : Py_BuildValue("{s:O}", "compact", Py_True);
	summary = class && args && kwargs ? PyObject_Call(class, args, kwargs) : NULL;
	if (summary && text)
		replace_text(summary, text);
	return summary;
}

/* The deepest frame of user code, new reference; NULL without an exception. */
static PyObject *find_user_frame(PyObject *summary) {
	auto_py *stack = PyObject_GetAttrString(summary, "stack");
	Py_ssize_t i = stack ? PyList_Size(stack) : 0;

	while (i-- > 0) {
		borrowed PyObject *frame = PyList_GetItem(stack, i);
		auto_py *filename = py_attr_utf8(frame, "filename");

		if (filename && is_user(PyBytes_AsString(filename)))
			return Py_NewRef(frame);
	}
	PyErr_Clear();
	return NULL;
}

/*
 * A frame's column, from 1, in code points: Python counts bytes of the line. 0 when it is unknown.
 */
static long find_column(PyObject *frame, PyObject *filename, long line) {
	auto_py *offset = PyObject_GetAttrString(frame, "colno");
	auto_py *get_line = py_import_attr("linecache", "getline");
	auto_py *path = PyUnicode_DecodeFSDefault(PyBytes_AsString(filename));
	auto_py *text = get_line && path ? PyObject_CallFunction(get_line, "Ol", path, line) : NULL;
	auto_py *bytes = text && PyUnicode_Check(text) ? py_utf8(text) : NULL;
	long n = offset && PyLong_Check(offset) ? PyLong_AsLong(offset) : -1;

	PyErr_Clear();
	if (n < 0)
		return 0;
	if (bytes && n <= PyBytes_Size(bytes))
		n = (long)utf8_count(PyBytes_AsString(bytes), (size_t)n);
	return n + 1;
}

void traceback_locate(PyObject *summary, struct answer_error *ret) {
	auto_py *frame = find_user_frame(summary);
	auto_py *filename = frame ? py_attr_utf8(frame, "filename") : NULL;

	if (!filename)
		return;
	ret->filename = strdup(PyBytes_AsString(filename));
	ret->line = py_attr_number(frame, "lineno");
	ret->column = find_column(frame, filename, ret->line);
}

/*
 * Takes frames out of `summary` and of the exceptions it leads to. Returns how many of the
 * summary's own frames are left, or -1 with an exception.
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
		auto_py *filename = py_attr_utf8(frame, "filename");
		const char *name = filename ? PyBytes_AsString(filename) : "";

		if ((only_user ? is_user(name) : !is_machinery(name)) &&
			PyList_Append(kept, frame) < 0)
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

/* How many of the first bytes are of `set`. */
static size_t span(const char *text, size_t len, const char *set) {
	size_t n = 0;

	while (n < len && strchr(set, text[n]) && text[n])
		n++;
	return n;
}

/* Leaves out what a reader of text does not need: the headline and the underlines of frames. */
static void tighten(const char *text, size_t len, bool keeps_underlines, struct buf *b) {
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		bool is_underline = n > 0 && span(text, n, " |~^") == n && memchr(text, '^', n);

		if (!(n == 34 && !memcmp(text, "Traceback (most recent call last):", n)) &&
			!(is_underline && !keeps_underlines)) {
			size_t indent = span(text, n, " ");

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

char *traceback_format(
	PyObject *summary, PyObject *exception, enum profile profile, bool *ret_cut) {
	size_t limit = half.settings->max_traceback_chars;
	auto_buf struct buf b = BUF_NULL;
	auto_buf struct buf last = BUF_NULL;
	auto_buf struct buf tight = BUF_NULL;
	bool is_syntax = PyObject_TypeCheck(exception, (PyTypeObject *)PyExc_SyntaxError);
	/* A cell that did not compile: who found that out is of no interest. */
	auto_py *frame = find_user_frame(summary);
	bool only_user = profile == PROFILE_TEXT || (is_syntax && !frame);
	int budget = MAX_CHAIN;

	if (filter(summary, only_user, &budget) < 0 || join(summary, "format", limit, &b) < 0)
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

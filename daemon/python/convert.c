/* SPDX-License-Identifier: MIT */
/*
 * Conversion
 *
 * Python values to JSON text and back. Objects are looked at by their real type first, so that the
 * common ones (numbers, strings, plain containers) run no user code at all; only what is left over
 * is asked whether it is a mapping, a dataclass, a model or a scalar of numpy's. Whatever user code
 * raises on the way makes the value not JSON, except an interrupt of the running call.
 *
 * The work is bounded by what it writes: depth, items and strings by the settings, the whole by
 * MAX_REPLY_BYTES. Python thread.
 */

#include <math.h>
#include <string.h>

#include "daemon/python/bigint.h"
#include "daemon/python/convert.h"
#include "daemon/python/fields.h"
#include "daemon/python/half.h"
#include "daemon/python/pyerr.h"

#define DEPTH_MARKER "\"<maximum JSON depth reached>\""
#define MAX_SAFE_INTEGER ((1LL << 53) - 1)

/* Kept references: what user code does to the modules' names later does not reach us. */
static struct {
	PyObject *mapping;    /* collections.abc.Mapping */
	PyObject *date;       /* datetime.date, datetime.datetime derives from it */
	PyObject *time;       /* datetime.time */
	PyObject *scan_once;  /* the C scanner of a json.JSONDecoder */
} kept;

/* One conversion to JSON. */
struct writer {
	struct buf *b;
	size_t start; /* b->len when it began */
	struct convert_flags flags;
};

static enum convert_result write_value(struct writer *w, PyObject *value, size_t depth);

/* json's scanner calls this for each integer: its own way stops at int_max_str_digits. */
static PyObject *parse_int(PyObject *self, PyObject *text) {
	Py_ssize_t len;
	const char *digits = PyUnicode_AsUTF8AndSize(text, &len);

	return digits ? bigint_read(digits, (size_t)len) : NULL;
}

static PyMethodDef parse_int_def = { "parse_int", parse_int, METH_O, NULL };

int convert_init(void) {
	auto_py *decoder_type = py_import_attr("json.decoder", "JSONDecoder");
	auto_py *integer = PyCFunction_New(&parse_int_def, NULL);
	auto_py *arguments = PyTuple_New(0);
	auto_py *keywords = integer ? Py_BuildValue("{s:O}", "parse_int", integer) : NULL;
	auto_py *decoder = NULL;

	if (!decoder_type || !arguments || !keywords)
		return -1;
	decoder = PyObject_Call(decoder_type, arguments, keywords);
	kept.scan_once = decoder ? PyObject_GetAttrString(decoder, "scan_once") : NULL;
	kept.mapping = py_import_attr("collections.abc", "Mapping");
	kept.date = py_import_attr("datetime", "date");
	kept.time = py_import_attr("datetime", "time");
	if (!kept.scan_once || !kept.mapping || !kept.date || !kept.time)
		return -1;
	return fields_init();
}

PyObject *convert_from_json(const char *text, size_t len) {
	auto_py *string = NULL;
	auto_py *pair = NULL;
	borrowed PyObject *value;

	while (len && strchr(" \t\r\n", text[0]))
		text++, len--;
	while (len && strchr(" \t\r\n", text[len - 1]))
		len--;
	string = PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "strict");
	pair = string ? PyObject_CallFunction(kept.scan_once, "Oi", string, 0) : NULL;
	if (!pair)
		return NULL;
	value = PyTuple_GetItem(pair, 0);
	if (!value)
		return NULL;
	Py_INCREF(value);
	return value;
}

int convert_add_str(struct buf *b, PyObject *text, size_t limit, bool *ret_cut) {
	Py_ssize_t n = PyUnicode_GetLength(text), len;
	bool is_cut = n >= 0 && (size_t)n > limit;
	auto_py *part = NULL;
	auto_py *mended = NULL;
	const char *s;

	if (n < 0)
		return -1;
	if (is_cut) {
		part = PyUnicode_Substring(text, 0, limit ? (Py_ssize_t)limit - 1 : 0);
		if (!part)
			return -1;
		text = part;
	}

	s = PyUnicode_AsUTF8AndSize(text, &len);
	if (!s) {
		/* Surrogates, most likely: not for the wire. */
		char *bytes;

		PyErr_Clear();
		mended = py_utf8(text);
		if (!mended || PyBytes_AsStringAndSize(mended, &bytes, &len) < 0)
			return -1;
		s = bytes;
	}
	buf_add_char(b, '"');
	buf_add_json_chars(b, s, (size_t)len);
	if (is_cut)
		buf_add_str(b, "…");
	buf_add_char(b, '"');
	if (ret_cut)
		*ret_cut = is_cut;
	return 0;
}

/* What a raised exception means: it is cleared unless it interrupts the call. */
static enum convert_result on_exception(void) {
	return pyerr_clear_unless_interrupt() < 0 ? CONVERT_INTERRUPTED : CONVERT_NOT_JSON;
}

static enum convert_result write_string(struct writer *w, PyObject *value) {
	bool is_cut;

	if (convert_add_str(w->b, value, half.settings->max_text_chars, &is_cut) < 0)
		return on_exception();
	w->flags.is_cut |= is_cut;
	return CONVERT_OK;
}

static enum convert_result write_integer(struct writer *w, PyObject *value) {
	int overflow;
	long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
	int r = bigint_write(value, w->b);

	if (r < 0)
		return on_exception();
	if (overflow || small > MAX_SAFE_INTEGER || small < -MAX_SAFE_INTEGER)
		w->flags.has_wide_integer = true;
	return r ? CONVERT_NOT_JSON : CONVERT_OK;
}

static enum convert_result write_float(struct writer *w, PyObject *value) {
	double d = PyFloat_AsDouble(value);
	char *text;

	if (!isfinite(d))
		return CONVERT_NOT_JSON;
	text = PyOS_double_to_string(d, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
	if (!text)
		return on_exception();
	buf_add_str(w->b, text);
	PyMem_Free(text);
	return CONVERT_OK;
}

/* True when there is room for one more item; writes the comma before it. */
static bool begin_item(struct writer *w, size_t n) {
	if (n == half.settings->max_results) {
		w->flags.is_cut = w->flags.lost_items = true;
		return false;
	}
	if (n)
		buf_add_char(w->b, ',');
	return true;
}

static enum convert_result write_sequence(struct writer *w, PyObject *value, size_t depth) {
	bool is_list = PyList_Check(value);
	size_t n = 0;

	buf_add_char(w->b, '[');
	/* User code below may shorten the list: its size is asked each time. */
	while (n < (size_t)(is_list ? PyList_Size(value) : PyTuple_Size(value))) {
		auto_py *item = NULL;
		enum convert_result r;

		if (!begin_item(w, n))
			break;
		item = is_list ? PyList_GetItem(value, (Py_ssize_t)n)
			       : PyTuple_GetItem(value, (Py_ssize_t)n);
		Py_XINCREF(item);
		r = item ? write_value(w, item, depth + 1) : on_exception();
		if (r != CONVERT_OK)
			return r;
		n++;
	}
	buf_add_char(w->b, ']');
	return CONVERT_OK;
}

/* A list of (type's name, representation, place, item), sorted: an order that every run repeats. */
static PyObject *sorted_items(PyObject *set) {
	auto_py *rows = PyList_New(0);
	auto_py *iterator = rows ? PyObject_GetIter(set) : NULL;
	borrowed PyTypeObject *last = NULL;
	auto_py *type = NULL;
	Py_ssize_t place = 0;

	if (!iterator)
		return NULL;
	for (;;) {
		auto_py *item = PyIter_Next(iterator);
		auto_py *text = NULL;
		auto_py *row = NULL;

		if (!item)
			break;
		if (Py_TYPE(item) != last) { /* most sets hold one type */
			Py_XDECREF(type);
			type = py_qualified_type(item);
			last = Py_TYPE(item);
		}
		text = type ? convert_repr_str(item) : NULL;
		row = text ? Py_BuildValue("(OOnO)", type, text, place++, item) : NULL;
		if (!row || PyList_Append(rows, row) < 0)
			return NULL;
	}
	/* The place is unique, so items themselves are never compared. */
	if (PyErr_Occurred() || PyList_Sort(rows) < 0)
		return NULL;
	return take(rows);
}

static enum convert_result write_set(struct writer *w, PyObject *set, size_t depth) {
	auto_py *rows = sorted_items(set);
	Py_ssize_t len = rows ? PyList_Size(rows) : -1;

	if (len < 0)
		return on_exception();
	buf_add_char(w->b, '[');
	for (Py_ssize_t i = 0; i < len && begin_item(w, (size_t)i); i++) {
		borrowed PyObject *item = PyTuple_GetItem(PyList_GetItem(rows, i), 3);
		enum convert_result r = write_value(w, item, depth + 1);

		if (r != CONVERT_OK)
			return r;
	}
	buf_add_char(w->b, ']');
	return CONVERT_OK;
}

static enum convert_result write_member(struct writer *w, PyObject *key, PyObject *value,
	size_t depth) {
	if (convert_add_str(w->b, key, SIZE_MAX, NULL) < 0)
		return on_exception();
	buf_add_char(w->b, ':');
	return write_value(w, value, depth + 1);
}

/*
 * Checks that a key is a string, and that it stays the only one of its kind when its surrogates are
 * mended: JSON must not hold a name twice. `mended` is the set of such keys so far.
 */
static enum convert_result check_key(PyObject *dict, PyObject *key, PyObject **mended) {
	auto_py *bytes = NULL;
	auto_py *text = NULL;
	int is_taken;

	if (!PyUnicode_Check(key))
		return CONVERT_NOT_JSON;
	if (PyUnicode_AsUTF8AndSize(key, NULL))
		return CONVERT_OK;
	PyErr_Clear();
	bytes = py_utf8(key);
	text = bytes ? PyUnicode_FromEncodedObject(bytes, "utf-8", "strict") : NULL;
	if (text && !*mended)
		*mended = PySet_New(NULL);
	if (!text || !*mended)
		return on_exception();
	is_taken = PyDict_Contains(dict, text);
	if (!is_taken)
		is_taken = PySet_Contains(*mended, text);
	if (is_taken < 0 || PySet_Add(*mended, text) < 0)
		return on_exception();
	return is_taken ? CONVERT_NOT_JSON : CONVERT_OK;
}

static enum convert_result write_dict(struct writer *w, PyObject *dict, size_t depth) {
	borrowed PyObject *key, *value;
	auto_py *mended = NULL;
	Py_ssize_t at = 0;
	size_t n = 0;

	buf_add_char(w->b, '{');
	while (PyDict_Next(dict, &at, &key, &value)) {
		enum convert_result r;

		if (!begin_item(w, n++))
			break;
		/* The dict may change while user code runs below. */
		Py_INCREF(key);
		Py_INCREF(value);
		r = check_key(dict, key, &mended);
		if (r == CONVERT_OK)
			r = write_member(w, key, value, depth);
		Py_DECREF(key);
		Py_DECREF(value);
		if (r != CONVERT_OK)
			return r;
	}
	buf_add_char(w->b, '}');
	return CONVERT_OK;
}

/*
 * Any other mapping, and dicts whose class may see its items in another order: its first items as a
 * dict, one more than are written, so that the cut is seen there.
 */
static enum convert_result write_mapping(struct writer *w, PyObject *mapping, size_t depth) {
	auto_py *items = PyObject_CallMethod(mapping, "items", NULL);
	auto_py *iterator = items ? PyObject_GetIter(items) : NULL;
	auto_py *dict = iterator ? PyDict_New() : NULL;

	if (!dict)
		return on_exception();
	for (size_t n = 0; n <= half.settings->max_results; n++) {
		auto_py *pair = PyIter_Next(iterator);

		if (!pair)
			break;
		if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
			return CONVERT_NOT_JSON;
		if (PyDict_SetItem(dict, PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1)) < 0)
			break;
	}
	return PyErr_Occurred() ? on_exception() : write_dict(w, dict, depth);
}

/* An object by its fields: as the dict of them would be, one level down. */
static enum convert_result write_fields(struct writer *w, PyObject *value, PyObject *names,
	size_t depth) {
	Py_ssize_t len = PyList_Size(names);

	depth++;
	if (depth >= half.settings->max_json_depth) {
		buf_add_str(w->b, DEPTH_MARKER);
		w->flags.is_cut = true;
		return CONVERT_OK;
	}
	buf_add_char(w->b, '{');
	for (Py_ssize_t i = 0; i < len && begin_item(w, (size_t)i); i++) {
		borrowed PyObject *name = PyList_GetItem(names, i);
		auto_py *field = name ? PyObject_GetAttr(value, name) : NULL;
		enum convert_result r;

		r = field ? write_member(w, name, field, depth) : on_exception();
		if (r != CONVERT_OK)
			return r;
	}
	buf_add_char(w->b, '}');
	return CONVERT_OK;
}

/* A scalar of numpy's by its own Python value. */
static enum convert_result write_scalar(struct writer *w, PyObject *value, size_t depth) {
	auto_py *item = PyObject_CallMethod(value, "item", NULL);

	if (!item)
		return on_exception();
	/* long double gives itself; NaT gives None, which in JSON would be another value. */
	if (item == Py_None || Py_IS_TYPE(item, Py_TYPE(value)))
		return CONVERT_NOT_JSON;
	/* Nanoseconds do not fit datetime; a bare count would be taken for a number. */
	if (PyLong_Check(item) && fields_derives_from(Py_TYPE(value), "numpy", "datetime64")) {
		auto_py *text = PyObject_Str(value);

		return text ? write_string(w, text) : on_exception();
	}
	if (fields_derives_from(Py_TYPE(value), "numpy", "timedelta64"))
		return CONVERT_NOT_JSON;
	return write_value(w, item, depth);
}

static enum convert_result write_date(struct writer *w, PyObject *value) {
	auto_py *text = PyObject_CallMethod(value, "isoformat", NULL);

	if (!text)
		return on_exception();
	return PyUnicode_Check(text) ? write_string(w, text) : CONVERT_NOT_JSON;
}

/* What has no plain form of its own. */
static enum convert_result write_object(struct writer *w, PyObject *value, size_t depth) {
	auto_py *names = NULL;
	int is_mapping;

	if (!PyType_Check(value))
		names = fields_names(Py_TYPE(value));
	if (names)
		return write_fields(w, value, names, depth);
	if (PyErr_Occurred())
		return on_exception();

	is_mapping = PyObject_IsInstance(value, kept.mapping);
	if (is_mapping < 0)
		return on_exception();
	return is_mapping ? write_mapping(w, value, depth) : CONVERT_NOT_JSON;
}

static bool is_set(PyObject *value) {
	return PyType_IsSubtype(Py_TYPE(value), &PySet_Type) ||
		PyType_IsSubtype(Py_TYPE(value), &PyFrozenSet_Type);
}

static bool is_date(PyObject *value) {
	return PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)kept.date) ||
		PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)kept.time);
}

/* Containers and objects: what counts as a level. */
static enum convert_result write_compound(struct writer *w, PyObject *value, size_t depth) {
	enum convert_result r;

	if (depth >= half.settings->max_json_depth) {
		buf_add_str(w->b, DEPTH_MARKER);
		w->flags.is_cut = true;
		return CONVERT_OK;
	}
	if (PyErr_CheckSignals() < 0 || Py_EnterRecursiveCall(" while a value was made JSON"))
		return on_exception();
	if (PyDict_CheckExact(value))
		r = write_dict(w, value, depth);
	else if (PyDict_Check(value))
		r = write_mapping(w, value, depth);
	else if (PyList_Check(value) || PyTuple_Check(value))
		r = write_sequence(w, value, depth);
	else if (is_set(value))
		r = write_set(w, value, depth);
	else
		r = write_object(w, value, depth);
	Py_LeaveRecursiveCall();
	return r;
}

static enum convert_result write_value(struct writer *w, PyObject *value, size_t depth) {
	if (w->b->len - w->start > half.settings->max_reply_bytes)
		return CONVERT_TOO_LARGE;
	if (value == Py_None) {
		buf_add_str(w->b, "null");
		return CONVERT_OK;
	}
	if (PyBool_Check(value)) {
		buf_add_str(w->b, value == Py_True ? "true" : "false");
		return CONVERT_OK;
	}
	if (PyUnicode_Check(value))
		return write_string(w, value);
	if (PyLong_Check(value))
		return write_integer(w, value);
	if (PyFloat_Check(value))
		return write_float(w, value);
	if (!PyList_Check(value) && !PyTuple_Check(value) && !PyDict_Check(value)) {
		if (is_date(value))
			return write_date(w, value);
		if (fields_derives_from(Py_TYPE(value), "numpy", "generic"))
			return write_scalar(w, value, depth);
	}
	return write_compound(w, value, depth);
}

enum convert_result convert_to_json(PyObject *value, struct buf *b, struct convert_flags *flags) {
	struct writer w = { .b = b, .start = b->len };
	enum convert_result r = write_value(&w, value, 0);

	if (r == CONVERT_OK && b->len - w.start > half.settings->max_reply_bytes)
		r = CONVERT_TOO_LARGE;
	if (b->has_failed)
		r = CONVERT_NO_MEMORY;
	if (r != CONVERT_OK)
		b->len = w.start;
	if (flags && r == CONVERT_OK) {
		flags->is_cut |= w.flags.is_cut;
		flags->lost_items |= w.flags.lost_items;
		flags->has_wide_integer |= w.flags.has_wide_integer;
	}
	return r;
}

/* An int whose own repr refuses to print it: exact when it may be written, else by its size. */
static PyObject *repr_long_integer(PyObject *value) {
	auto_buf struct buf b = BUF_NULL;
	int r = bigint_write(value, &b);

	if (r < 0)
		return NULL;
	if (r) {
		long long bits = bigint_bits(value);

		return bits < 0 ? NULL : PyUnicode_FromFormat("<int of %lld bits>", bits);
	}
	if (b.has_failed)
		return PyErr_NoMemory();
	return PyUnicode_DecodeASCII(b.data, (Py_ssize_t)b.len, "strict");
}

PyObject *convert_repr_str(PyObject *value) {
	PyObject *text = PyObject_Repr(value);

	if (text || !PyLong_CheckExact(value) || !PyErr_ExceptionMatches(PyExc_ValueError))
		return text;
	PyErr_Clear();
	return repr_long_integer(value);
}

char *convert_repr(PyObject *value, size_t limit, bool *ret_cut) {
	auto_py *text = convert_repr_str(value);
	auto_py *bytes = NULL;
	char *s, *bounded;
	Py_ssize_t len;

	if (!text) {
		auto_py *raised = pyerr_fetch();
		auto_py *name = raised ? PyType_GetName(Py_TYPE(raised)) : NULL;

		/*
		 * Fetched first for its name, then judged: an interrupt is not the object's doing.
		 */
		if (raised)
			PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
		if (pyerr_clear_unless_interrupt() < 0)
			return NULL;
		text = name ? PyUnicode_FromFormat("repr failed: %U", name) : NULL;
		if (!text)
			return NULL;
	}
	bytes = py_utf8(text);
	if (!bytes || PyBytes_AsStringAndSize(bytes, &s, &len) < 0)
		return NULL;
	bounded = pyerr_bound(s, (size_t)len, limit, ret_cut);
	if (!bounded)
		PyErr_NoMemory();
	return bounded;
}

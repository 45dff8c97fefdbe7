/* SPDX-License-Identifier: MIT */
/*
 * Python Helpers
 *
 * What the limited API leaves out and every file here needs. None of these trusts the objects it is
 * given: names of types come from the type itself, not from attributes that a metaclass may answer.
 */

#include <stdarg.h>
#include <string.h>

#include "daemon/python/py.h"

/* A code point as UTF-8 into `s`; a surrogate as U+FFFD. Returns the number of bytes. */
static size_t encode(Py_UCS4 c, char *s) {
	unsigned char *u = (unsigned char *)s;

	if (c >= 0xd800 && c <= 0xdfff)
		c = 0xfffd;
	if (c < 0x80) {
		u[0] = (unsigned char)c;
		return 1;
	}
	if (c < 0x800) {
		u[0] = (unsigned char)(0xc0 | c >> 6);
		u[1] = (unsigned char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		u[0] = (unsigned char)(0xe0 | c >> 12);
		u[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
		u[2] = (unsigned char)(0x80 | (c & 0x3f));
		return 3;
	}
	u[0] = (unsigned char)(0xf0 | c >> 18);
	u[1] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
	u[2] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
	u[3] = (unsigned char)(0x80 | (c & 0x3f));
	return 4;
}

PyObject *py_utf8(PyObject *o) {
	PyObject *bytes;
	Py_ssize_t n, len = 0;
	char *data;

	if (!PyUnicode_Check(o)) {
		PyErr_SetString(PyExc_TypeError, "a str was expected");
		return NULL;
	}
	bytes = PyUnicode_AsUTF8String(o);
	if (bytes || !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
		return bytes;

	/* It holds lone surrogates. */
	PyErr_Clear();
	n = PyUnicode_GetLength(o);
	for (Py_ssize_t i = 0; i < n; i++) {
		char scratch[4];

		len += (Py_ssize_t)encode(PyUnicode_ReadChar(o, i), scratch);
	}
	bytes = PyBytes_FromStringAndSize(NULL, len);
	if (!bytes)
		return NULL;
	data = PyBytes_AsString(bytes);
	for (Py_ssize_t i = 0; i < n; i++)
		data += encode(PyUnicode_ReadChar(o, i), data);
	return bytes;
}

PyObject *py_getattr_or_null(PyObject *o, const char *name) {
	PyObject *value = PyObject_GetAttrString(o, name);

	if (!value && PyErr_ExceptionMatches(PyExc_AttributeError))
		PyErr_Clear();
	return value;
}

PyObject *py_attr_utf8(PyObject *o, const char *name) {
	auto_py *value = PyObject_GetAttrString(o, name);
	PyObject *bytes = value && PyUnicode_Check(value) ? py_utf8(value) : NULL;

	PyErr_Clear();
	return bytes;
}

long py_attr_number(PyObject *o, const char *name) {
	auto_py *value = PyObject_GetAttrString(o, name);
	long n = value && PyLong_Check(value) ? PyLong_AsLong(value) : 0;

	PyErr_Clear();
	return n > 0 ? n : 0;
}

PyObject *py_call_method(PyObject *o, const char *name, const char *format, ...) {
	auto_py *method = PyObject_GetAttrString(o, name);
	auto_py *args = NULL;
	va_list list;

	if (!method)
		return NULL;
	va_start(list, format);
	args = Py_VaBuildValue(format, list);
	va_end(list);
	if (!args)
		return NULL;
	return PyObject_Call(method, args, NULL);
}

PyObject *py_import_attr(const char *module, const char *attribute) {
	auto_py *m = PyImport_ImportModule(module);

	return m ? PyObject_GetAttrString(m, attribute) : NULL;
}

/* type.__module__ as `type` itself answers it, so that no metaclass is asked; NULL without
 * exception. */
static PyObject *module_of(PyTypeObject *type) {
	static PyObject *descriptor;
	PyObject *module;

	if (!descriptor) {
		auto_py *dict = PyObject_GetAttrString((PyObject *)&PyType_Type, "__dict__");

		descriptor = dict ? PyMapping_GetItemString(dict, "__module__") : NULL;
	}
	module = descriptor ? py_call_method(descriptor, "__get__", "(OO)", type, &PyType_Type)
			    : NULL;
	if (module && PyUnicode_Check(module))
		return module;
	PyErr_Clear();
	Py_XDECREF(module);
	return NULL;
}

PyObject *py_qualified_type(PyObject *o) {
	auto_py *name = PyType_GetQualName(Py_TYPE(o));
	auto_py *module = NULL;

	if (!name)
		return NULL;
	module = module_of(Py_TYPE(o));
	if (!module)
		return take(name);
	return PyUnicode_FromFormat("%U.%U", module, name);
}

/* SPDX-License-Identifier: MIT */
/*
 * Fields
 *
 * Which objects are known by their fields: dataclasses, and models of pydantic in each of its
 * versions' spellings. pydantic itself is never imported: a model of it can only be there when it
 * is loaded. Python thread.
 */

#include "daemon/python/fields.h"

static PyObject *dataclass_fields; /* dataclasses.fields, kept: user code may rebind the name */

int fields_init(void) {
	dataclass_fields = py_import_attr("dataclasses", "fields");
	return dataclass_fields ? 0 : -1;
}

/* Names of a dataclass's fields. NULL without an exception when the type is none. */
static PyObject *dataclass_names(PyObject *type) {
	auto_py *mark = py_getattr_or_null(type, "__dataclass_fields__");
	auto_py *fields = mark ? PyObject_CallFunctionObjArgs(dataclass_fields, type, NULL) : NULL;
	auto_py *names = fields ? PyList_New(0) : NULL;

	if (!names)
		return NULL;
	for (Py_ssize_t i = 0; i < PyTuple_Size(fields); i++) {
		auto_py *name = PyObject_GetAttrString(PyTuple_GetItem(fields, i), "name");

		if (!name || PyList_Append(names, name) < 0)
			return NULL;
	}
	return take(names);
}

bool fields_derives_from(PyTypeObject *type, const char *module_name, const char *class_name) {
	auto_py *name = PyUnicode_FromString(module_name);
	auto_py *module = name ? PyImport_GetModule(name) : NULL;
	auto_py *class = module ? PyObject_GetAttrString(module, class_name) : NULL;
	bool is_one = class && PyType_Check(class) && PyType_IsSubtype(type, (PyTypeObject *)class);

	PyErr_Clear();
	return is_one;
}

/* Names of a pydantic model's fields. NULL without an exception when the type is none. */
static PyObject *model_names(PyTypeObject *type) {
	static const char *const attributes[] = { "__pydantic_fields__", "model_fields",
		"__fields__" };

	if (!fields_derives_from(type, "pydantic", "BaseModel") &&
		!fields_derives_from(type, "pydantic.v1", "BaseModel"))
		return NULL;
	/* Newest spelling first: the older ones warn where they are deprecated. */
	for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
		auto_py *fields = py_getattr_or_null((PyObject *)type, attributes[i]);

		if (fields && PyDict_Check(fields))
			return PyDict_Keys(fields);
		if (PyErr_Occurred())
			return NULL;
	}
	return NULL;
}

PyObject *fields_names(PyTypeObject *type) {
	PyObject *names = dataclass_names((PyObject *)type);

	return names || PyErr_Occurred() ? names : model_names(type);
}

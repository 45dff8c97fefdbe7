/* SPDX-License-Identifier: MIT */
/*
 * The Namespace as a Whole
 *
 * remove and reset. "Removed" means that the memory is free: an object that was once the
 * value of a cell lives on in IPython's output cache, and one that met an error lives on in the
 * frames of the last traceback, so these let go of it, too. Destructors are user code and run here.
 * Python thread.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/python/convert.h"
#include "daemon/python/half.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/names.h"
#include "daemon/python/namespace.h"
#include "daemon/python/registry.h"
#include "daemon/python/toolbox.h"

static PyObject *import_module; /* importlib's, kept: user code may rebind the module's name */

int namespace_init(void) {
	import_module = py_import_attr("importlib", "import_module");
	return import_module ? 0 : -1;
}

/* True for IPython's names of earlier values: _ __ ___ _1 _2 … */
static bool is_cache_name(PyObject *key) {
	const char *name = PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
	size_t n_underscores;

	PyErr_Clear();
	if (!name)
		return false;
	n_underscores = strspn(name, "_");
	if (!name[n_underscores])
		return n_underscores >= 1 && n_underscores <= 3;
	return n_underscores == 1 && !name[1 + strspn(name + 1, "0123456789")];
}

/* Keys of `dict` whose value is `object` (NULL: any), of cache names alone when asked. New list. */
static PyObject *keys_of(PyObject *dict, PyObject *object, bool only_cache_names) {
	auto_py *keys = PyList_New(0);
	borrowed PyObject *key, *value;
	Py_ssize_t at = 0;

	while (keys && PyDict_Next(dict, &at, &key, &value)) {
		if ((object && value != object) || (only_cache_names && !is_cache_name(key)))
			continue;
		if (PyList_Append(keys, key) < 0)
			return NULL;
	}
	return take(keys);
}

/* Deletes these keys; one that a destructor deleted meanwhile does no harm. */
static void delete_keys(PyObject *dict, PyObject *keys) {
	for (Py_ssize_t i = 0; keys && i < PyList_Size(keys); i++)
		if (PyDict_DelItem(dict, PyList_GetItem(keys, i)) < 0)
			PyErr_Clear();
	PyErr_Clear();
}

/* An attribute of the shell that is a dict; NULL without an exception when it is none. */
static PyObject *shell_dict(const char *owner_name, const char *name) {
	auto_py *owner = owner_name ? PyObject_GetAttrString(ipshell_get(), owner_name) : NULL;
	PyObject *dict = owner_name && !owner
		? NULL
		: PyObject_GetAttrString(owner ? owner : ipshell_get(), name);

	PyErr_Clear();
	if (dict && !PyDict_Check(dict)) {
		Py_DECREF(dict);
		return NULL;
	}
	return dict;
}

/* Makes IPython's output cache forget `object` (NULL: everything). */
static void forget_output(PyObject *object) {
	static const char *const last_values[] = { "_", "__", "___" };
	auto_py *hidden = shell_dict(NULL, "user_ns_hidden");
	auto_py *output = shell_dict("history_manager", "output_hist");
	auto_py *hook = PyObject_GetAttrString(ipshell_get(), "displayhook");
	auto_py *empty = PyUnicode_FromString("");
	PyObject *const dicts[] = { ipshell_namespace(), hidden };

	if (output) {
		auto_py *keys = keys_of(output, object, false);

		delete_keys(output, keys);
	}
	for (size_t i = 0; i < ARRAY_LEN(dicts); i++) {
		auto_py *keys = dicts[i] ? keys_of(dicts[i], object, true) : NULL;

		delete_keys(dicts[i], keys);
	}
	/* The hook keeps the last three for itself, and _ has to stay a name. */
	for (size_t i = 0; hook && empty && i < ARRAY_LEN(last_values); i++) {
		auto_py *value = PyObject_GetAttrString(hook, last_values[i]);

		if (value && (!object || value == object))
			PyObject_SetAttrString(hook, last_values[i], empty);
		for (size_t k = 0; k < ARRAY_LEN(dicts); k++)
			if (dicts[k] && !PyDict_GetItemString(dicts[k], last_values[i]))
				PyDict_SetItemString(dicts[k], last_values[i], empty);
	}
	PyErr_Clear();
}

/* Makes Python and IPython forget the last error: its frames hold what their functions held. */
static void forget_error(void) {
	static const char *const last_error[] = { "last_type", "last_value", "last_traceback",
		"last_exc" };
	static const char *const formatter_state[] = { "tb", "etype", "value" };
	auto_py *formatter = py_getattr_or_null(ipshell_get(), "InteractiveTB");

	for (size_t i = 0; i < ARRAY_LEN(last_error); i++)
		if (PySys_GetObject(last_error[i]))
			PySys_SetObject(last_error[i], NULL);
	PyObject_SetAttrString(ipshell_get(), "last_execution_result", Py_None);
	PyErr_Clear();
	for (size_t i = 0; formatter && i < ARRAY_LEN(formatter_state); i++) {
		auto_py *value = py_getattr_or_null(formatter, formatter_state[i]);

		if (value)
			PyObject_SetAttrString(formatter, formatter_state[i], Py_None);
	}
	PyErr_Clear();
}

/* Ends an answer that begins with `ok`. */
static int finish(struct tool_run *run, struct answer_error *error) {
	if (!error->code && !toolbox_timed_out(run, error)) {
		answer_add_literal(run->answer, "error", "null", true);
		return 0;
	}
	answer_add_bool(run->answer, "ok", false, false);
	answer_set_error(run->answer, error, run->call->profile);
	return 0;
}

/* Removes one name that is there, wherever IPython holds it. */
static void remove_name(PyObject *name, PyObject *object) {
	auto_py *namespaces = PyObject_GetAttrString(ipshell_get(), "all_ns_refs");
	Py_ssize_t n = namespaces && PyList_Check(namespaces) ? PyList_Size(namespaces) : 0;

	/* The namespace, IPython's hidden names, the modules of %run. */
	for (Py_ssize_t i = 0; i < n; i++) {
		borrowed PyObject *dict = PyList_GetItem(namespaces, i);

		if (dict && PyDict_Check(dict) && PyDict_GetItemWithError(dict, name) == object)
			PyDict_DelItem(dict, name);
	}
	PyErr_Clear();
	/* Whatever the user made of that list, the name goes. */
	if (PyDict_GetItemWithError(ipshell_namespace(), name) == object)
		PyDict_DelItem(ipshell_namespace(), name);
	PyErr_Clear();
}

int namespace_remove(struct tool_run *run) {
	static const struct arg args[] = {
		{ "names", ARG_ARRAY, true, "invalid_names" },
		{ 0 },
	};
	const struct string_rule rule = {
		.argument = "names",
		.code = "invalid_names",
		.max_chars = half.settings->max_text_chars,
	};
	auto_answer_error struct answer_error error = { 0 };
	borrowed PyObject *values[ARRAY_LEN(args)];
	auto_py *removed = PyList_New(0);
	auto_py *refused = PyList_New(0);
	auto_py *unknown = PyList_New(0);
	auto_py *seen = PySet_New(NULL);
	int r;

	if (!removed || !refused || !unknown || !seen)
		return -1;
	r = toolbox_arguments(run, args, values, &error);
	if (r < 0)
		return -1;
	if (!r && toolbox_check_strings(values[0], &rule, &error)) {
		for (Py_ssize_t i = 0; i < PyList_Size(values[0]); i++) {
			borrowed PyObject *name = PyList_GetItem(values[0], i);
			auto_py *bytes = py_utf8(name);
			auto_py *object = NULL;
			PyObject *list;

			r = PySet_Contains(seen, name);
			if (!bytes || r < 0 || PySet_Add(seen, name) < 0)
				return -1;
			if (r)
				continue;
			object = PyDict_GetItemWithError(ipshell_namespace(), name);
			Py_XINCREF(object);
			PyErr_Clear();
			list = names_is_protected(PyBytes_AsString(bytes)) ? refused
				: object                                   ? removed
										   : unknown;
			if (PyList_Append(list, name) < 0)
				return -1;
			if (list == removed) {
				remove_name(name, object);
				forget_output(object);
			}
		}
		if (PyList_Size(removed)) {
			forget_error();
			PyGC_Collect();
		}
	}

	answer_add_bool(run->answer, "ok", !error.code, false);
	if (toolbox_add_strings(run, "removed", removed) < 0 ||
		toolbox_add_strings(run, "refused", refused) < 0 ||
		toolbox_add_strings(run, "unknown", unknown) < 0)
		return -1;
	return finish(run, &error);
}

/* Imports every module that has an alias: new list, NULL with an error. */
static PyObject *import_aliases(struct tool_run *run, struct answer_error *ret_error) {
	size_t n;
	const struct names_alias *aliases = names_aliases(&n);
	auto_py *modules = PyList_New(0);

	for (size_t i = 0; modules && i < n; i++) {
		auto_py *module = PyObject_CallFunction(import_module, "s", aliases[i].module);
		auto_free char *why = NULL;

		if (module && !PyList_Append(modules, module))
			continue;
		toolbox_take_error(run, "reset_rebind_error", ret_error);
		why = take(ret_error->message);
		ret_error->message = answer_message(
			"The configured module `%s` cannot be imported any more, so nothing was "
			"removed: %s",
			aliases[i].module, why ? why : "");
		return NULL;
	}
	return take(modules);
}

/*
 * Removes every unprotected name; what was removed goes into `removed`. 0 or -1 with an exception.
 */
static int remove_all(PyObject *removed) {
	auto_py *names = names_visible();

	if (!names)
		return -1;
	for (Py_ssize_t i = 0; i < PyList_Size(names); i++) {
		borrowed PyObject *name = PyList_GetItem(names, i);
		auto_py *object = PyDict_GetItemWithError(ipshell_namespace(), name);

		Py_XINCREF(object);
		if (!object || names_is_protected(PyUnicode_AsUTF8AndSize(name, NULL)))
			continue;
		if (PyList_Append(removed, name) < 0)
			return -1;
		remove_name(name, object);
	}
	return 0;
}

/* IPython's own names and the configured modules, bound as they were at the start. */
static int restore(PyObject *modules) {
	auto_py *done = NULL;
	size_t n;
	const struct names_alias *aliases = names_aliases(&n);

	/* One that this IPython does not bind must not stay the user's: `open` before 8.6. */
	for (const char *const *name = names_of_shell; *name; name++)
		if (PyDict_GetItemString(ipshell_namespace(), *name) &&
			PyDict_DelItemString(ipshell_namespace(), *name) < 0)
			return -1;
	done = PyObject_CallMethod(ipshell_get(), "init_user_ns", NULL);
	if (!done)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (PyDict_SetItemString(ipshell_namespace(), aliases[i].alias,
			    PyList_GetItem(modules, (Py_ssize_t)i)) < 0)
			return -1;
	return 0;
}

/* How many cells have run: what the last one was told. */
static int add_execution_count(struct tool_run *run) {
	auto_py *next = PyObject_GetAttrString(ipshell_get(), "execution_count");
	long long count = next ? PyLong_AsLongLong(next) : -1;

	if (PyErr_Occurred())
		return -1;
	buf_addf(answer_member(run->answer, "execution_count", false), "%lld", count - 1);
	return 0;
}

int namespace_reset(struct tool_run *run) {
	static const struct arg args[] = { { 0 } };
	auto_answer_error struct answer_error error = { 0 };
	borrowed PyObject *values[ARRAY_LEN(args)];
	auto_py *removed = PyList_New(0);
	auto_py *modules = NULL;
	int r;

	r = removed ? toolbox_arguments(run, args, values, &error) : -1;
	if (r < 0)
		return -1;
	if (!r)
		modules = import_aliases(run, &error);
	if (modules) {
		auto_py *cleared = NULL;

		if (remove_all(removed) < 0)
			return -1;
		forget_output(NULL);
		forget_error();
		cleared = PyObject_CallMethod(ipshell_get(), "clear_main_mod_cache", NULL);
		PyErr_Clear();
		registry_clear();
		if (restore(modules) < 0)
			toolbox_take_error(run, "reset_rebind_error", &error);
		PyGC_Collect();
	}

	answer_add_bool(run->answer, "ok", !error.code, false);
	if (toolbox_add_strings(run, "removed", removed) < 0 || add_execution_count(run) < 0)
		return -1;
	return finish(run, &error);
}

/* SPDX-License-Identifier: MIT */
/*
 * Reloading Modules
 *
 * Each module is loaded by importlib, in place when it was there, and bound in the namespace. One
 * bad module does not stop the others; an interrupt of the call does. Modules run their code here.
 * Python thread.
 */

#include <string.h>
#include <unistd.h>

#include "daemon/python/convert.h"
#include "daemon/python/half.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/names.h"
#include "daemon/python/reload.h"
#include "daemon/python/toolbox.h"

/* Kept references: what user code does to the modules' names later does not reach us. */
static struct {
	PyObject *import_module;     /* importlib.import_module */
	PyObject *reload;            /* importlib.reload */
	PyObject *invalidate_caches; /* importlib.invalidate_caches */
} kept;

int reload_init(void) {
	kept.import_module = py_import_attr("importlib", "import_module");
	kept.reload = py_import_attr("importlib", "reload");
	kept.invalidate_caches = py_import_attr("importlib", "invalidate_caches");
	return kept.import_module && kept.reload && kept.invalidate_caches ? 0 : -1;
}

/*
 * Deletes the bytecode that Python cached for a module: it is told from fresh one by the source's
 * size and time in whole seconds, so an edit right after the last load would go unseen.
 */
static void drop_bytecode(PyObject *module) {
	auto_py *spec = py_getattr_or_null(module, "__spec__");
	auto_py *origin = spec ? py_getattr_or_null(spec, "origin") : NULL;
	auto_py *cached = origin ? py_getattr_or_null(spec, "cached") : NULL;
	auto_py *path = NULL;
	const char *s;
	size_t len;

	/* A module without source is its own cache. */
	if (cached && PyUnicode_Check(cached) && PyUnicode_Check(origin) &&
		PyUnicode_Compare(cached, origin) != 0)
		path = PyUnicode_EncodeFSDefault(cached);
	s = path ? PyBytes_AsString(path) : "";
	len = strlen(s);
	if (len > 4 && !strcmp(s + len - 4, ".pyc"))
		unlink(s); /* not there: nothing is stale */
	PyErr_Clear();
}

/* Loads one module anew, or for the first time. New reference, NULL with an exception. */
static PyObject *load(PyObject *name) {
	auto_py *module = PyImport_GetModule(name);
	auto_py *done = NULL;

	if (PyErr_Occurred())
		return NULL;
	if (module)
		drop_bytecode(module);
	done = PyObject_CallFunctionObjArgs(kept.invalidate_caches, NULL);
	if (!done)
		return NULL;
	return PyObject_CallFunctionObjArgs(module ? kept.reload : kept.import_module,
		module ? module : name, NULL);
}

/* The name that a module is bound to: its alias, else its last dotted part. */
static const char *binding_of(const char *module) {
	size_t n;
	const struct names_alias *aliases = names_aliases(&n);
	const char *dot = strrchr(module, '.');

	for (size_t i = 0; i < n; i++)
		if (!strcmp(aliases[i].module, module))
			return aliases[i].alias;
	return dot ? dot + 1 : module;
}

/* True when binding a module would take a name that belongs to IPython or to another module. */
static bool is_taken(const char *binding, const char *module) {
	size_t n;
	const struct names_alias *aliases = names_aliases(&n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(aliases[i].alias, binding))
			return strcmp(aliases[i].module, module) != 0;
	return binding[0] != '_' && names_is_protected(binding);
}

/* Loads and binds one module; false with an error. `bytes` is the name's UTF-8. */
static bool reload_one(struct tool_run *run, PyObject *name, PyObject *bytes,
	struct answer_error *ret_error) {
	const char *text = PyBytes_AsString(bytes);
	const char *binding = binding_of(text);
	auto_py *module = NULL;

	if (!names_is_trimmed(name)) {
		toolbox_refuse(ret_error, "invalid_module",
			"A module's name has text and no blanks around it.");
		return false;
	}
	if (is_taken(binding, text)) {
		toolbox_refuse(ret_error, "invalid_module",
			"The module would be bound to `%s`, which is a protected name.", binding);
		return false;
	}
	module = load(name);
	if (!module || PyDict_SetItemString(ipshell_namespace(), binding, module) < 0) {
		toolbox_take_error(run, "reload_error", ret_error);
		return false;
	}
	return !toolbox_timed_out(run, ret_error);
}

/* One entry of the results. 0 or -1 with an exception. */
static int add_reload(struct tool_run *run, struct buf *b, PyObject *name, const char *binding,
	const struct answer_error *error) {
	bool is_cut;

	buf_add_str(b, "{\"module\":");
	if (convert_add_str(b, name, half.settings->max_text_chars, &is_cut) < 0)
		return -1;
	buf_addf(b, ",\"ok\":%s,\"binding\":", error ? "false" : "true");
	if (error)
		buf_add_str(b, "null");
	else
		buf_add_json_string(b, binding, strlen(binding));
	buf_add_str(b, ",\"error\":");
	answer_error_write(b, error, run->call->profile);
	is_cut |= error && (error->message_truncated || error->traceback_truncated);
	buf_addf(b, ",\"truncated\":%s}", is_cut ? "true" : "false");
	return 0;
}

/* Loads all of them, as far as the call's time goes. 0 or -1 with an exception. */
static int reload_all(struct tool_run *run, PyObject *modules, struct answer_error *ret_error) {
	struct buf *b = answer_member(run->answer, "results", false);
	Py_ssize_t len = PyList_Size(modules);
	size_t n_ok = 0;

	buf_add_char(b, '[');
	for (Py_ssize_t i = 0; i < len && !ret_error->code; i++) {
		auto_answer_error struct answer_error error = { 0 };
		borrowed PyObject *name = PyList_GetItem(modules, i);
		auto_py *bytes = py_utf8(name);
		bool is_ok;

		if (!bytes)
			return -1;
		is_ok = reload_one(run, name, bytes, &error);
		n_ok += is_ok;
		if (i)
			buf_add_char(b, ',');
		if (add_reload(run, b, name, binding_of(PyBytes_AsString(bytes)),
			    is_ok ? NULL : &error) < 0)
			return -1;
		toolbox_timed_out(run, ret_error);
	}
	if (!len) {
		auto_answer_error struct answer_error error = { 0 };
		auto_py *nothing = PyUnicode_FromString("");

		toolbox_refuse(&error, "invalid_modules", "`modules` is empty: name one at least.");
		if (!nothing || add_reload(run, b, nothing, NULL, &error) < 0)
			return -1;
	}
	buf_add_char(b, ']');
	run->answer->is_error = n_ok == 0;
	return 0;
}

int reload_run(struct tool_run *run) {
	static const struct arg args[] = {
		{ "modules", ARG_ARRAY, true, "invalid_modules" },
		{ 0 },
	};
	const struct string_rule rule = {
		.argument = "modules",
		.code = "invalid_modules",
		.max_chars = half.settings->max_text_chars,
		.takes_empty = true,
	};
	auto_answer_error struct answer_error error = { 0 };
	borrowed PyObject *values[ARRAY_LEN(args)];
	int r;

	r = toolbox_arguments(run, args, values, &error);
	if (r < 0)
		return -1;
	if (r || !toolbox_check_strings(values[0], &rule, &error))
		answer_add_literal(run->answer, "results", "[]", true);
	else if (reload_all(run, values[0], &error) < 0)
		return -1;
	if (error.code)
		answer_set_error(run->answer, &error, run->call->profile);
	else
		answer_add_literal(run->answer, "error", "null", true);
	return 0;
}

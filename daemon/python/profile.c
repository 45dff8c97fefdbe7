/* SPDX-License-Identifier: MIT */
/*
 * IPython Profiles
 *
 * What `ipython --profile NAME` would load: configuration files, extensions, lines and files to
 * run, the startup folder. IPython's application class logs failures and goes on; a daemon that
 * started with half of a person's configuration would puzzle them later, so here each failure ends
 * the start and names the file.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/answer.h"
#include "daemon/python/half.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/profile.h"
#include "daemon/python/pyerr.h"

static PyObject *config, *own_directory;

/* The raised exception, as what failed there. Owned by the caller. */
static char *failure(PyObject *what) {
	auto_answer_error struct answer_error e = { 0 };
	auto_py *exception = pyerr_fetch();
	auto_py *name = what ? py_utf8(what) : NULL;
	auto_free char *line = NULL;

	PyErr_Clear();
	if (exception)
		pyerr_describe(exception, "startup_failed", &e);
	line = e.line ? answer_message(", line %ld", e.line) : NULL;
	return answer_message("IPython's profile %s cannot be loaded: %s%s%s%s: %s",
		half.settings->ipython_profile, name ? PyBytes_AsString(name) : "",
		line ? line : "", name ? ": " : "", e.error_type ? e.error_type : "error",
		e.message ? e.message : "");
}

/* The profile's directory as IPython finds it. */
static PyObject *find_directory(const char *name) {
	auto_py *get = py_import_attr("IPython.paths", "get_ipython_dir");
	auto_py *root = get ? PyObject_CallObject(get, NULL) : NULL;
	auto_py *class = root ? py_import_attr("IPython.core.profiledir", "ProfileDir") : NULL;

	return class ? py_call_method(class, "find_profile_dir_by_name", "(Os)", root, name) : NULL;
}

/* Directories whose configuration counts, the least specific first. */
static PyObject *config_directories(PyObject *location) {
	auto_py *system = py_import_attr("IPython.core.application", "SYSTEM_CONFIG_DIRS");
	auto_py *environment = py_import_attr("IPython.core.application", "ENV_CONFIG_DIRS");
	auto_py *both = system && environment ? PySequence_Concat(system, environment) : NULL;
	auto_py *own = both ? Py_BuildValue("[O]", location) : NULL;

	return own ? PySequence_Concat(both, own) : NULL;
}

/* Merges one configuration file into `into` when it is there. -1 with *ret_message. */
static int load_file(PyObject *into, PyObject *directory, const char *class_name, const char *file,
	char **ret_message) {
	auto_py *class = py_import_attr("traitlets.config.loader", class_name);
	auto_py *join = py_import_attr("os.path", "join");
	auto_py *path = join ? PyObject_CallFunction(join, "Os", directory, file) : NULL;
	auto_py *loader = class && path ? PyObject_CallFunctionObjArgs(class, path, NULL) : NULL;
	auto_py *missing = py_import_attr("traitlets.config.loader", "ConfigFileNotFound");
	auto_py *loaded = loader ? py_call_method(loader, "load_config", "()") : NULL;
	auto_py *merged = NULL;

	if (!loaded && missing && PyErr_ExceptionMatches(missing)) {
		PyErr_Clear();
		return 0;
	}
	if (loaded)
		merged = py_call_method(into, "merge", "(O)", loaded);
	if (merged)
		return 0;
	*ret_message = failure(path);
	return -1;
}

/* What the daemon needs, whatever the profile says: no colours, and history only when it is asked
 * for. */
static int add_ours(PyObject *into) {
	auto_py *class = py_import_attr("traitlets.config", "Config");
	auto_py *ours = class ? PyObject_CallFunction(class, "{s:{s:O},s:{s:s}}", "HistoryManager",
					"enabled", half.settings->history ? Py_True : Py_False,
					"InteractiveShell", "colors", "nocolor")
			      : NULL;
	auto_py *merged = ours ? py_call_method(into, "merge", "(O)", ours) : NULL;

	return merged ? 0 : -1;
}

PyObject *profile_config(const char *name, char **ret_message) {
	auto_py *found = find_directory(name);
	auto_py *location = found ? PyObject_GetAttrString(found, "location") : NULL;
	auto_py *directories = location ? config_directories(location) : NULL;
	auto_py *class = directories ? py_import_attr("traitlets.config", "Config") : NULL;
	auto_py *whole = class ? PyObject_CallObject(class, NULL) : NULL;

	if (!whole) {
		*ret_message = failure(NULL);
		return NULL;
	}
	for (Py_ssize_t i = 0; i < PyList_Size(directories); i++) {
		borrowed PyObject *at = PyList_GetItem(directories, i);

		if (load_file(whole, at, "PyFileConfigLoader", "ipython_config.py", ret_message) <
				0 ||
			load_file(whole, at, "JSONFileConfigLoader", "ipython_config.json",
				ret_message) < 0)
			return NULL;
	}
	if (add_ours(whole) < 0) {
		*ret_message = failure(NULL);
		return NULL;
	}
	config = Py_NewRef(whole);
	own_directory = take(found);
	return take(whole);
}

PyObject *profile_directory(void) {
	return own_directory;
}

static PyObject *load_extension(PyObject *name) {
	auto_py *manager = PyObject_GetAttrString(ipshell_get(), "extension_manager");
	auto_py *result = manager ? py_call_method(manager, "load_extension", "(O)", name) : NULL;

	if (result && PyUnicode_Check(result) &&
		PyUnicode_CompareWithASCIIString(result, "no load function") == 0) {
		PyErr_SetString(PyExc_ImportError, "it has no load_ipython_extension()");
		return NULL;
	}
	return take(result);
}

static PyObject *run_line(PyObject *line) {
	auto_py *result = py_call_method(ipshell_get(), "run_cell", "(O)", line);

	return result ? py_call_method(result, "raise_error", "()") : NULL;
}

/* A file of Python or of IPython's own syntax, with __file__ as in a script. */
static PyObject *run_file(PyObject *path) {
	borrowed PyObject *namespace = ipshell_namespace();
	auto_py *is_ipython = py_call_method(path, "endswith", "(s)", ".ipy");
	auto_py *kwargs = Py_BuildValue("{s:O}", "raise_exceptions", Py_True);
	auto_py *args = NULL;
	auto_py *run = NULL;
	PyObject *result;

	if (!is_ipython || !kwargs || PyDict_SetItemString(namespace, "__file__", path) < 0)
		return NULL;
	args = is_ipython == Py_True ? Py_BuildValue("(O)", path)
				     : Py_BuildValue("(OO)", path, namespace);
	run = PyObject_GetAttrString(
		ipshell_get(), is_ipython == Py_True ? "safe_execfile_ipy" : "safe_execfile");
	result = run && args ? PyObject_Call(run, args, kwargs) : NULL;
	if (result && PyDict_DelItemString(namespace, "__file__") < 0)
		PyErr_Clear();
	return result;
}

/* Adds the startup files of `directory` to a list. */
static int add_startup_files(PyObject *files, PyObject *directory) {
	static const char *const patterns[] = { "*.py", "*.ipy" };
	auto_py *join = py_import_attr("os.path", "join");
	auto_py *glob = py_import_attr("glob", "glob");

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		auto_py *pattern = join && glob ? PyObject_CallFunction(join, "Oss", directory,
							  "startup", patterns[i])
						: NULL;
		auto_py *found = pattern ? PyObject_CallFunctionObjArgs(glob, pattern, NULL) : NULL;
		auto_py *result = found ? py_call_method(files, "extend", "(O)", found) : NULL;

		if (!result)
			return -1;
	}
	return 0;
}

/* PYTHONSTARTUP when the profile does not say otherwise, then the startup folders in one order. */
static PyObject *startup_files(PyObject *app) {
	auto_py *location = PyObject_GetAttrString(own_directory, "location");
	auto_py *directories = location ? config_directories(location) : NULL;
	auto_py *wants_python = PyObject_GetAttrString(app, "exec_PYTHONSTARTUP");
	const char *python = getenv("PYTHONSTARTUP");
	auto_py *files = PyList_New(0);
	auto_py *first = NULL;

	if (!directories || !wants_python || !files)
		return NULL;
	for (Py_ssize_t i = 0; i < PyList_Size(directories); i++)
		if (add_startup_files(files, PyList_GetItem(directories, i)) < 0)
			return NULL;
	if (PyList_Sort(files) < 0)
		return NULL;
	if (python && *python && PyObject_IsTrue(wants_python) == 1) {
		first = PyUnicode_DecodeFSDefault(python);
		if (!first || PyList_Insert(files, 0, first) < 0)
			return NULL;
	}
	return take(files);
}

/* Runs `step` for each item of a sequence; the first that fails is named in *ret_message. */
static int for_each(PyObject *items, PyObject *(*step)(PyObject *item), char **ret_message) {
	auto_py *iterator = items ? PyObject_GetIter(items) : NULL;

	while (iterator) {
		auto_py *item = PyIter_Next(iterator);
		auto_py *result = item ? step(item) : NULL;

		if (result)
			continue;
		if (!item && !PyErr_Occurred())
			return 0;
		*ret_message = failure(item);
		return -1;
	}
	*ret_message = failure(NULL);
	return -1;
}

int profile_start(char **ret_message) {
	static const struct {
		const char *trait;
		PyObject *(*step)(PyObject *item);
	} steps[] = {
		{ "default_extensions", load_extension },
		{ "extensions", load_extension },
		{ "extra_extension", load_extension },
		{ "", run_file }, /* the startup files */
		{ "exec_lines", run_line },
		{ "exec_files", run_file },
	};
	auto_py *class = py_import_attr("IPython.core.shellapp", "InteractiveShellApp");
	auto_py *args = PyTuple_New(0);
	auto_py *kwargs = Py_BuildValue("{s:O}", "config", config);
	auto_py *app = class && args && kwargs ? PyObject_Call(class, args, kwargs) : NULL;

	if (!app) {
		*ret_message = failure(NULL);
		return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		auto_py *items = *steps[i].trait ? py_getattr_or_null(app, steps[i].trait)
						 : startup_files(app);

		if (!items && !PyErr_Occurred())
			continue;
		/* One extension may also be given as a plain string. */
		if (items && PyUnicode_Check(items)) {
			auto_py *one = PyObject_IsTrue(items) ? Py_BuildValue("[O]", items)
							      : PyList_New(0);

			if (for_each(one, steps[i].step, ret_message) < 0)
				return -1;
			continue;
		}
		if (for_each(items, steps[i].step, ret_message) < 0)
			return -1;
	}
	return 0;
}

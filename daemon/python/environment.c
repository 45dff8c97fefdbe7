/* SPDX-License-Identifier: MIT */
/*
 * The Startup Environment
 *
 * The order is the contract's: everything is validated, then the uv environment is made or
 * verified, then Python starts, gets its paths and variables, imports what is preloaded, and binds
 * the aliases when there is a shell. The first step that fails ends the start; worker.c passes its
 * message through environment_redact() before anybody else sees it.
 */

#include <jansson.h>
#include <string.h>

#include "common/buf.h"
#include "common/utf8.h"
#include "daemon/paths.h"
#include "daemon/python/environment.h"
#include "daemon/python/half.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/provision.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/redact.h"
#include "daemon/python/uv.h"

/* How many entries of sys.path the environment put first; the library paths follow them. */
static Py_ssize_t n_environment_paths;

/* `text` as valid UTF-8 that shows on a terminal: no control characters but newline and tab. */
static void add_printable(struct buf *b, const char *text) {
	size_t len = strlen(text);

	while (len) {
		unsigned code = 0;
		size_t n = utf8_decode(text, len, &code);

		if (!n)
			buf_add_str(b, "\xef\xbf\xbd");
		else if ((code >= ' ' && code != 0x7f) || code == '\n' || code == '\t')
			buf_add(b, text, n);
		text += n ? n : 1;
		len -= n ? n : 1;
	}
	while (b->len && b->data[b->len - 1] == '\n')
		b->len--;
}

char *environment_redact(char *text) {
	auto_free char *given = text, *redacted = NULL;
	auto_buf struct buf b = BUF_NULL;

	if (!given)
		return NULL;
	redacted = redact_text(half.settings, given, strlen(given));
	if (!redacted)
		return NULL;
	add_printable(&b, redacted);
	return b.has_failed ? NULL
			    : pyerr_bound(b.data, b.len, half.settings->max_text_chars, NULL);
}

/* The common end of a failed step. The message is taken. */
static int fail(enum shell_phase phase, char *message, enum shell_phase *ret_phase,
	char **ret_message) {
	*ret_phase = phase;
	*ret_message = message;
	return -1;
}

static void on_phase(void *ctx, enum shell_phase phase) {
	half.host->phase(half.host->ctx, phase);
}

/* A directory of libraries that is not there, or reached through a link; NULL: none. */
static char *library_complaint(void) {
	for (char **path = half.settings->library_paths; *path; path++) {
		auto_free char *complaint = paths_check_library(*path);

		if (complaint)
			return answer_message("IPYTHON_MCP_LIBRARY_PATHS: %s", complaint);
	}
	return NULL;
}

int environment_provision(char **ret_site_packages, enum shell_phase *ret_phase,
	char **ret_message) {
	const struct provision p = {
		.settings = half.settings,
		.interpreter = half.interpreter,
		.on_phase = on_phase,
	};
	char *message = library_complaint();

	/* Before minutes of provisioning, not after them. */
	if (message)
		return fail(SHELL_LIBRARY_PATHS, message, ret_phase, ret_message);
	*ret_site_packages = NULL;
	if (!half.settings->environment_workspace)
		return 0;
	return provision_run(&p, ret_site_packages, ret_phase, ret_message) ? 0 : -1;
}

void environment_cancel(void) {
	uv_cancel();
}

/* The raised exception as a message that says `what` failed; cleared. Owned by the caller. */
static char *take_exception(const char *what) {
	auto_answer_error struct answer_error e = { 0 };

	pyerr_take("startup_failed", &e);
	if (e.traceback)
		return answer_message("%s\n%s", what, e.traceback);
	return answer_message("%s: %s: %s", what, e.error_type ? e.error_type : "exception",
		e.message ? e.message : "");
}

/* Whether the list holds an equal item; -1 with an exception. */
static int list_has(PyObject *list, PyObject *item) {
	return PySequence_Contains(list, item);
}

/* Appends the items of `from` that `into` does not have yet. 0 or -1. */
static int list_extend_new(PyObject *into, PyObject *from) {
	for (Py_ssize_t i = 0; i < PyList_Size(from); i++) {
		PyObject *item = PyList_GetItem(from, i); /* borrowed */
		int has = item ? list_has(into, item) : -1;

		if (has < 0 || (!has && PyList_Append(into, item) < 0))
			return -1;
	}
	return 0;
}

/*
 * Makes sys.path begin with its first `n_kept` entries and then `entries`; what is listed again
 * later goes. 0 or -1 with an exception.
 */
static int put_on_path(Py_ssize_t n_kept, PyObject *entries) {
	borrowed PyObject *path = PySys_GetObject("path");
	auto_py *result = NULL;

	if (!path || !PyList_Check(path)) {
		PyErr_SetString(PyExc_RuntimeError, "sys.path is no list");
		return -1;
	}
	result = PyList_GetSlice(path, 0, n_kept);
	if (!result || list_extend_new(result, entries) < 0 || list_extend_new(result, path) < 0)
		return -1;
	return PyList_SetSlice(path, 0, PyList_Size(path), result);
}

/* The environment's packages, and what its .pth files name, in front of everything. 0 or -1. */
static int add_environment(const char *site_packages) {
	borrowed PyObject *path = PySys_GetObject("path");
	auto_py *before = path ? PyList_GetSlice(path, 0, PyList_Size(path)) : NULL;
	auto_py *directory = PyUnicode_DecodeFSDefault(site_packages);
	auto_py *first = PyList_New(0), *add = NULL, *known = NULL;

	if (!before || !directory || !first || PyList_Append(first, directory) < 0)
		return -1;
	/* site appends; where a .pth file puts something itself, it stays among the new entries. */
	add = py_import_attr("site", "addsitedir");
	known = add ? PyObject_CallFunctionObjArgs(add, directory, NULL) : NULL;
	path = known ? PySys_GetObject("path") : NULL;
	if (!path)
		return -1;
	for (Py_ssize_t i = 0; i < PyList_Size(path); i++) {
		PyObject *item = PyList_GetItem(path, i); /* borrowed */
		int is_old = item ? list_has(before, item) : -1;
		int is_listed = is_old ? is_old : list_has(first, item);

		if (is_listed < 0 || (!is_listed && PyList_Append(first, item) < 0))
			return -1;
	}
	n_environment_paths = PyList_Size(first);
	return put_on_path(0, first);
}

/* Sets the configured variables in os.environ, and so in the process. 0 or -1. */
static int set_variables(void) {
	json_t *variables = json_loads(half.settings->environment_variables, 0, NULL);
	auto_py *environment = py_import_attr("os", "environ");
	const char *name;
	json_t *value;
	int result = variables && environment ? 0 : -1;

	if (!variables)
		PyErr_NoMemory();
	json_object_foreach(variables, name, value) {
		auto_py *key = NULL, *text = NULL;

		if (result < 0)
			break;
		key = PyUnicode_FromString(name);
		text = PyUnicode_FromString(json_string_value(value));
		if (!key || !text || PyObject_SetItem(environment, key, text) < 0)
			result = -1;
	}
	json_decref(variables);
	return result;
}

/* The library paths, after the environment's entries and before the interpreter's own. 0 or -1. */
static int add_libraries(void) {
	auto_py *entries = PyList_New(0);

	if (!entries)
		return -1;
	for (char **path = half.settings->library_paths; *path; path++) {
		auto_py *entry = PyUnicode_DecodeFSDefault(*path);

		if (!entry || PyList_Append(entries, entry) < 0)
			return -1;
	}
	return put_on_path(n_environment_paths, entries);
}

int environment_apply(const char *site_packages, enum shell_phase *ret_phase, char **ret_message) {
	char *complaint = NULL;

	if (site_packages && add_environment(site_packages) < 0)
		return fail(SHELL_REUSE_VALIDATION,
			take_exception("the environment's packages cannot be put on sys.path"),
			ret_phase, ret_message);
	if (set_variables() < 0)
		return fail(SHELL_CONFIGURATION,
			take_exception("IPYTHON_MCP_ENVIRONMENT_VARIABLES cannot be set"),
			ret_phase, ret_message);
	if (!half.settings->library_paths[0])
		return 0;
	on_phase(NULL, SHELL_LIBRARY_PATHS);
	/* Once more: provisioning may have taken minutes. */
	complaint = library_complaint();
	if (!complaint && add_libraries() < 0)
		complaint = take_exception("IPYTHON_MCP_LIBRARY_PATHS cannot be put on sys.path");
	return complaint ? fail(SHELL_LIBRARY_PATHS, complaint, ret_phase, ret_message) : 0;
}

int environment_preload(enum shell_phase *ret_phase, char **ret_message) {
	if (half.settings->preload_modules[0])
		on_phase(NULL, SHELL_PRELOAD);
	for (char **name = half.settings->preload_modules; *name; name++) {
		auto_py *module = PyImport_ImportModule(*name);
		auto_free char *what = NULL;

		if (module)
			continue;
		what = answer_message("IPYTHON_MCP_PRELOAD_MODULES: %s cannot be imported", *name);
		return fail(SHELL_PRELOAD, take_exception(what ? what : "preload"), ret_phase,
			ret_message);
	}
	return 0;
}

int environment_bind(enum shell_phase *ret_phase, char **ret_message) {
	json_t *aliases = json_loads(half.settings->module_aliases, 0, NULL);
	const char *module_name = NULL;
	json_t *alias;
	char *complaint = NULL;

	if (!aliases)
		return fail(SHELL_BINDING, NULL, ret_phase, ret_message);
	if (json_object_size(aliases))
		on_phase(NULL, SHELL_BINDING);
	json_object_foreach(aliases, module_name, alias) {
		auto_py *module = PyImport_ImportModule(module_name);
		auto_free char *what = NULL;

		if (module &&
			PyDict_SetItemString(ipshell_namespace(), json_string_value(alias),
				module) == 0)
			continue;
		what = answer_message("IPYTHON_MCP_MODULE_ALIASES: %s cannot be bound",
			module_name);
		complaint = take_exception(what ? what : "binding");
		break;
	}
	json_decref(aliases);
	return complaint ? fail(SHELL_BINDING, complaint, ret_phase, ret_message) : 0;
}

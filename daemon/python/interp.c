/* SPDX-License-Identifier: MIT */
/*
 * The Interpreter
 *
 * Start and end of CPython on the Python thread. Everything that the limited API of 3.11 does not
 * declare is looked up here by name: the libpython beside us may be any later one, and what one
 * version dropped another does not have yet.
 */

#include <dlfcn.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "daemon/python/interp.h"

/* From 3.14 on: PyInitConfig, an opaque struct. */
struct init_config {
	void *(*create)(void);
	void (*free)(void *config);
	int (*set_int)(void *config, const char *name, int64_t value);
	int (*set_str)(void *config, const char *name, const char *value);
	int (*get_error)(void *config, const char **ret_message);
	int (*initialize)(void *config);
};

/*
 * Agents start us without LANG. `python` itself would then coerce the locale, an embedded one stays
 * with ASCII for files and their names; so the same is done here, for children as well.
 */
static void coerce_locale(void) {
	const char *all = getenv("LC_ALL");
	const char *name;

	setlocale(LC_CTYPE, "");
	name = setlocale(LC_CTYPE, NULL);
	if (name && strcmp(name, "C") != 0 && strcmp(name, "POSIX") != 0)
		return;
	setenv(all && *all ? "LC_ALL" : "LC_CTYPE", "C.UTF-8", 1);
	setlocale(LC_CTYPE, "C.UTF-8");
}

static bool find_init_config(struct init_config *c) {
	*(void **)&c->create = dlsym(RTLD_DEFAULT, "PyInitConfig_Create");
	*(void **)&c->free = dlsym(RTLD_DEFAULT, "PyInitConfig_Free");
	*(void **)&c->set_int = dlsym(RTLD_DEFAULT, "PyInitConfig_SetInt");
	*(void **)&c->set_str = dlsym(RTLD_DEFAULT, "PyInitConfig_SetStr");
	*(void **)&c->get_error = dlsym(RTLD_DEFAULT, "PyInitConfig_GetError");
	*(void **)&c->initialize = dlsym(RTLD_DEFAULT, "Py_InitializeFromInitConfig");
	return c->create && c->free && c->set_int && c->set_str && c->get_error && c->initialize;
}

/* A configuration starts out isolated; this undoes what an ordinary `python` does not have. */
static int start_with_config(
	const struct init_config *c, const char *executable, char **ret_message) {
	static const struct {
		const char *name;
		int64_t value;
	} options[] = {
		{ "isolated", 0 },
		{ "use_environment", 1 },
		{ "user_site_directory", 1 },
		{ "safe_path", 0 },
		{ "configure_locale", 1 },
		{ "install_signal_handlers", 1 },
		{ "parse_argv", 0 },
	};
	void *config = c->create();
	const char *message = NULL;
	int r = config ? 0 : -1;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(options); i++)
		r = c->set_int(config, options[i].name, options[i].value);
	if (r == 0)
		r = c->set_str(config, "program_name", executable);
	if (r == 0)
		r = c->set_str(config, "executable", executable);
	if (r == 0)
		r = c->initialize(config);
	if (r != 0) {
		if (config)
			c->get_error(config, &message);
		*ret_message = answer_message("Python could not be initialised for %s: %s",
			executable, message ? message : "memory is short");
	}
	if (config)
		c->free(config);
	return r == 0 ? 0 : -1;
}

/*
 * Up to 3.13, where a fatal fault of the installation ends the process with Python's own message.
 */
static int start_with_name(const char *executable, char **ret_message) {
	void (*set_program_name)(const wchar_t *name);
	void (*initialize)(int with_signals);
	wchar_t *name;
	size_t n = mbstowcs(NULL, executable, 0);

	*(void **)&set_program_name = dlsym(RTLD_DEFAULT, "Py_SetProgramName");
	*(void **)&initialize = dlsym(RTLD_DEFAULT, "Py_InitializeEx");
	/* Python keeps the pointer: never freed. */
	name = n == (size_t)-1 ? NULL : calloc(n + 1, sizeof(*name));
	if (!set_program_name || !initialize || !name) {
		*ret_message =
			answer_message("the libpython of %s lacks its start functions, or its "
				       "path is not valid in the locale's encoding; use another "
				       "interpreter (IPYTHON_MCP_PYTHON)",
				executable);
		return -1;
	}
	mbstowcs(name, executable, n + 1);
	set_program_name(name);
	initialize(1);
	return 0;
}

/* As in an interactive `python`: modules of the working directory first, an empty argv[0]. */
static int set_paths(void) {
	auto_py *argv = Py_BuildValue("[s]", "");
	auto_py *empty = PyUnicode_FromString("");
	borrowed PyObject *path = PySys_GetObject("path");
	borrowed PyObject *first;

	if (!argv || !empty || !path || !PyList_Check(path) || PySys_SetObject("argv", argv) < 0)
		return -1;
	first = PyList_Size(path) ? PyList_GetItem(path, 0) : NULL;
	if (first && PyUnicode_Check(first) && PyUnicode_GetLength(first) == 0)
		return 0;
	return PyList_Insert(path, 0, empty);
}

int interp_start(const struct shell_interpreter *interpreter, char **ret_message) {
	struct init_config config;
	int r;

	coerce_locale();
	if (find_init_config(&config))
		r = start_with_config(&config, interpreter->executable, ret_message);
	else
		r = start_with_name(interpreter->executable, ret_message);
	if (r < 0)
		return -1;
	if (set_paths() < 0) {
		PyErr_Clear();
		*ret_message = answer_message(
			"sys.path of %s could not be set up", interpreter->executable);
		return -1;
	}
	return 0;
}

void interp_end(void) {
	Py_FinalizeEx();
}

int interp_add_audit_hook(int (*hook)(const char *event, PyObject *args, void *ctx), void *ctx) {
	int (*add)(int (*hook)(const char *event, PyObject *args, void *ctx), void *ctx);

	*(void **)&add = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook");
	return add ? add(hook, ctx) : -1;
}

bool interp_function_parts(PyObject *function, PyObject **ret_parts) {
	static const char *const names[INTERP_N_FUNCTION_PARTS] = { "PyFunction_GetCode",
		"PyFunction_GetDefaults", "PyFunction_GetKwDefaults", "PyFunction_GetAnnotations" };
	static PyObject *(*get[INTERP_N_FUNCTION_PARTS])(PyObject * function);
	static bool is_looked_up, is_whole = true;

	for (size_t i = 0; !is_looked_up && i < ARRAY_LEN(names); i++) {
		*(void **)&get[i] = dlsym(RTLD_DEFAULT, names[i]);
		is_whole &= get[i] != NULL;
	}
	is_looked_up = true;
	for (size_t i = 0; is_whole && i < ARRAY_LEN(names); i++) {
		ret_parts[i] = get[i](function);
		if (!ret_parts[i]) /* annotations are evaluated from 3.14 on, and may raise */
			PyErr_Clear();
	}
	return is_whole;
}

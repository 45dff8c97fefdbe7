/* SPDX-License-Identifier: MIT */
/*
 * The Shell
 *
 * The one InteractiveShell. It is IPython's own class, not a subclass: what must differ is shadowed
 * on the instance (here for errors and shell commands, in display.c for output), so that extensions
 * find what they know. Whoever wants an own configuration names a profile, which profile.c loads.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/python/half.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/profile.h"
#include "daemon/python/pyerr.h"

static PyObject *shell;
static PyObject *shown;   /* what showtraceback() was last asked to show since the cell began */
static bool is_swallowed; /* whoever asked went on as if nothing had happened */
static bool is_quiet;
static long cache_size; /* values that Out keeps */
static char *version, *package_directory;

/* exit() and quit(): the cell ends, the shell lives on. */
static PyObject *ask_exit(PyObject *self, PyObject *args) {
	PyErr_SetNone(PyExc_SystemExit);
	return NULL;
}

/* sys.last_value and friends, for %tb, %debug and pdb.pm(). */
static void remember_last(PyObject *exception) {
	auto_py *traceback = PyException_GetTraceback(exception);

	PySys_SetObject("last_type", (PyObject *)Py_TYPE(exception));
	PySys_SetObject("last_value", exception);
	PySys_SetObject("last_traceback", traceback ? traceback : Py_None);
	PySys_SetObject("last_exc", exception);
}

/* IPython warns after a SystemExit that `exit` is the way out, which here is no help to anybody. */
static void silence_exit_warning(void) {
	auto_py *filter = py_import_attr("warnings", "filterwarnings");
	auto_py *result =
		filter ? PyObject_CallFunction(filter, "ss", "ignore", "To exit: use ") : NULL;

	if (!result)
		PyErr_Clear();
}

/* Keeps the exception that a caller wants to show, for execute.c. */
static void note_shown(PyObject *exception, bool is_told) {
	remember_last(exception);
	if (PyObject_TypeCheck(exception, (PyTypeObject *)PyExc_SystemExit))
		silence_exit_warning();
	Py_INCREF(exception);
	Py_XDECREF(shown);
	shown = exception;
	is_swallowed = !is_told;
}

/*
 * showtraceback, showsyntaxerror, showindentationerror: the failure is told in the answer's `error`
 * alone. Magics such as %run and %%time show an exception and then end well; it is kept so that the
 * cell does not look like a success. Printed are only what a formatter of a displayed object
 * raised, which comes as an argument while it is handled, and what %tb asks for when nothing is.
 */
static PyObject *show_error(PyObject *self, PyObject *args, PyObject *kwargs) {
	auto_py *exc_info = py_import_attr("sys", "exc_info");
	auto_py *info = exc_info ? PyObject_CallObject(exc_info, NULL) : NULL;
	borrowed PyObject *given = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL;
	borrowed PyObject *handled, *printed = NULL;

	if (!info)
		return NULL;
	handled = PyTuple_GetItem(info, 1);
	if (given && PyTuple_Check(given) && PyTuple_Size(given) == 3) {
		if (PyTuple_GetItem(given, 1) == handled && !is_quiet)
			printed = handled;
	} else if (PyExceptionInstance_Check(handled)) {
		/* run_cell's own way to call it; the result tells the error as well. */
		note_shown(
			handled, kwargs && PyDict_GetItemString(kwargs, "running_compiled_code"));
	} else {
		printed = PySys_GetObject("last_value");
	}
	if (printed && PyExceptionInstance_Check(printed))
		pyerr_print(printed);
	PyErr_Clear();
	Py_RETURN_NONE;
}

/* IPython 9 keeps a formatted copy of every error for ever, and formats it to that end. */
static PyObject *format_for_storage(PyObject *self, PyObject *args, PyObject *kwargs) {
	return PyDict_New();
}

int ipshell_shadow(PyObject *object, PyMethodDef *methods) {
	for (; methods->ml_name; methods++) {
		auto_py *function = PyCFunction_NewEx(methods, NULL, NULL);
		auto_py *old = py_getattr_or_null(object, methods->ml_name);

		if (!function || (!old && PyErr_Occurred()))
			return -1;
		/* Only what this version of IPython has, but for the exit that it lacks. */
		if ((old || methods->ml_meth == ask_exit) &&
			PyObject_SetAttrString(object, methods->ml_name, function) < 0)
			return -1;
	}
	return 0;
}

#define WITH_KEYWORDS(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef shell_shadows[] = {
	{ "ask_exit", ask_exit, METH_VARARGS, "Ends the cell; the shell lives on." },
	{ "showtraceback", WITH_KEYWORDS(show_error), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "showsyntaxerror", WITH_KEYWORDS(show_error), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "showindentationerror", WITH_KEYWORDS(show_error), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "_format_exception_for_storage", WITH_KEYWORDS(format_for_storage),
		METH_VARARGS | METH_KEYWORDS, NULL },
	{ },
};

/* IPython's version and place, which must be there before any error is described. */
static int find_package(void) {
	auto_py *module = PyImport_ImportModule("IPython");
	auto_py *number = module ? PyObject_GetAttrString(module, "__version__") : NULL;
	auto_py *file = number ? PyObject_GetAttrString(module, "__file__") : NULL;
	auto_py *number_text = file ? py_utf8(number) : NULL;
	auto_py *file_text = number_text ? py_utf8(file) : NULL;
	char *slash;

	if (!file_text)
		return -1;
	version = strdup(PyBytes_AsString(number_text));
	package_directory = strdup(PyBytes_AsString(file_text));
	if (!version || !package_directory) {
		PyErr_NoMemory();
		return -1;
	}
	slash = strrchr(package_directory, '/');
	if (slash)
		slash[1] = '\0';
	return 0;
}

/*
 * The directory that IPython keeps its things in: its own choice when that can be written, else a
 * private one beside the saved images. "" leaves it to IPython. NULL with an exception.
 */
static PyObject *ipython_directory(void) {
	const char *configured = getenv("IPYTHONDIR");
	auto_py *expand = py_import_attr("os.path", "expanduser");
	auto_py *directory = expand ? PyObject_CallFunction(expand, "s",
					      configured && *configured ? configured : "~/.ipython")
				    : NULL;
	auto_py *bytes = directory ? py_utf8(directory) : NULL;
	const char *path = bytes ? PyBytes_AsString(bytes) : NULL;

	if (!path)
		return NULL;
	/* Made rather than asked about: the answer is then certain. IPython would make it, too. */
	if ((mkdir(path, 0777) == 0 || errno == EEXIST) && access(path, W_OK | X_OK) == 0)
		return take(directory);
	if (half.files_directory)
		return PyUnicode_FromFormat("%s/ipython", half.files_directory);
	return PyUnicode_FromString("");
}

/* What differs from a bare shell when no profile is named. */
static PyObject *default_config(void) {
	auto_py *class = py_import_attr("traitlets.config", "Config");

	return class ? PyObject_CallFunction(class, "{s:{s:O},s:{s:s}}", "HistoryManager",
			       "enabled", half.settings->history ? Py_True : Py_False,
			       "InteractiveShell", "colors", "nocolor")
		     : NULL;
}

/*
 * Builds the instance. VIRTUAL_ENV is hidden meanwhile: IPython would put the packages of that
 * environment before ours, which another interpreter may have been built for.
 */
static PyObject *build(PyObject *config) {
	auto_py *class = py_import_attr("IPython.core.interactiveshell", "InteractiveShell");
	auto_py *directory = ipython_directory();
	auto_py *variables = py_import_attr("os", "environ");
	auto_py *hidden =
		variables ? py_call_method(variables, "pop", "(sO)", "VIRTUAL_ENV", Py_None) : NULL;
	auto_py *create = class ? PyObject_GetAttrString(class, "instance") : NULL;
	auto_py *args = PyTuple_New(0);
	auto_py *kwargs = Py_BuildValue("{s:O}", "config", config);
	borrowed PyObject *profile = profile_directory();
	PyObject *built = NULL;

	if (!create || !directory || !hidden || !args || !kwargs)
		return NULL;
	if (PyObject_IsTrue(directory) &&
		PyDict_SetItemString(kwargs, "ipython_dir", directory) < 0)
		return NULL;
	if (profile && PyDict_SetItemString(kwargs, "profile_dir", profile) < 0)
		return NULL;
	built = PyObject_Call(create, args, kwargs);
	if (built && hidden != Py_None &&
		PyMapping_SetItemString(variables, "VIRTUAL_ENV", hidden) < 0)
		PyErr_Clear();
	return built;
}

/*
 * `!command` writes to our descriptors itself, as in IPython's terminal: no terminal is faked
 * between, and its errors stay apart from its output.
 */
static int use_plain_system(void) {
	auto_py *raw = PyObject_GetAttrString(shell, "system_raw");

	return raw ? PyObject_SetAttrString(shell, "system", raw) : -1;
}

/*
 * IPython drops a fifth of a full cache with a warning. Its own limit is set one higher, so that
 * execute.c comes first and drops one at a time.
 */
static int raise_cache_limit(void) {
	auto_py *hook = PyObject_GetAttrString(shell, "displayhook");
	auto_py *size = hook ? PyObject_GetAttrString(hook, "cache_size") : NULL;
	auto_py *raised = NULL;

	cache_size = size ? PyLong_AsLong(size) : -1;
	if (cache_size <= 0)
		return PyErr_Occurred() ? -1 : 0;
	raised = PyLong_FromLong(cache_size + 1);
	return raised ? PyObject_SetAttrString(hook, "cache_size", raised) : -1;
}

/* The message of an exception that ended the start; owned by the caller. */
static char *start_message(const char *doing) {
	struct answer_error e;
	char *message;

	pyerr_take("startup_failed", &e);
	message = answer_message("%s: %s: %s", doing, e.error_type ? e.error_type : "error",
		e.message ? e.message : "");
	answer_error_deinit(&e);
	return message;
}

int ipshell_new(char **ret_message) {
	const char *executable = half.interpreter->executable;
	auto_py *config = NULL;

	if (find_package() < 0) {
		bool is_missing = PyErr_ExceptionMatches(PyExc_ModuleNotFoundError);

		if (!is_missing) {
			*ret_message = start_message("IPython cannot be imported");
			return -1;
		}
		PyErr_Clear();
		*ret_message =
			answer_message("there is no IPython in the environment of %s; install it "
				       "with: %s -m pip install ipython",
				executable, executable);
		return -1;
	}
	if (strtol(version, NULL, 10) < 8) {
		*ret_message =
			answer_message("IPython %s in the environment of %s is too old, 8.0 or "
				       "later is needed; install it with: %s -m pip install -U "
				       "ipython",
				version, executable, executable);
		return -1;
	}
	config = half.settings->ipython_profile
			 ? profile_config(half.settings->ipython_profile, ret_message)
			 : default_config();
	if (!config) {
		if (!*ret_message)
			*ret_message = start_message("IPython's configuration");
		return -1;
	}
	shell = build(config);
	if (!shell || ipshell_shadow(shell, shell_shadows) < 0 || use_plain_system() < 0 ||
		raise_cache_limit() < 0) {
		*ret_message = start_message("IPython's shell cannot be built");
		return -1;
	}
	return 0;
}

PyObject *ipshell_get(void) {
	return shell;
}

PyObject *ipshell_namespace(void) {
	PyObject *namespace = shell ? PyObject_GetAttrString(shell, "user_ns") : NULL;

	PyErr_Clear();
	/* The shell keeps it alive. */
	Py_XDECREF(namespace);
	return namespace;
}

const char *ipshell_ipython_version(void) {
	return version ? version : "";
}

const char *ipshell_package_directory(void) {
	return package_directory ? package_directory : "";
}

long ipshell_cache_size(void) {
	return cache_size;
}

PyObject *ipshell_take_shown(bool *ret_swallowed) {
	*ret_swallowed = is_swallowed;
	return take(shown);
}

void ipshell_set_quiet(bool quiet) {
	is_quiet = quiet;
}

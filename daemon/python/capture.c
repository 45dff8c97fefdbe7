/* SPDX-License-Identifier: MIT */
/*
 * Audit
 *
 * One audit hook in C sees what cannot be seen otherwise: that a child is about to start, so that
 * what was printed before it must be in the pipe first, whose child that will be, and that
 * matplotlib's pyplot is about to be imported. multiprocessing's spawn raises no event, but flushes
 * by itself. The hook runs for every event of the process: it looks at a letter before it compares.
 */

#include <string.h>

#include "daemon/python/capture.h"
#include "daemon/python/children.h"
#include "daemon/python/display.h"
#include "daemon/python/figures.h"
#include "daemon/python/half.h"
#include "daemon/python/interp.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/ipshell.h"

/* The innermost frame of the main thread; new reference, NULL without an exception. */
static PyObject *main_frame(void) {
	auto_py *function = py_import_attr("sys", "_current_frames");
	auto_py *frames = function ? PyObject_CallObject(function, NULL) : NULL;
	auto_py *main = py_import_attr("threading", "main_thread");
	auto_py *thread = main ? PyObject_CallObject(main, NULL) : NULL;
	auto_py *id = thread ? PyObject_GetAttrString(thread, "ident") : NULL;
	PyObject *frame = frames && id ? PyDict_GetItemWithError(frames, id) : NULL;

	PyErr_Clear();
	return Py_XNewRef(frame);
}

/* An attribute of a frame's code as text; "" when it cannot be told. Borrowed from *keep. */
static const char *code_text(PyObject *frame, const char *attribute, PyObject **keep) {
	auto_py *code = PyObject_GetAttrString(frame, "f_code");
	auto_py *name = code ? PyObject_GetAttrString(code, attribute) : NULL;

	Py_XDECREF(*keep);
	*keep = name ? py_utf8(name) : NULL;
	PyErr_Clear();
	return *keep ? PyBytes_AsString(*keep) : "";
}

/*
 * subprocess.run() and call(), with all that is built on them: they wait for their child, and end
 * it when an exception comes. At a terminal it would hear Ctrl-C itself; without that they would
 * wait a quarter of a second for it to have heard.
 */
static bool is_waiting_call(PyObject *frame, const char *file) {
	static const char module[] = "/subprocess.py";
	size_t len = strlen(file);
	auto_py *keep = NULL;
	const char *name;

	if (len < sizeof(module) || strcmp(file + len - (sizeof(module) - 1), module) != 0)
		return false;
	name = code_text(frame, "co_name", &keep);
	return !strcmp(name, "run") || !strcmp(name, "call");
}

/*
 * Whether the call waits for the child that starts now: then it is ended with the call. IPython's
 * own code or a waiting function of subprocess stands on the main thread's stack, nearer than the
 * cell.
 * (%%bash starts its child from a thread of IPython's own and waits for it on the main one.)
 */
static bool is_command(void) {
	const char *package = ipshell_package_directory();
	PyObject *frame = *package ? main_frame() : NULL;
	auto_py *keep = NULL;
	bool is = false;

	while (frame && frame != Py_None) {
		const char *file = code_text(frame, "co_filename", &keep);
		PyObject *back;

		is = !strncmp(file, package, strlen(package)) || is_waiting_call(frame, file);
		if (is || !strncmp(file, "<ipython-input-", strlen("<ipython-input-")))
			break;
		back = PyObject_GetAttrString(frame, "f_back");
		Py_DECREF(frame);
		frame = back;
	}
	Py_XDECREF(frame);
	PyErr_Clear();
	return is;
}

static void on_child(const char *event) {
	capture_flush();
	if (half_is_forked_child())
		return;
	/* One child may come with several events: subprocess.Popen() uses os.posix_spawn() or
	 * os.fork(). */
	if (!strcmp(event, "os.system") || is_command())
		interrupt_note_command();
	else
		children_note_own();
}

static bool is_child_event(const char *event) {
	static const char *const events[] = { "subprocess.Popen", "os.system", "os.fork",
		"os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "pty.spawn" };

	if (event[0] != 's' && event[0] != 'o' && event[0] != 'p')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (!strcmp(event, events[i]))
			return true;
	return false;
}

static int on_event(const char *event, PyObject *args, void *ctx) {
	PyObject *type, *value, *traceback;
	bool is_child = is_child_event(event);

	if (!is_child && (event[0] != 'i' || strcmp(event, "import") != 0))
		return 0;
	PyErr_Fetch(&type, &value, &traceback);
	if (is_child)
		on_child(event);
	else
		figures_on_import(args);
	PyErr_Restore(type, value, traceback);
	return 0;
}

int capture_init(void) {
	if (interp_add_audit_hook(on_event, NULL) == 0)
		return 0;
	if (!PyErr_Occurred())
		PyErr_SetString(PyExc_RuntimeError, "this Python takes no audit hook");
	return -1;
}

int capture_install(void) {
	return display_install() < 0 || figures_install() < 0 ? -1 : 0;
}

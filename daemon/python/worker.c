/* SPDX-License-Identifier: MIT */
/*
 * The Python Thread
 *
 * Starts Python, waits for a call without the GIL, runs it, hands back the reply. One call runs at
 * a time, and all that belongs to one call happens here in order: directory, streams, interrupt
 * armed, handler, flush, registrations, interrupt disarmed, reply. The thread that initialises
 * Python is Python's main thread; user code runs on no other of ours.
 *
 * User code may fork. The child returns into these functions with a copy of everything; it leaves
 * at the first point that notices, and never reaches the border, whose locks and descriptors are
 * not its.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/python/capture.h"
#include "daemon/python/convert.h"
#include "daemon/python/cwd.h"
#include "daemon/python/dyntool.h"
#include "daemon/python/environment.h"
#include "daemon/python/half.h"
#include "daemon/python/interp.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/loop.h"
#include "daemon/python/profile.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/ticker.h"
#include "daemon/python/toolbox.h"
#include "daemon/python/worker.h"

struct half half;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct shell_call *next; /* submitted, not yet taken */
	bool is_stopping;
	bool is_in_loop; /* the wait runs IPython's loop: somebody has to stop it */
} inbox = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

static const struct shell_call *current;

bool half_is_forked_child(void) {
	return getpid() != half.pid;
}

const struct shell_call *worker_call(void) {
	return current;
}

/* The exit status that Python gives to a script which ends so. */
static int exit_status(PyObject *exception) {
	auto_py *code = NULL;

	if (!exception)
		return 0;
	if (!PyObject_TypeCheck(exception, (PyTypeObject *)PyExc_SystemExit)) {
		pyerr_print(exception);
		return 1;
	}
	code = PyObject_GetAttrString(exception, "code");
	if (!code || code == Py_None)
		return 0;
	if (PyLong_Check(code))
		return (int)(PyLong_AsLong(code) & 0xff);
	PySys_FormatStderr("%S\n", code);
	return 1;
}

void worker_leave_child(PyObject *exception) {
	int status = exit_status(exception);

	PyErr_Clear();
	capture_flush();
	_exit(status);
}

/* A last resort for what is nobody's fault but ours or the memory's. */
static void answer_failure(struct tool_run *run) {
	auto_answer_error struct answer_error error = { 0 };

	toolbox_take_error(run, "execution_error", &error);
	run->answer = answer_free(run->answer);
	run->answer = answer_new();
	if (!run->answer)
		return;
	answer_add_bool(run->answer, "ok", false, false);
	answer_set_error(run->answer, &error, run->call->profile);
}

static void run_tool(struct tool_run *run) {
	auto_py *arguments = convert_from_json(run->call->arguments, run->call->arguments_len);

	run->arguments = arguments;
	run->answer = answer_new();
	if (!run->answer)
		return;
	if (!arguments || toolbox_find(run->call->tool)(run) < 0)
		answer_failure(run);
	run->arguments = NULL;
}

/* True when user code goes on after the call: threads, or tasks on IPython's loop. */
static bool is_lively(void) {
	auto_py *count = py_import_attr("threading", "active_count");
	auto_py *n = count ? PyObject_CallObject(count, NULL) : NULL;
	bool has_threads = n && PyLong_Check(n) && PyLong_AsLong(n) > 1;
	bool has_tasks = loop_enter();

	PyErr_Clear();
	if (has_tasks)
		loop_leave();
	return has_threads || has_tasks;
}

/* One call from its directory to its reply. Takes the call. */
static void serve(struct shell_call *call) {
	struct tool_run run = { .call = call };
	struct shell_reply *reply = calloc(1, sizeof(*reply));
	enum shell_reason reason;
	char *note = NULL;

	current = call;
	cwd_enter(call->cwd, &note);
	ticker_begin_call();
	interrupt_arm(call->id);
	if (capture_restore_streams() < 0)
		PyErr_Clear();

	run_tool(&run);
	if (half_is_forked_child())
		worker_leave_child(NULL);
	PyErr_Clear();

	capture_flush();
	dyntool_check();
	interrupt_disarm(&reason);
	ticker_end_call(is_lively());
	current = NULL;

	if (reply) {
		reply->call = call->id;
		reply->answer = run.answer;
		reply->cwd = cwd_tell();
		reply->cwd_note = note;
		half.host->reply(half.host->ctx, reply);
	} else {
		answer_free(run.answer);
		free(note);
	}
	shell_call_free(call);
}

/* Waits for a call or the end without the GIL, which is held on entry and return. */
static void sleep_for_call(void) {
	PyThreadState *state = PyEval_SaveThread();

	pthread_mutex_lock(&inbox.lock);
	while (!inbox.next && !inbox.is_stopping)
		pthread_cond_wait(&inbox.wake, &inbox.lock);
	pthread_mutex_unlock(&inbox.lock);
	PyEval_RestoreThread(state);
}

/* The same by running IPython's loop, whose tasks go on meanwhile. May return without a call. */
static void loop_for_call(void) {
	bool is_needed;

	pthread_mutex_lock(&inbox.lock);
	is_needed = !inbox.next && !inbox.is_stopping;
	inbox.is_in_loop = is_needed;
	pthread_mutex_unlock(&inbox.lock);
	if (!is_needed) {
		loop_leave();
		return;
	}
	loop_run();
	if (half_is_forked_child())
		worker_leave_child(NULL);
	pthread_mutex_lock(&inbox.lock);
	inbox.is_in_loop = false;
	pthread_mutex_unlock(&inbox.lock);
}

/* The next call; NULL: time to stop. */
static struct shell_call *wait_for_call(void) {
	for (;;) {
		struct shell_call *call;
		bool is_stopping;

		if (loop_enter())
			loop_for_call();
		else
			sleep_for_call();

		pthread_mutex_lock(&inbox.lock);
		call = take(inbox.next);
		is_stopping = inbox.is_stopping;
		pthread_mutex_unlock(&inbox.lock);
		if (!is_stopping && !call)
			continue;
		if (is_stopping)
			shell_call_free(take(call));
		return call;
	}
}

void worker_submit(struct shell_call *call) {
	bool is_in_loop;

	interrupt_announce(call->id);
	pthread_mutex_lock(&inbox.lock);
	inbox.next = call;
	is_in_loop = inbox.is_in_loop;
	pthread_mutex_unlock(&inbox.lock);
	/* After unlocking: the thread that wakes would only wait for the lock. */
	pthread_cond_signal(&inbox.wake);
	if (is_in_loop)
		ticker_wake_loop();
}

void worker_stop(void) {
	bool is_in_loop;

	pthread_mutex_lock(&inbox.lock);
	inbox.is_stopping = true;
	is_in_loop = inbox.is_in_loop;
	pthread_mutex_unlock(&inbox.lock);
	pthread_cond_signal(&inbox.wake);
	if (is_in_loop)
		ticker_wake_loop();
	environment_cancel();
}

/*
 * From 3.12 on, os.fork() warns in a process with threads. We always have some, and user code
 * cannot do anything about that: exactly this message is left out.
 */
static void silence_fork_warning(void) {
	auto_py *filter = py_import_attr("warnings", "filterwarnings");
	auto_py *result =
		filter ? PyObject_CallFunction(filter, "ssO", "ignore",
				 "This process \\(pid=[0-9]+\\) is multi-threaded, use of ",
				 PyExc_DeprecationWarning)
		       : NULL;

	if (!result)
		PyErr_Clear();
}

/* An exception of our own start as a message. */
static char *take_message(const char *doing) {
	auto_answer_error struct answer_error e = { 0 };

	pyerr_take("startup_failed", &e);
	return answer_message("%s: %s: %s", doing, e.error_type ? e.error_type : "error",
		e.message ? e.message : "");
}

/* What needs Python but no shell yet: streams, signals, the user's variables. */
static int prepare(char **ret_message) {
	interrupt_init();
	silence_fork_warning();
	if (capture_restore_streams() < 0 || capture_leave_at_exit() < 0 || capture_init() < 0 ||
		ticker_start() < 0) {
		*ret_message = take_message("Python's streams cannot be set up");
		return -1;
	}
	return 0;
}

/* The shell and what hangs on it. */
static int build_shell(char **ret_message) {
	if (ipshell_new(ret_message) < 0)
		return -1;
	if (capture_install() < 0 || toolbox_init() < 0) {
		*ret_message = take_message("IPython's shell cannot be set up");
		return -1;
	}
	return 0;
}

/* The start in the contract's order. On failure *ret_phase and *ret_message tell. */
static int start(enum shell_phase *ret_phase, char **ret_message) {
	auto_free char *site_packages = NULL;

	if (environment_provision(&site_packages, ret_phase, ret_message) < 0)
		return -1;
	*ret_phase = SHELL_CONFIGURATION;
	if (interp_start(half.interpreter, ret_message) < 0)
		return -1;
	if (prepare(ret_message) < 0 ||
		environment_apply(site_packages, ret_phase, ret_message) < 0 ||
		environment_preload(ret_phase, ret_message) < 0)
		return -1;

	*ret_phase = SHELL_PRELOAD;
	if (build_shell(ret_message) < 0 || environment_bind(ret_phase, ret_message) < 0)
		return -1;
	*ret_phase = SHELL_PRELOAD;
	return half.settings->ipython_profile ? profile_start(ret_message) : 0;
}

/* "3.12.1", from where the interpreter's version was found. */
static void tell_ready(void) {
	char version[32];
	unsigned v = half.interpreter->version;

	snprintf(version, sizeof(version), "%u.%u.%u", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff);
	half.host->ready(half.host->ctx, version, ipshell_ipython_version());
}

int worker_run(const struct settings *settings, const struct shell_interpreter *interpreter,
	const char *files_directory, const struct shell_host *host) {
	enum shell_phase phase = SHELL_CONFIGURATION;
	struct shell_call *call;
	char *message = NULL;

	half = (struct half){ .settings = settings,
		.interpreter = interpreter,
		.host = host,
		.files_directory = files_directory,
		.pid = getpid() };
	cwd_init();
	if (start(&phase, &message) < 0) {
		host->failed(host->ctx, phase, environment_redact(message));
		return -1;
	}
	capture_flush();
	tell_ready();

	while ((call = wait_for_call()))
		serve(call);
	ticker_stop();
	interp_end();
	return 0;
}

static const struct shell_ops ops = {
	.abi = SHELL_ABI,
	.run = worker_run,
	.submit = worker_submit,
	.interrupt = interrupt_send,
	.stop = worker_stop,
};

__attribute__((visibility("default"))) shell_entry_fn shell_entry;

const struct shell_ops *shell_entry(void) {
	return &ops;
}

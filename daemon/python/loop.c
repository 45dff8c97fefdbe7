/* SPDX-License-Identifier: MIT */
/*
 * IPython's asyncio Loop
 *
 * Cells with a top-level await run on one loop that IPython keeps. Tasks that they leave go on
 * between calls, because the wait for the next call then runs that loop. It is never running while
 * a cell starts, so asyncio.run() works in cells as in a script. All state here is guarded by the
 * GIL.
 */

#include <string.h>

#include "daemon/python/loop.h"
#include "daemon/python/pyerr.h"

static PyObject *running;      /* between loop_enter() and loop_leave() */
static bool is_stop_under_way; /* a stop was scheduled and must be used up by that loop */

/* IPython's loop when it has one that is open; new reference, NULL without an exception. */
static PyObject *get_loop(void) {
	static PyObject *helpers;
	auto_py *loop = NULL;
	auto_py *is_closed = NULL;

	if (!helpers)
		helpers = PyImport_ImportModule("IPython.core.async_helpers");
	loop = helpers ? py_getattr_or_null(helpers, "_asyncio_event_loop") : NULL;
	if (loop && loop != Py_None)
		is_closed = py_call_method(loop, "is_closed", "()");
	PyErr_Clear();
	return is_closed == Py_False ? take(loop) : NULL;
}

/* The loop's unfinished tasks, a set; NULL without an exception. */
static PyObject *get_tasks(PyObject *loop) {
	auto_py *function = py_import_attr("asyncio", "all_tasks");
	PyObject *tasks = function ? PyObject_CallFunctionObjArgs(function, loop, NULL) : NULL;

	PyErr_Clear();
	return tasks;
}

bool loop_enter(void) {
	auto_py *loop = get_loop();
	auto_py *tasks = loop ? get_tasks(loop) : NULL;

	if (!tasks || PyObject_Size(tasks) <= 0)
		return false;
	is_stop_under_way = false;
	running = take(loop);
	return true;
}

void loop_leave(void) {
	Py_CLEAR(running);
}

/* Runs until somebody stops the loop. An exception of a task is printed: the others go on next
 * time. */
static bool run_forever(PyObject *loop) {
	auto_py *result = py_call_method(loop, "run_forever", "()");

	if (!result)
		PyErr_WriteUnraisable(loop);
	return result != NULL;
}

/* Scheduled by loop_stop(): runs in the loop, so that the stop is used up by the loop it is for. */
static PyObject *on_stop(PyObject *self, PyObject *args) {
	is_stop_under_way = false;
	return running ? py_call_method(running, "stop", "()") : Py_NewRef(Py_None);
}

void loop_run(void) {
	run_forever(running);
	/* A task ended the loop before our stop did: left there, it would end the next cell's
	 * await. */
	while (is_stop_under_way && run_forever(running))
		;
	loop_leave();
}

void loop_stop(void) {
	static PyMethodDef method = { "on_stop", on_stop, METH_NOARGS, NULL };
	auto_py *function = NULL;
	auto_py *result = NULL;

	if (!running || is_stop_under_way)
		return;
	/* Before it is scheduled: the loop may run it, and be entered anew, before the call
	 * returns. */
	is_stop_under_way = true;
	function = PyCFunction_NewEx(&method, NULL, NULL);
	if (function)
		result = py_call_method(running, "call_soon_threadsafe", "(O)", function);
	if (!result)
		is_stop_under_way = false;
	PyErr_Clear();
}

/* True when the task runs that coroutine; NULL: IPython's own one of a cell. */
static bool runs(PyObject *task, PyObject *sought) {
	auto_py *coroutine = py_call_method(task, "get_coro", "()");
	auto_py *name = coroutine ? PyObject_GetAttrString(coroutine, "__name__") : NULL;
	bool is = name && PyUnicode_Check(name) &&
		  PyUnicode_CompareWithASCIIString(name, "run_cell_async") == 0;

	PyErr_Clear();
	return sought ? coroutine == sought : is;
}

/* Cancels the task and runs the loop until it has ended, bounded. */
static void end_task(PyObject *loop, PyObject *task) {
	auto_py *cancelled = py_call_method(task, "cancel", "()");
	auto_py *wait = py_import_attr("asyncio", "wait");
	auto_py *args = Py_BuildValue("([O])", task);
	auto_py *kwargs = Py_BuildValue("{s:d}", "timeout", 1.0);
	auto_py *waiter =
		cancelled && wait && args && kwargs ? PyObject_Call(wait, args, kwargs) : NULL;
	auto_py *done = waiter ? py_call_method(loop, "run_until_complete", "(O)", waiter) : NULL;

	PyErr_Clear();
}

void loop_end_task(PyObject *coroutine) {
	auto_py *loop = get_loop();
	auto_py *tasks = loop ? get_tasks(loop) : NULL;
	auto_py *iterator = tasks ? PyObject_GetIter(tasks) : NULL;

	while (iterator) {
		auto_py *task = PyIter_Next(iterator);

		if (!task)
			break;
		if (runs(task, coroutine))
			end_task(loop, task);
	}
	PyErr_Clear();
}

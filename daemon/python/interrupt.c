/* SPDX-License-Identifier: MIT */
/*
 * Interrupts
 *
 * An interrupt is a real SIGINT aimed at Python's main thread: it ends a sleep, a lock wait, a
 * system call and a spinning loop alike. The danger is a late one that hits the next call, so there
 * is a fence: it is sent under a lock and only while its call is armed; the end of a call takes the
 * same lock, lets the kernel deliver what is under way, and drains what Python has noted but not
 * raised.
 */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "daemon/python/children.h"
#include "daemon/python/interrupt.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_t thread;

/* Written under the lock; read without it, too: a forked child must not wait for anybody. */
static atomic_ullong armed;     /* 0: no call */
static atomic_ullong announced; /* submitted, not yet armed: IPython's loop may keep it waiting */
static atomic_uint n_sent;
static _Atomic enum shell_reason last_reason;

/* Of the Python thread: the signal function and the handler that a call starts with. */
static PyObject *set_handler, *default_handler;

void interrupt_init(void) {
	thread = pthread_self();
	set_handler = py_import_attr("_signal", "signal");
	default_handler = py_import_attr("_signal", "default_int_handler");
	PyErr_Clear();
}

/* User code may have blocked the signal or put a handler of its own in place. */
static void restore_handler(void) {
	auto_py *result = NULL;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	if (set_handler && default_handler)
		result = PyObject_CallFunction(set_handler, "iO", SIGINT, default_handler);
	if (!result)
		PyErr_Clear();
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/*
 * What was sent and not raised yet. The unblocking system call of restore_handler() has let the
 * kernel deliver it; now Python's own note of it is used up. Handlers of other signals may run
 * here, too.
 */
static void drain(void) {
	while (PyErr_CheckSignals() < 0)
		PyErr_Clear();
}

void interrupt_arm(uint64_t id) {
	children_forget();
	pthread_mutex_lock(&lock);
	armed = id;
	if (announced != id)
		n_sent = 0;
	announced = 0;
	pthread_mutex_unlock(&lock);
	restore_handler();
	drain();
	/* What came for this call before now was drained with the rest, and is still owed to it. */
	if (n_sent)
		pthread_kill(thread, SIGINT);
}

void interrupt_announce(uint64_t id) {
	pthread_mutex_lock(&lock);
	announced = id;
	n_sent = 0;
	pthread_mutex_unlock(&lock);
}

bool interrupt_disarm(enum shell_reason *ret_reason) {
	unsigned n;

	pthread_mutex_lock(&lock);
	armed = 0;
	n = n_sent;
	*ret_reason = last_reason;
	pthread_mutex_unlock(&lock);
	if (n) {
		restore_handler();
		drain();
		children_doom();
	}
	return n > 0;
}

bool interrupt_is_set(enum shell_reason *ret_reason) {
	bool is_set = armed && n_sent;

	if (is_set && ret_reason)
		*ret_reason = last_reason;
	return is_set;
}

bool interrupt_send(uint64_t id, enum shell_reason reason, unsigned again) {
	bool is_ours;

	pthread_mutex_lock(&lock);
	is_ours = id != 0 && (armed == id || announced == id);
	if (is_ours) {
		last_reason = reason;
		n_sent++;
		/* Children first: the cell then finds its command ended rather than still to be
		 * waited for. */
		children_signal(again ? SIGKILL : SIGINT);
		if (again != 1 || reason == SHELL_OPERATOR)
			pthread_kill(thread, SIGINT);
	}
	pthread_mutex_unlock(&lock);
	return is_ours;
}

void interrupt_renew(void) {
	if (interrupt_is_set(NULL))
		pthread_kill(thread, SIGINT);
}

void interrupt_note_command(void) {
	children_note_command();
}

/* SPDX-License-Identifier: MIT */
/*
 * Ticker
 *
 * A native thread that takes the GIL for moments. Output is fully buffered, so a call that runs long
 * would look silent: every 100 ms the buffers are flushed. And the wait for the next call may be a run
 * of IPython's loop, which only somebody with the GIL can stop. What an interrupted command left behind
 * is ended from here, too, a second later.
 *
 * Calls come by the thousand, so a call's start must not cost a wake-up of this thread: while calls come
 * it looks at the flag by itself ten times a second, and only sleeps for good after a quiet second.
 */

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "daemon/python/capture.h"
#include "daemon/python/children.h"
#include "daemon/python/loop.h"
#include "daemon/python/ticker.h"

enum { TICK_MS = 100, QUIET_TICKS = 10 };

static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;

/* Under the lock. */
static bool is_stopping, is_asleep, is_busy, wants_loop_stopped;
static unsigned long n_calls; /* tells a call that lasts from one that was replaced by another */

/* Waits until there is something to do, a tick at most while calls come. Under the lock. */
static void doze(unsigned *quiet) {
	struct timespec until;

	if (is_stopping || wants_loop_stopped)
		return;
	if (!is_busy && *quiet >= QUIET_TICKS && !children_reap()) {
		is_asleep = true;
		pthread_cond_wait(&wake, &lock);
		is_asleep = false;
		*quiet = 0;
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TICK_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_cond_timedwait(&wake, &lock, &until);
	*quiet = is_busy ? 0 : *quiet + 1;
}

static void *run(void *arg) {
	PyGILState_STATE gil = PyGILState_Ensure();
	PyThreadState *state = PyEval_SaveThread();
	unsigned long seen = 0;
	unsigned quiet = 0;

	pthread_mutex_lock(&lock);
	while (!is_stopping) {
		bool must_stop, must_flush;

		doze(&quiet);
		children_reap();
		must_stop = wants_loop_stopped;
		must_flush = is_busy && seen == n_calls;
		wants_loop_stopped = false;
		seen = n_calls;
		if (is_stopping || (!must_stop && !must_flush))
			continue;
		pthread_mutex_unlock(&lock);
		PyEval_RestoreThread(state);
		if (must_stop)
			loop_stop();
		if (must_flush)
			capture_flush();
		PyEval_SaveThread();
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	PyEval_RestoreThread(state);
	PyGILState_Release(gil);
	return NULL;
}

int ticker_start(void) {
	pthread_condattr_t attr;
	sigset_t all, old;
	int r;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attr);
	pthread_condattr_destroy(&attr);

	/* Signals belong to the other threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r == 0 ? 0 : -1;
}

void ticker_stop(void) {
	PyThreadState *state;

	pthread_mutex_lock(&lock);
	is_stopping = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	state = PyEval_SaveThread();
	pthread_join(thread, NULL);
	PyEval_RestoreThread(state);
}

void ticker_set_busy(bool busy) {
	pthread_mutex_lock(&lock);
	is_busy = busy;
	n_calls += busy;
	if (busy && is_asleep)
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

void ticker_wake_loop(void) {
	pthread_mutex_lock(&lock);
	wants_loop_stopped = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

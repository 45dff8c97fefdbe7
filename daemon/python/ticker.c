/* SPDX-License-Identifier: MIT */
/*
 * Ticker
 *
 * A native thread that takes the GIL for moments. Output is fully buffered, so a call that runs
 * long would look silent, and so would the user's threads between calls: the buffers are flushed
 * now and then. And the wait for the next call may be a run of IPython's loop, which only somebody
 * with the GIL can stop. What an interrupted command left behind is ended from here, too, a second
 * later.
 *
 * Calls come by the thousand, so a call's start must not cost a wake-up of this thread: while calls
 * come it looks at the flag by itself ten times a second, and only sleeps for good after a quiet
 * second (or, when there are threads that may print, for seconds).
 */

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "daemon/python/capture.h"
#include "daemon/python/children.h"
#include "daemon/python/loop.h"
#include "daemon/python/ticker.h"

enum { TICK_MS = 100, QUIET_TICK_MS = 1000, QUIET_TICKS = 10 };

static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;

/* Under the lock. */
static bool is_stopping, is_asleep, is_busy, is_lively, wants_loop_stopped;
static unsigned long n_calls; /* tells a call that lasts from one that was replaced by another */

/* Waits for a signal, `ms` at most. Under the lock. */
static void wait_for(long ms) {
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_cond_timedwait(&wake, &lock, &until);
}

/* Waits until there is something to do, a tick at most while calls come. Under the lock. */
static void doze(unsigned *n_quiet) {
	if (is_stopping || wants_loop_stopped)
		return;
	if (is_busy || *n_quiet < QUIET_TICKS || children_reap()) {
		wait_for(TICK_MS);
		*n_quiet = is_busy ? 0 : *n_quiet + 1;
		return;
	}
	is_asleep = true;
	if (is_lively)
		wait_for(QUIET_TICK_MS);
	else
		pthread_cond_wait(&wake, &lock);
	is_asleep = false;
	if (is_busy)
		*n_quiet = 0;
}

static void *run(void *arg) {
	PyGILState_STATE gil = PyGILState_Ensure();
	PyThreadState *state = PyEval_SaveThread();
	unsigned long seen = 0;
	unsigned n_quiet = 0;

	pthread_mutex_lock(&lock);
	while (!is_stopping) {
		bool must_stop, must_flush;

		doze(&n_quiet);
		children_reap();
		must_stop = wants_loop_stopped;
		must_flush = (is_busy && seen == n_calls) || (!is_busy && is_lively);
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

void ticker_begin_call(void) {
	pthread_mutex_lock(&lock);
	is_busy = true;
	n_calls++;
	if (is_asleep)
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

void ticker_end_call(bool lively) {
	pthread_mutex_lock(&lock);
	is_busy = false;
	is_lively = lively;
	pthread_mutex_unlock(&lock);
}

void ticker_wake_loop(void) {
	pthread_mutex_lock(&lock);
	wants_loop_stopped = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

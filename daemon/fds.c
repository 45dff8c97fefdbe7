/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of the Event Half
 *
 * The Python thread unshares its table of descriptors and, with it, its working directory and
 * umask. So os.closerange() hurts nobody, children inherit no socket of ours, and a session's
 * os.chdir() is its own affair. Threads that user code starts belong to the Python thread's side.
 *
 * Where the kernel refuses that, the numbers that are registered here are closed in each child that
 * user code forks. The child reads them while the loop may be changing them on another thread, so
 * they are bits in a fixed map: no lock, no memory, at worst a descriptor that was opened this very
 * moment. Children that are executed need nothing: all of ours close on exec.
 */

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "common/err.h"
#include "common/log.h"
#include "daemon/fds.h"

/* The kernel gives the lowest free number, so sessions and their like never come near this. */
enum { MAX_FDS = 65536, BITS = 64 };

static _Atomic uint64_t fds_open[MAX_FDS / BITS];
static atomic_bool fds_are_separate;

void fds_add(int fd) {
	if (fd >= 0 && fd < MAX_FDS)
		atomic_fetch_or(&fds_open[fd / BITS], UINT64_C(1) << fd % BITS);
}

void fds_remove(int fd) {
	if (fd >= 0 && fd < MAX_FDS)
		atomic_fetch_and(&fds_open[fd / BITS], ~(UINT64_C(1) << fd % BITS));
}

/* In a child of user code: with a table of its own these numbers are the user's files. */
static void fds_on_fork(void) {
	if (atomic_load(&fds_are_separate))
		return;
	for (int i = 0; i < MAX_FDS / BITS; i++)
		for (uint64_t bits = atomic_load(&fds_open[i]); bits; bits &= bits - 1)
			close(i * BITS + __builtin_ctzll(bits));
}

int fds_init(void) {
	int r = pthread_atfork(NULL, NULL, fds_on_fork);

	return r ? err_new(-r) : 0;
}

static void close_between(unsigned first, unsigned last) {
	long max;

	if (first > last || close_range(first, last, 0) == 0)
		return;
	/* A kernel before 5.9. */
	max = sysconf(_SC_OPEN_MAX);
	for (unsigned fd = first; fd <= last && (long)fd < max; fd++)
		close((int)fd);
}

#if defined(__SANITIZE_THREAD__)
#define HAS_ONE_TABLE 1
#elif defined(__has_feature)
#define HAS_ONE_TABLE __has_feature(thread_sanitizer)
#else
#define HAS_ONE_TABLE 0
#endif

bool fds_separate(int keep) {
	/* The thread sanitizer believes in one table and takes equal numbers for a race. */
	if (HAS_ONE_TABLE)
		return false;
	if (unshare(CLONE_FILES | CLONE_FS) < 0)
		return false;
	atomic_store(&fds_are_separate, true);
	log_leave();
	close_between(STDERR_FILENO + 1, (unsigned)keep - 1);
	close_between((unsigned)keep + 1, UINT_MAX);
	return true;
}

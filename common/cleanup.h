/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Cleanup by Attribute
 *
 * A local marked auto_* is released when it goes out of scope, so that early returns need no
 * labels. It may be there for its release alone. take() hands the value on and disarms the local.
 */

#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p) {
	free(*(void **)p);
}

static inline void cleanup_close(int *fd) {
	if (*fd >= 0)
		close(*fd);
}

#define auto_free  __attribute__((cleanup(cleanup_free), unused))
#define auto_close __attribute__((cleanup(cleanup_close), unused))

/* The pointer's value; the variable is NULL afterwards. */
#define take(p)                                                                                    \
	({                                                                                         \
		__auto_type taken_ = (p);                                                          \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

/* The same for a descriptor. */
static inline int take_fd(int *fd) {
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

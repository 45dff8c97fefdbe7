/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Steps of uv: a child of its own process group, with a limit, whose words are kept for the
 * diagnostic. On the Python thread, before Python is initialised; uv_cancel() on any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

enum uv_result {
	UV_DONE,        /* exit status 0 */
	UV_FAILED,      /* another one, or a signal: *ret_status is as waitpid() tells */
	UV_TIMED_OUT,   /* the group was ended */
	UV_CANCELLED,   /* uv_cancel() was called; the group was ended */
	UV_NOT_STARTED, /* *ret_status is an errno */
};

struct uv_step {
	const char *const *argv; /* from the program's path on, NULL at its end */
	const char *input;       /* standard input; NULL: none. At most 64 KiB. */
	const char *directory;   /* to run in, absolute */
	int keep_fd;             /* stays open in the child and what it starts; -1: none */
	double timeout_s;
	size_t max_output; /* bytes of output that are kept: the first ones */
};

/* The path of uv as PATH finds it; owned by the caller, NULL when there is none. */
char *uv_find(void);

/* Runs one step and appends what it writes to `output`. *ret_cut: there was more. */
enum uv_result uv_run(const struct uv_step *step, struct buf *output, bool *ret_cut,
	int *ret_status);

/* Ends the step that runs within a moment, and lets no other one start. */
void uv_cancel(void);

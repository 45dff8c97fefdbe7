/* SPDX-License-Identifier: MIT */
#pragma once

/* The end of a daemon, for `stop` and `restart`. */

#include <stdbool.h>
#include <sys/types.h>

#include "client/admin.h"

/* A daemon that is about to be ended. */
struct ending {
	struct rpc rpc;
	pid_t pid;         /* 0: it does not answer and cannot be told for sure */
	int pidfd;         /* -1: none */
	bool is_answering; /* within two seconds */
};

#define ENDING_NULL { .rpc = RPC_NULL, .pidfd = -1 }
#define auto_ending __attribute__((cleanup(ending_deinit)))

void ending_deinit(struct ending *e);

/* Finds the daemon. 0; or -ENOENT when none runs; or -1 after a complaint. */
int ending_begin(struct ending *e, const struct invocation *inv);

/* Ends it and waits until it is gone. Returns the exit status; complains when it is not 0. */
int ending_run(struct ending *e, const struct invocation *inv);

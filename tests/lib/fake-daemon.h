/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One session that keeps what it is sent, and a queue of one call, which the next one ends: what
 * the protocol's files (protocol.c, batch.c, era*.c, attach.c, notify.c, admin.c) need of the
 * daemon.
 */

#include <stdbool.h>

#include "common/buf.h"
#include "daemon/protocol.h"

struct fake {
	struct daemon daemon;
	struct session session;
	struct buf sent; /* lines, each with its newline */
	unsigned n_requests;

	bool has_call;
	struct reply_to call;
	char *call_token, *call_arguments;
	int n_cancelled;

	uint64_t catalog_revision;
	bool was_stopped, was_forced;
};

extern struct fake fake;

/* A session as it is after connecting; all that was before is freed. */
void fake_reset(void);

/* The call has been answered or dropped. */
void fake_forget_call(void);

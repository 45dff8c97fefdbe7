/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * To a daemon, started if need be. Who has other descriptors to look after calls attach_step() from
 * a loop of its own; who has none calls attach_wait().
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/rendezvous.h"
#include "client/spawn.h"

struct attach {
	const struct rendezvous *place;
	const struct spawn_options *options; /* NULL: start nothing */
	int64_t deadline_ms;                 /* 0: not begun */
	int wait_ms;                         /* until the next step */
	int lock;                            /* the start lock while we hold it, else -1 */
	bool is_started;                     /* we have started a daemon, or a unit */
	bool is_unit_tried;
	struct spawn spawn; /* spawn.pidfd, when not -1, is worth a poll for POLLIN meanwhile */
};

enum attach_result {
	ATTACH_CONNECTED, /* *ret_fd is the caller's: non-blocking, close-on-exec */
	ATTACH_WAIT,      /* step again after a->wait_ms, or when a->spawn.pidfd is readable */
	ATTACH_FAILED,    /* *ret_message is the caller's: what failed and the way out */
};

/* What is pointed at must outlive `a`. */
void attach_init(struct attach *a, const struct rendezvous *place,
	const struct spawn_options *options);

/* Gives up what is under way; a daemon that was started goes on. Then attach_step() begins anew. */
void attach_reset(struct attach *a);

/*
 * Never waits longer than starting a process takes, some milliseconds. After CONNECTED and FAILED
 * `a` is as new.
 */
enum attach_result attach_step(struct attach *a, int *ret_fd, char **ret_message);

/* The same until it ends. Returns the descriptor, or -1 with a message. */
int attach_wait(struct attach *a, char **ret_message);

/* Milliseconds on a clock that only goes forward. */
int64_t attach_now_ms(void);

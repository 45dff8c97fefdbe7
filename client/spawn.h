/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Starts a daemon, through the systemd user manager where a unit will do, else detached. Nothing
 * here waits for the daemon: who started it looks at spawn_check() now and then, and connects.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "common/rendezvous.h"

/* What the daemon is to be; strings are borrowed and must outlive the spawn. */
struct spawn_options {
	const char *name;   /* of the namespace */
	const char *socket; /* --socket as chosen by the user, NULL: the usual place */
	const char *python; /* --python, NULL: not chosen */
};

struct spawn {
	const struct rendezvous *place;
	pid_t pid;       /* the daemon, or systemctl while a unit is being started; 0: none */
	int pidfd;       /* readable when that process has ended; -1 when the kernel has none */
	bool is_unit;    /* pid is systemctl, a child of ours */
	off_t log_start; /* where in the log this daemon's lines begin */
};

#define SPAWN_NULL { .pidfd = -1 }

enum spawn_state {
	SPAWN_RUNNING,
	SPAWN_ENDED,       /* the daemon has ended; spawn_reason() may know why */
	SPAWN_UNIT_READY,  /* the manager has started the unit: its socket is there */
	SPAWN_UNIT_FAILED, /* it has not; spawn_detached() is left */
};

/*
 * True when the user manager may start the daemon: it runs, the units are installed, and the
 * environment and options ask for nothing that a unit, which gets neither environment nor directory
 * of its client, could not know.
 */
bool spawn_is_for_unit(const struct rendezvous *place, const struct spawn_options *options);

/*
 * Start a daemon. `s` was deinitialised or is SPAWN_NULL. 0 or a negative errno; a program that
 * cannot be executed shows there already.
 */
int spawn_unit(struct spawn *s, const struct rendezvous *place,
	const struct spawn_options *options);
int spawn_detached(struct spawn *s, const struct rendezvous *place,
	const struct spawn_options *options);

/* How the start fares by now; does not wait. */
enum spawn_state spawn_check(struct spawn *s);

/*
 * What the daemon wrote to its log before it ended, one line, owned by the caller; NULL when there
 * is nothing.
 */
char *spawn_reason(const struct spawn *s);

/* Forgets the daemon, which goes on. */
void spawn_deinit(struct spawn *s);

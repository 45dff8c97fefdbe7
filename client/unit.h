/* SPDX-License-Identifier: MIT */
#pragma once

/* The systemd units of a namespace, as the user manager sees them. */

#include <stdbool.h>
#include <sys/types.h>

#include "common/rendezvous.h"

/*
 * True when the user manager runs, the units are installed, and the socket is where they have it.
 */
bool unit_is_there(const struct rendezvous *place);

/* The unit of that kind, "socket" or "service"; owned by the caller, NULL when memory is short. */
char *unit_name(const struct rendezvous *place, const char *kind);

/*
 * In a new process that is to be systemctl: sets what it finds the manager by, which agents strip.
 */
void unit_find_manager(void);

enum unit_state {
	UNIT_NONE,      /* no manager, no units, or this socket is not the unit's */
	UNIT_LISTENING, /* only the manager listens: connecting would start the daemon */
	UNIT_RUNNING,   /* the manager runs the daemon, or is about to */
};

/* What the user's manager says of the unit for this place; asks systemctl. */
enum unit_state unit_state(const struct rendezvous *place);

/* Main process of the service; 0 when it does not run. */
pid_t unit_pid(const struct rendezvous *place);

/* SPDX-License-Identifier: MIT */
#pragma once

/* The systemd units of a namespace, as the user manager sees them. */

#include <sys/types.h>

#include "common/rendezvous.h"

enum unit_state {
	UNIT_NONE,      /* no manager, no units, or this socket is not the unit's */
	UNIT_LISTENING, /* only the manager listens: connecting would start the daemon */
	UNIT_RUNNING,   /* the manager runs the daemon, or is about to */
};

/* What the user's manager says of the unit for this place; asks systemctl. */
enum unit_state unit_state(const struct rendezvous *place);

/* Main process of the service; 0 when it does not run. */
pid_t unit_pid(const struct rendezvous *place);

/* Name of the service unit; owned by the caller, NULL when memory is short. */
char *unit_service(const struct rendezvous *place);

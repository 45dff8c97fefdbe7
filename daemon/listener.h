/* SPDX-License-Identifier: MIT */
#pragma once

/* The listening socket: inherited from systemd or bound by us; accept, peer check, back-off. */

#include <stdbool.h>

#include "daemon/daemon.h"

/*
 * Takes over a listening descriptor; `is_inherited`: its file is not ours. 0 or a negative errno.
 */
int listener_new(struct daemon *d, int fd, bool is_inherited);

/*
 * Goes on with another descriptor for the same place (taken, also on failure). 0 or a negative
 * errno.
 */
int listener_replace(struct daemon *d, int fd);

/* Stops as listener_stop() does. Accepts NULL. */
struct listener *listener_free(struct listener *l);

/* Stops accepting for good, and removes the socket unless a successor listens there already. */
void listener_stop(struct daemon *d);

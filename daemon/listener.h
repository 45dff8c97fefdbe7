/* SPDX-License-Identifier: MIT */
#pragma once

/* The listening socket: inherited from systemd or bound by us; accept, peer check, back-off. */

#include <stdbool.h>

#include "daemon/daemon.h"

/* Takes over a listening descriptor; `is_inherited`: never unlinked. 0 or a negative errno. */
int listener_new(struct daemon *d, int fd, bool is_inherited);

/* Stops accepting and removes the socket if it is still ours. Accepts NULL. */
struct listener *listener_free(struct listener *l);

/* Stops accepting for good, at the beginning of a stop. */
void listener_stop(struct daemon *d);

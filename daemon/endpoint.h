/* SPDX-License-Identifier: MIT */
#pragma once

/* How the daemon comes by its listening socket. */

#include <stdbool.h>

#include "common/rendezvous.h"

/*
 * The socket that the service manager passed, or one that is bound here. 0 with *ret_fd and
 * *ret_is_inherited (r->socket then names the manager's place). On failure a negative errno and
 * *ret_message (owned by the caller): -EADDRINUSE when a daemon listens there already, which is
 * left alone.
 */
int endpoint_open(struct rendezvous *r, int *ret_fd, bool *ret_is_inherited, char **ret_message);

/*
 * Removes the socket's file, after its descriptor was closed, unless somebody else listens there.
 */
void endpoint_remove(const struct rendezvous *r);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Keeps the socket's file in its place while the daemon runs. */

#include "daemon/daemon.h"

/* Watches the runtime directory; without inotify nothing is watched. For a socket that we bound. */
void guard_new(struct daemon *d);
struct guard *guard_free(struct guard *g);

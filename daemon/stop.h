/* SPDX-License-Identifier: MIT */
#pragma once

/* The orderly end: see daemon_stop() in daemon.h. */

#include <stdbool.h>

#include "daemon/daemon.h"

/* Prepares the timers. 0 or a negative errno. */
int stop_new(struct daemon *d);
struct stop *stop_free(struct stop *s);

/* The last session is gone. */
void stop_on_sessions_gone(struct daemon *d);

/* Whether the Python thread has ended: what it uses may be freed. */
bool stop_has_ended_python(const struct daemon *d);

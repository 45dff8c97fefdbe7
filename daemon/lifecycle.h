/* SPDX-License-Identifier: MIT */
#pragma once

/* Signals, and what systemd is told: readiness, status line, watchdog, stopping. */

#include "daemon/daemon.h"

/* Signal handlers, the watchdog's timer. 0 or a negative errno. */
int lifecycle_new(struct daemon *d);
struct lifecycle *lifecycle_free(struct lifecycle *l);

/*
 * Puts our handlers back where user code replaced them (SIGTERM, SIGHUP): ours notes the signal and
 * then calls theirs. Called at each call's start and end and on every tick while one runs.
 */
void lifecycle_rearm_signals(struct daemon *d);

/* State or running call changed: READY=1 once ready or failed for good, STATUS=. Cheap. */
void lifecycle_update(struct daemon *d);

/* STOPPING=1. */
void lifecycle_stopping(struct daemon *d);

/* One line for people and for systemd: what the daemon does now. Owned by the caller. */
char *lifecycle_status_line(struct daemon *d);

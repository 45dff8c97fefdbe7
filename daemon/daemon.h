/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The event half's parts in one place. Everything here belongs to the loop thread.
 */

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "common/rendezvous.h"
#include "daemon/config.h"
#include "daemon/shell.h"

struct bridge;
struct callq;
struct catalog;
struct guard;
struct lifecycle;
struct listener;
struct output;
struct sessions;
struct stop;

/* How the Python half is doing. */
enum daemon_state {
	DAEMON_STARTING, /* Python or its environment is being prepared; calls wait */
	DAEMON_READY,
	DAEMON_FAILED,   /* the start failed for good; calls are answered startup_failed */
	DAEMON_STOPPING, /* no new calls */
};

struct daemon {
	struct event_base *base;
	struct settings settings;
	struct rendezvous rendezvous;
	char *fingerprint;     /* of the startup variables, a JSON object (common/fingerprint.h) */
	char *files_directory; /* saved outputs and images; NULL when there is none */

	struct listener *listener;
	struct guard *guard; /* NULL for a socket that is the service manager's */
	struct sessions *sessions;
	struct callq *callq;
	struct bridge *bridge;
	struct output *output;
	struct catalog *catalog;
	struct lifecycle *lifecycle;
	struct stop *stop;

	enum daemon_state state;
	enum shell_phase phase;   /* while starting, and where it failed */
	char *failure;            /* message, when state is DAEMON_FAILED */
	char *python_version;     /* when ready */
	char *ipython_version;    /* when ready */
	char *python_executable;  /* once known */
	struct timespec started;  /* CLOCK_MONOTONIC */
};

/*
 * Begins to listen and to start Python; d->settings and d->rendezvous are set. `faults` (NULL:
 * none) is the configuration's complaint: the daemon then runs to tell it to its clients. 0, or a
 * negative errno and *ret_message (owned by the caller).
 */
int daemon_start(struct daemon *d, const char *faults, char **ret_message);

/* Runs the loop until a stop is complete: 0; or until the loop fails: a negative errno. */
int daemon_run(struct daemon *d);

/*
 * Frees everything, also after a start that failed. False when the Python thread did not end: then
 * some of it is still in use, and the process must leave by _exit().
 */
bool daemon_end(struct daemon *d);

/* Seconds since the daemon started. */
double daemon_uptime(const struct daemon *d);

/*
 * The Python half changed state (called by bridge.c on the loop thread): updates the fields above,
 * tells lifecycle.c and callq.c.
 */
void daemon_on_phase(struct daemon *d, enum shell_phase phase);
void daemon_on_ready(struct daemon *d, const char *python_version, const char *ipython_version);
void daemon_on_failed(struct daemon *d, enum shell_phase phase, char *message /* taken */);

/*
 * Begins the orderly end (SIGTERM, `ipython-mcp stop`): no new calls, the running one interrupted
 * after a grace, sessions told, Python ended in bounded time, the loop left. `force` skips the
 * grace. Calling it again with `force` shortens a stop under way.
 */
void daemon_stop(struct daemon *d, bool force);

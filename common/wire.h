/* SPDX-License-Identifier: MIT */
#pragma once

/* What the daemon and its clients must agree on. */

#define WIRE_DEFAULT_NAME "default"

/* A namespace's name: [A-Za-z0-9][A-Za-z0-9._-]*, at most this many bytes. */
#define WIRE_MAX_NAME 64

/* JSON nesting accepted in a message. */
#define WIRE_MAX_DEPTH 512

/*
 * First line of a connection, from the shim; a plain client may leave it out.
 * params: profile ("full" "compact" "text"), cwd (absolute), version, fingerprint (object: startup
 * variable -> hash of its value), resumed (bool: the namespace this client knew is gone),
 * acknowledge (bool: answer with WIRE_ATTACHED), reads_json (bool: the client takes a text that is
 * JSON for structured content, and refuses what is no object). Every member is optional.
 */
#define WIRE_ATTACH "notifications/ipython-mcp/attach"

/*
 * The daemon's first line on a connection whose attach line asked for it; never passed on to a
 * client. params: version, pid, profile (in force), fingerprint (of the daemon's own startup
 * variables).
 */
#define WIRE_ATTACHED "notifications/ipython-mcp/attached"

/*
 * Requests for people's tools; they belong to neither era and work at any time. See daemon/admin.c.
 */
#define WIRE_STATUS    "ipython-mcp/status"
#define WIRE_INTERRUPT "ipython-mcp/interrupt"
#define WIRE_STOP      "ipython-mcp/stop"
#define WIRE_CALL      "ipython-mcp/call"

/* Exit codes of the programs, beyond 0 and 1 (sysexits.h). */
enum wire_exit {
	WIRE_EXIT_USAGE = 64,       /* the command line is wrong */
	WIRE_EXIT_UNAVAILABLE = 69, /* no daemon, and none could be started */
	WIRE_EXIT_SOFTWARE = 70,    /* a fault of the program itself */
	WIRE_EXIT_NOPERM = 77,      /* a place is not ours, or the peer is another user */
	WIRE_EXIT_CONFIG = 78,      /* a setting is wrong */
};

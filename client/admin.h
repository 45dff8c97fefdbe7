/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The commands of `ipython-mcp`, one file each (cmd-*.c), and what they share. A new command is a
 * new file, a row in admin.c, a line in the manual and one in the completion.
 */

#include <stdbool.h>

#include "client/rpc.h"
#include "common/rendezvous.h"

/* One run of the program; strings are borrowed from the command line. */
struct invocation {
	const char *name;       /* of the namespace */
	const char *socket;     /* --socket, NULL: the name's */
	const char *code;       /* exec: code, or "-" */
	bool is_json, is_forced;
	struct rendezvous place; /* of that name */
};

struct command {
	const char *name;
	const char *arguments; /* as the usage line shows them */
	const char *help;
	bool takes_name, takes_code, takes_json, takes_force;
	int (*run)(struct invocation *inv); /* returns the exit status */
};

extern const struct command cmd_list, cmd_status, cmd_exec, cmd_interrupt, cmd_restart, cmd_stop,
	cmd_logs;

/* Prints "ipython-mcp: MESSAGE" to standard error. */
void admin_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Connects to the daemon of that name, never starts one. 0, or the exit status after a complaint.
 */
int admin_connect(const struct invocation *inv, struct rpc *ret);

/* A request to that daemon and its result; NULL after a complaint. */
json_t *admin_call(const struct invocation *inv, struct rpc *r, const char *method, json_t *params);

/* Takes our own session, which is of no interest to who asks, out of a daemon's status. */
void admin_forget_self(json_t *status);

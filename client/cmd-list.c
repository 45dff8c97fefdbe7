/* SPDX-License-Identifier: MIT */
/*
 * ipython-mcp list: all daemons of this user.
 *
 * Sockets are files in one directory; each is asked. A stale one is left out, one that does not
 * answer is shown as such. A socket that the user manager listens on for a daemon that does not run
 * is not connected to, since that would start it.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/admin.h"
#include "client/show.h"
#include "client/unit.h"
#include "common/cleanup.h"
#include "common/wire.h"

enum { ANSWER_LIMIT_MS = 2000 };

/* Adds the status of one daemon to the array; nothing when there is none. False: no memory. */
static bool add_daemon(json_t *array, const char *name) {
	auto_rendezvous struct rendezvous place = RENDEZVOUS_NULL;
	auto_rpc struct rpc r = RPC_NULL;
	auto_free char *message = NULL;
	auto_json json_t *answer = NULL;
	json_t *result;

	if (rendezvous_init(&place, name, NULL, false, &message) < 0)
		return true;
	if (unit_state(&place) == UNIT_LISTENING)
		return json_array_append_new(array,
			       json_pack("{ssss}", "name", name, "state", "on demand")) == 0;
	if (rpc_connect(&r, &place) < 0)
		return true;
	if (rpc_call(&r, WIRE_STATUS, json_object(), ANSWER_LIMIT_MS, &answer) == RPC_MESSAGE) {
		result = json_object_get(answer, "result");
		admin_forget_self(result);
		return !result || json_array_append(array, result) == 0;
	}
	return json_array_append_new(array,
		       json_pack("{ssssss}", "name", name, "state", "not answering", "socket",
			       place.socket)) == 0;
}

static const char *text_of(const json_t *object, const char *key) {
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "-";
}

#define ROW "%-16s %-8s %-13s %-12s %8s  %-8s %s"

static void show_titles(void) {
	auto_free char *line = NULL;

	if (asprintf(&line, ROW, "NAME", "PID", "STATE", "UP", "SESSIONS", "PYTHON",
		    "INTERPRETER") >= 0)
		show_line(line, show_width());
}

/* One row of the table; the interpreter, which may be long, comes last and is what gets cut. */
static void show_row(const json_t *daemon) {
	const json_t *python = json_object_get(daemon, "python"),
		     *pid = json_object_get(daemon, "pid");
	const json_t *uptime = json_object_get(daemon, "uptime_seconds");
	const json_t *sessions = json_object_get(daemon, "sessions");
	char duration[SHOW_SIZE], number[2][SHOW_SIZE];
	auto_free char *line = NULL;

	snprintf(number[0], SHOW_SIZE, "%lld", json_integer_value(pid));
	snprintf(number[1], SHOW_SIZE, "%zu", json_array_size(sessions));
	if (asprintf(&line, ROW, text_of(daemon, "name"), pid ? number[0] : "-",
		    text_of(daemon, "state"),
		    uptime ? show_duration(json_number_value(uptime), duration) : "-",
		    sessions ? number[1] : "-", text_of(python, "version"),
		    text_of(python, "executable")) >= 0)
		show_line(line, show_width());
}

static int list_run(struct invocation *inv) {
	char **names = rendezvous_names(&inv->place);
	auto_json json_t *array = json_array();
	bool is_whole = names && array;
	const json_t *daemon;
	size_t i;

	for (char **name = names; is_whole && *name; name++)
		is_whole = add_daemon(array, *name);
	for (char **name = names; names && *name; name++)
		free(*name);
	free(names);
	if (!is_whole) {
		admin_complain("out of memory");
		return EXIT_FAILURE;
	}

	if (inv->is_json) {
		json_dumpf(array, stdout, JSON_INDENT(2));
		putchar('\n');
		return EXIT_SUCCESS;
	}
	if (!json_array_size(array)) {
		admin_complain("no daemon is running");
		return EXIT_SUCCESS;
	}
	show_titles();
	json_array_foreach(array, i, daemon)
		show_row(daemon);
	return EXIT_SUCCESS;
}

const struct command cmd_list = {
	.name = "list",
	.arguments = "[--json]",
	.help = "all daemons of this user",
	.takes_json = true,
	.run = list_run,
};

/* SPDX-License-Identifier: MIT */
/*
 * ipython-mcp
 *
 * For people: what agents do in a namespace, and how to end it. All commands but exec are served by
 * the daemon's event half alone and work whatever code runs. This file reads the command line; each
 * command is a file of its own.
 */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/admin.h"
#include "client/unit.h"
#include "common/cleanup.h"
#include "common/wire.h"

enum { ANSWER_LIMIT_MS = 5000 };

static const struct command *const commands[] = { &cmd_list, &cmd_status, &cmd_exec, &cmd_interrupt,
	&cmd_restart, &cmd_stop, &cmd_logs };

void admin_complain(const char *format, ...) {
	va_list args;

	fflush(stdout);
	fputs("ipython-mcp: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

int admin_connect(const struct invocation *inv, struct rpc *ret) {
	int err =
		unit_state(&inv->place) == UNIT_LISTENING ? -ENOENT : rpc_connect(ret, &inv->place);

	if (!err)
		return 0;
	if (err == -ENOENT || err == -ECONNREFUSED) {
		admin_complain("no daemon is running for namespace %s", inv->name);
		return WIRE_EXIT_UNAVAILABLE;
	}
	if (err == -EPERM) {
		admin_complain("%s belongs to another user", inv->place.socket);
		return WIRE_EXIT_NOPERM;
	}
	admin_complain("cannot connect to %s: %s", inv->place.socket, strerror(-err));
	return WIRE_EXIT_UNAVAILABLE;
}

json_t *admin_call(const struct invocation *inv, struct rpc *r, const char *method,
	json_t *params) {
	auto_json json_t *answer = NULL;
	json_t *result;

	switch (rpc_call(r, method, params, ANSWER_LIMIT_MS, &answer)) {
	case RPC_MESSAGE:
		break;
	case RPC_TIMEOUT:
		admin_complain(
			"the daemon does not answer; `ipython-mcp restart --force %s` ends it",
			inv->name);
		return NULL;
	default:
		admin_complain("the daemon closed the connection");
		return NULL;
	}
	result = json_object_get(answer, "result");
	if (!json_is_object(result)) {
		const char *message = json_string_value(
			json_object_get(json_object_get(answer, "error"), "message"));

		admin_complain("the daemon refuses: %s",
			message ? message : "its answer has no result");
		return NULL;
	}
	return json_incref(result);
}

void admin_forget_self(json_t *status) {
	json_t *sessions = json_object_get(status, "sessions"), *session;
	size_t i;

	json_array_foreach(sessions, i, session) {
		if (json_integer_value(json_object_get(session, "pid")) == getpid()) {
			json_array_remove(sessions, i);
			return;
		}
	}
}

static void print_help(void) {
	puts("usage: ipython-mcp COMMAND [OPTION]... [NAME]\n"
	     "\n"
	     "A namespace of IPython that agents share; NAME is which one "
	     "(default: " WIRE_DEFAULT_NAME ").\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		auto_free char *usage = NULL;

		if (asprintf(&usage, "%s %s", commands[i]->name, commands[i]->arguments) >= 0)
			printf("  %-24s %s\n", usage, commands[i]->help);
	}
	puts("\n"
	     "      --name NAME          the same as NAME\n"
	     "      --socket PATH        the daemon's socket, in place of the name's\n"
	     "      --json               list, status: print JSON\n"
	     "      --force              restart, stop: do not wait for code that does not end\n"
	     "      --help               print this and exit\n"
	     "      --version            print the version and exit\n"
	     "\n"
	     "See ipython-mcp(1).");
}

/* Complains about the command line: `what` is wrong with `word`, which may be NULL. */
static int refuse(const struct command *command, const char *what, const char *word) {
	admin_complain("%s%s%s", what, word ? ": " : "", word ? word : "");
	if (command)
		fprintf(stderr, "usage: ipython-mcp %s %s\n", command->name, command->arguments);
	else
		fputs("usage: ipython-mcp COMMAND [OPTION]... [NAME]; see ipython-mcp --help\n",
			stderr);
	return WIRE_EXIT_USAGE;
}

static const struct command *find_command(const char *name) {
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

/* Gives the arguments after the command's name their meaning. 0 or an exit status. */
static int take_arguments(struct invocation *inv, const struct command *command, int argc,
	char **argv) {
	int i = 0;

	/* The code is the last one, whatever it looks like. */
	if (command->takes_code && !argc)
		return refuse(command, "the code is missing", NULL);
	if (command->takes_code)
		inv->code = argv[--argc];
	if (i < argc && command->takes_name && !inv->name)
		inv->name = argv[i++];
	if (i < argc)
		return refuse(command, "one argument too many", argv[i]);
	if (inv->is_json && !command->takes_json)
		return refuse(command, "there is no --json for this command", NULL);
	if (inv->is_forced && !command->takes_force)
		return refuse(command, "there is no --force for this command", NULL);
	return 0;
}

/* Where the daemon is. 0 or an exit status after a complaint. */
static int find_place(struct invocation *inv) {
	auto_free char *message = NULL;
	int err;

	if (!inv->name)
		inv->name = WIRE_DEFAULT_NAME;
	if (!inv->socket)
		inv->socket = getenv("IPYTHON_MCP_SOCKET");
	if (!rendezvous_check_name(inv->name, &message)) {
		admin_complain("%s", message ? message : "out of memory");
		return WIRE_EXIT_USAGE;
	}
	err = rendezvous_init(&inv->place, inv->name, inv->socket, true, &message);
	if (err < 0) {
		admin_complain("%s", message ? message : strerror(-err));
		return err == -EPERM ? WIRE_EXIT_NOPERM : EXIT_FAILURE;
	}
	return 0;
}

int main(int argc, char **argv) {
	enum { OPT_NAME = 256, OPT_SOCKET, OPT_JSON, OPT_FORCE, OPT_HELP, OPT_VERSION };
	static const struct option options[] = {
		{ "name", required_argument, NULL, OPT_NAME },
		{ "socket", required_argument, NULL, OPT_SOCKET },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "force", no_argument, NULL, OPT_FORCE },
		{ "help", no_argument, NULL, OPT_HELP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ 0 },
	};
	struct invocation inv = { 0 };
	const struct command *command;
	int option, status;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (option) {
		case OPT_NAME:
			inv.name = optarg;
			break;
		case OPT_SOCKET:
			inv.socket = optarg;
			break;
		case OPT_JSON:
			inv.is_json = true;
			break;
		case OPT_FORCE:
			inv.is_forced = true;
			break;
		case OPT_HELP:
			print_help();
			return EXIT_SUCCESS;
		case OPT_VERSION:
			puts("ipython-mcp " PACKAGE_VERSION);
			return EXIT_SUCCESS;
		default:
			return WIRE_EXIT_USAGE;
		}
	}
	if (optind == argc)
		return refuse(NULL, "a command is missing", NULL);
	command = find_command(argv[optind]);
	if (!command)
		return refuse(NULL, "there is no such command", argv[optind]);

	status = take_arguments(&inv, command, argc - optind - 1, argv + optind + 1);
	if (!status)
		status = find_place(&inv);
	if (!status)
		status = command->run(&inv);
	rendezvous_deinit(&inv.place);
	return status;
}

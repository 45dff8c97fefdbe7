/* SPDX-License-Identifier: MIT */
/*
 * ipython-mcp-connect
 *
 * What an agent's configuration runs. Its client starts it often, sometimes only to ask one
 * question, and waits for the first answer, so what is done here before relay_run() is little:
 * options, the place, and signals as a parent may not have left them.
 */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/project.h"
#include "common/rendezvous.h"
#include "common/wire.h"
#include "client/agents.h"
#include "client/relay.h"
#include "client/setup.h"

static const char usage[] =
	"usage: ipython-mcp-connect [OPTION]...\n"
	"Connects an agent (MCP on standard input and output) to its IPython namespace, and\n"
	"starts the daemon that holds it when there is none.\n"
	"\n"
	"      --name NAME            the namespace (default: \"default\"); \"auto\" makes one\n"
	"                             from the project around the current directory\n"
	"      --profile PROFILE      full, compact or text (default: IPYTHON_MCP_PROFILE,\n"
	"                             else the daemon's)\n"
	"      --python INTERPRETER   for a daemon that is started\n"
	"      --socket PATH          the daemon's socket, whatever the name\n"
	"      --no-spawn             start no daemon, wait for one\n"
	"      --print-config AGENT   print what belongs in that agent's configuration\n"
	"      --install AGENT        put it there\n"
	"      --uninstall AGENT      take it out again\n"
	"      --help                 print this\n"
	"      --version              print the version\n"
	"\n"
	"AGENT is one of " AGENTS_NAMES ".\n"
	"See ipython-mcp-connect(1).\n";

enum { MAX_PASSED_ON = 10 };

struct options {
	const char *name, *profile, *python, *socket;
	bool is_no_spawn;

	const char *agent; /* NULL: be the relay */
	enum setup_verb verb;

	char *passed_on[MAX_PASSED_ON]; /* the others, for an agent's configuration */
};

static int complain(int code, const char *message) {
	relay_complain("%s", message ? message : "out of memory");
	return code;
}

/* What an agent is to be configured with, as given: "auto" means another project each time. */
static void fill_passed_on(struct options *o) {
	const struct {
		const char *option, *value;
	} given[] = { { "--name", o->name }, { "--profile", o->profile }, { "--python", o->python },
		{ "--socket", o->socket } };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(given); i++) {
		if (!given[i].value)
			continue;
		o->passed_on[n++] = (char *)given[i].option;
		o->passed_on[n++] = (char *)given[i].value;
	}
	if (o->is_no_spawn)
		o->passed_on[n] = (char *)"--no-spawn";
}

/* -1 to go on, else the exit code. */
static int parse_options(int argc, char **argv, struct options *o) {
	enum { OPT_NAME = 256, OPT_PROFILE, OPT_PYTHON, OPT_SOCKET, OPT_NO_SPAWN, OPT_PRINT_CONFIG,
		OPT_INSTALL, OPT_UNINSTALL, OPT_HELP, OPT_VERSION };
	static const struct option table[] = {
		{ "name", required_argument, NULL, OPT_NAME },
		{ "profile", required_argument, NULL, OPT_PROFILE },
		{ "python", required_argument, NULL, OPT_PYTHON },
		{ "socket", required_argument, NULL, OPT_SOCKET },
		{ "no-spawn", no_argument, NULL, OPT_NO_SPAWN },
		{ "print-config", required_argument, NULL, OPT_PRINT_CONFIG },
		{ "install", required_argument, NULL, OPT_INSTALL },
		{ "uninstall", required_argument, NULL, OPT_UNINSTALL },
		{ "help", no_argument, NULL, OPT_HELP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ 0 },
	};

	for (;;) {
		int option = getopt_long(argc, argv, "", table, NULL);

		switch (option) {
		case OPT_NAME:
			o->name = optarg;
			break;
		case OPT_PROFILE:
			o->profile = optarg;
			break;
		case OPT_PYTHON:
			o->python = optarg;
			break;
		case OPT_SOCKET:
			o->socket = optarg;
			break;
		case OPT_NO_SPAWN:
			o->is_no_spawn = true;
			break;
		case OPT_PRINT_CONFIG:
		case OPT_INSTALL:
		case OPT_UNINSTALL:
			if (o->agent)
				return complain(WIRE_EXIT_USAGE,
					"one of --print-config, --install, --uninstall at a time");
			o->agent = optarg;
			o->verb = option == OPT_PRINT_CONFIG ? SETUP_PRINT
				: option == OPT_INSTALL      ? SETUP_INSTALL
							     : SETUP_UNINSTALL;
			break;
		case OPT_HELP:
			fputs(usage, stdout);
			return 0;
		case OPT_VERSION:
			puts("ipython-mcp-connect " PACKAGE_VERSION);
			return 0;
		case -1:
			if (optind < argc)
				return complain(WIRE_EXIT_USAGE, "takes no arguments, see --help");
			return -1;
		default:
			return WIRE_EXIT_USAGE;
		}
	}
}

/* The profile asked for, NULL when none was; false when it is none. */
static bool find_profile(const struct options *o, const char **ret_profile) {
	const char *name = o->profile ? o->profile : getenv("IPYTHON_MCP_PROFILE");

	*ret_profile = name && *name ? hello_profile(name) : NULL;
	return !name || !*name || *ret_profile;
}

/*
 * A parent may ignore or block what has to end us, and a client that went away is no reason to die.
 */
static void prepare_signals(void) {
	sigset_t none;

	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What is opened later must never be taken for standard input or output. */
static void fill_standard_fds(void) {
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDWR);
}

int main(int argc, char **argv) {
	struct options o = { 0 };
	auto_rendezvous struct rendezvous place = RENDEZVOUS_NULL;
	auto_free char *cwd = NULL, *derived = NULL, *failure = NULL;
	struct spawn_options spawn = { 0 };
	struct relay_options relay = { .place = &place };
	int code;

	fill_standard_fds();
	code = parse_options(argc, argv, &o);
	if (code >= 0)
		return code;
	if (!find_profile(&o, &relay.hello.profile))
		return complain(WIRE_EXIT_USAGE,
			o.profile ? "--profile must be full, compact or text"
				  : "IPYTHON_MCP_PROFILE must be full, compact or text");
	if (o.agent) {
		fill_passed_on(&o);
		return setup_run(o.verb, o.agent, o.name, o.passed_on);
	}
	prepare_signals();

	/* A directory that was removed has no name; the daemon then knows none. */
	cwd = getcwd(NULL, 0);
	relay.hello.cwd = cwd;
	spawn.name = o.name ? o.name : WIRE_DEFAULT_NAME;
	if (!strcmp(spawn.name, "auto")) {
		derived = project_name(cwd ? cwd : "/");
		if (!derived)
			return complain(WIRE_EXIT_SOFTWARE, NULL);
		spawn.name = derived;
	}
	spawn.socket = o.socket ? o.socket : getenv("IPYTHON_MCP_SOCKET");
	if (spawn.socket && !*spawn.socket)
		spawn.socket = NULL;
	spawn.python = o.python;
	if (!o.is_no_spawn)
		relay.spawn = &spawn;

	code = rendezvous_init(&place, spawn.name, spawn.socket, !o.is_no_spawn, &failure);
	if (code < 0) {
		/*
		 * A client shows what a server answers sooner than what it wrote before it ended.
		 */
		relay.failure = failure ? failure : "out of memory";
		relay.failure_exit = code == -EPERM ? WIRE_EXIT_NOPERM
			: code == -EINVAL	    ? WIRE_EXIT_USAGE
						    : WIRE_EXIT_UNAVAILABLE;
		relay_complain("%s", relay.failure);
	}
	return relay_run(&relay);
}

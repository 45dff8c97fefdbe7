/* SPDX-License-Identifier: MIT */
/*
 * ipython-mcpd
 *
 * Options, settings, the log; then daemon.c starts the parts and the loop runs until a stop. A
 * faulty setting is no reason to end: an agent sees only its tools, so the daemon stays and tells
 * it.
 */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/project.h"
#include "common/wire.h"
#include "daemon/daemon.h"
#include "daemon/paths.h"

static const char usage[] =
	"usage: ipython-mcpd [OPTION]...\n"
	"Keeps one IPython namespace and serves it to agents over a Unix socket (MCP).\n"
	"Started by ipython-mcp-connect or systemd. By hand it stays in the foreground, where\n"
	"Ctrl-C interrupts what runs; `ipython-mcp stop` or SIGTERM ends it.\n"
	"\n"
	"      --name NAME         the namespace's name (default: \"default\"); \"auto\" makes "
	"one\n"
	"                          from the project around the current directory\n"
	"      --socket PATH       listen there (default: by name, see ipython-mcpd(8))\n"
	"      --python PATH       the interpreter, whose environment is the shell's\n"
	"      --client-directory PATH\n"
	"                          where the client that starts this daemon is at work\n"
	"      --check             check the settings, start nothing\n"
	"      --log-level LEVEL   error, warning, notice, info (default) or debug\n"
	"      --help              print this\n"
	"      --version           print the version\n"
	"\n"
	"Settings are environment variables IPYTHON_MCP_*: see ipython-mcpd(8).\n";

struct options {
	const char *name, *socket, *python, *client_directory, *log_level;
	bool is_check;
};

/* -1 for anything else. */
static int log_level_from_name(const char *name) {
	static const char *const names[] = {
		[LOG_LEVEL_ERROR] = "error",
		[LOG_LEVEL_WARNING] = "warning",
		[LOG_LEVEL_NOTICE] = "notice",
		[LOG_LEVEL_INFO] = "info",
		[LOG_LEVEL_DEBUG] = "debug",
	};

	for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -1;
}

static int complain(int code, const char *message) {
	fprintf(stderr, "ipython-mcpd: %s\n", message ? message : "out of memory");
	return code;
}

/* -1 to go on, else the exit code. */
static int parse_options(int argc, char **argv, struct options *o) {
	enum {
		OPT_NAME = 256,
		OPT_SOCKET,
		OPT_PYTHON,
		OPT_CLIENT_DIRECTORY,
		OPT_CHECK,
		OPT_LOG_LEVEL,
		OPT_HELP,
		OPT_VERSION
	};
	static const struct option table[] = {
		{ "name", required_argument, NULL, OPT_NAME },
		{ "socket", required_argument, NULL, OPT_SOCKET },
		{ "python", required_argument, NULL, OPT_PYTHON },
		{ "client-directory", required_argument, NULL, OPT_CLIENT_DIRECTORY },
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "log-level", required_argument, NULL, OPT_LOG_LEVEL },
		{ "help", no_argument, NULL, OPT_HELP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ 0 },
	};

	for (;;) {
		switch (getopt_long(argc, argv, "", table, NULL)) {
		case OPT_NAME:
			o->name = optarg;
			break;
		case OPT_SOCKET:
			o->socket = optarg;
			break;
		case OPT_PYTHON:
			o->python = optarg;
			break;
		case OPT_CLIENT_DIRECTORY:
			o->client_directory = optarg;
			break;
		case OPT_CHECK:
			o->is_check = true;
			break;
		case OPT_LOG_LEVEL:
			o->log_level = optarg;
			if (log_level_from_name(optarg) < 0)
				return complain(WIRE_EXIT_USAGE, "--log-level must be error, "
								 "warning, notice, info or debug");
			break;
		case OPT_HELP:
			fputs(usage, stdout);
			return 0;
		case OPT_VERSION:
			puts("ipython-mcpd " PACKAGE_VERSION);
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

/* What is opened later must never be standard input, output or error. */
static void fill_standard_fds(void) {
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_NOCTTY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* The log keeps standard error; descriptor 2 becomes a pipe for user code. */
static void start_log(const char *level, struct buf *faults) {
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int known = level ? log_level_from_name(level) : LOG_LEVEL_INFO;

	if (known < 0)
		buf_add_str(faults,
			"IPYTHON_MCP_LOG must be error, warning, notice, info or debug\n");
	log_init(fd < 0 ? STDERR_FILENO : fd, "ipython-mcpd",
		known < 0 ? LOG_LEVEL_INFO : (enum log_level)known);
}

/* Settings and the interpreter, as the directory we are started in and the environment say. */
static int load_settings(struct daemon *d, const struct options *o, struct buf *faults) {
	auto_free char *cwd = getcwd(NULL, 0);
	auto_free char *root = o->client_directory ? project_tree(o->client_directory) : NULL;
	char *python;
	int r = config_load(&d->settings, environ, root, faults);

	if (r < 0)
		return r;
	python = project_python(o->python, cwd ? cwd : "/");
	if (python) {
		free(d->settings.python);
		d->settings.python = python;
	}
	return 0;
}

static int find_place(struct daemon *d, const struct options *o, char **ret_message) {
	auto_free char *cwd = getcwd(NULL, 0);
	auto_free char *project = NULL;
	const char *name = o->name;

	if (name && !strcmp(name, "auto"))
		name = project = project_name(cwd ? cwd : "/");
	return rendezvous_init(&d->rendezvous, name,
		o->socket ? o->socket : getenv("IPYTHON_MCP_SOCKET"), true, ret_message);
}

static int exit_code(int err) {
	switch (err) {
	case -EINVAL:
	case -ENAMETOOLONG:
		return WIRE_EXIT_USAGE;
	case -EPERM:
	case -EACCES:
	case -ENOTDIR:
		return WIRE_EXIT_NOPERM;
	case -ENOMEM:
	case -EBADF:
		return WIRE_EXIT_SOFTWARE;
	default:
		return WIRE_EXIT_UNAVAILABLE;
	}
}

int main(int argc, char **argv) {
	static struct daemon d;
	struct options options = { .log_level = NULL };
	auto_buf struct buf faults = BUF_NULL;
	auto_free char *message = NULL, *text = NULL;
	int r;

	fill_standard_fds();
	r = parse_options(argc, argv, &options);
	if (r >= 0)
		return r;
	if (!options.log_level)
		options.log_level = getenv("IPYTHON_MCP_LOG");

	r = load_settings(&d, &options, &faults);
	if (r < 0)
		return complain(WIRE_EXIT_SOFTWARE, strerror(-r));
	start_log(options.log_level, &faults);
	/*
	 * Without --check the start looks at directories itself, in its order, and tells its phase.
	 */
	if (options.is_check)
		paths_check(&d.settings, &faults);
	if (faults.len) {
		text = buf_take(&faults, NULL);
		if (!text)
			return complain(WIRE_EXIT_SOFTWARE, NULL);
	}
	if (options.is_check) {
		if (text)
			fputs(text, stderr);
		config_deinit(&d.settings);
		return text ? WIRE_EXIT_CONFIG : 0;
	}

	r = find_place(&d, &options, &message);
	if (r >= 0)
		r = daemon_start(&d, text, &message);
	if (r < 0)
		log_error("%s", message ? message : strerror(-r));
	else
		r = daemon_run(&d);
	if (!daemon_end(&d))
		_exit(r < 0 ? exit_code(r) : 0);
	return r < 0 ? exit_code(r) : 0;
}

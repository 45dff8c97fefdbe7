/* SPDX-License-Identifier: MIT */
/*
 * Units
 *
 * A socket that the user manager holds cannot be asked whether a daemon is behind it: connecting
 * starts one. The manager knows; systemctl is how it is asked, and only where the socket is in the
 * units' place and the manager runs, so that nobody else pays for it.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/unit.h"
#include "common/cleanup.h"
#include "common/wire.h"

#define UNIT "ipython-mcpd"

char *unit_name(const struct rendezvous *place, const char *kind) {
	char *name;
	int n = strcmp(place->name, WIRE_DEFAULT_NAME)
		? asprintf(&name, UNIT "@%s.%s", place->name, kind)
		: asprintf(&name, UNIT ".%s", kind);

	return n < 0 ? NULL : name;
}

/* "/run/user/UID", where the user manager is when there is one. */
static void manager_directory(char *ret, size_t size) {
	snprintf(ret, size, "/run/user/%u", (unsigned)geteuid());
}

void unit_find_manager(void) {
	char directory[64];

	manager_directory(directory, sizeof(directory));
	setenv("XDG_RUNTIME_DIR", directory, 1);
}

/* Whether the units are where the manager finds them. */
static bool is_installed(void) {
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	auto_free char *own = NULL;
	int n = -1;

	if (access(SYSTEMDUSERUNITDIR "/" UNIT "@.socket", F_OK) == 0)
		return true;
	if (config && *config == '/')
		n = asprintf(&own, "%s/systemd/user/" UNIT "@.socket", config);
	else if (home)
		n = asprintf(&own, "%s/.config/systemd/user/" UNIT "@.socket", home);
	if (n < 0)
		own = NULL;
	return own && access(own, F_OK) == 0;
}

bool unit_is_there(const struct rendezvous *place) {
	auto_free char *socket = NULL, *manager = NULL;
	char directory[64];

	manager_directory(directory, sizeof(directory));
	if (asprintf(&socket, "%s/ipython-mcp/%s.sock", directory, place->name) < 0)
		socket = NULL;
	if (asprintf(&manager, "%s/systemd/private", directory) < 0)
		manager = NULL;
	return socket && manager && !strcmp(socket, place->socket) && access(manager, F_OK) == 0 &&
		is_installed();
}

/* In the child: systemctl, its output in `out`. */
static void run_systemctl(const char *property, const char *unit, int out) {
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(1);
	unit_find_manager();
	execlp("systemctl", "systemctl", "--user", "show", "--value", "--property", property, unit,
		(char *)NULL);
	_exit(1);
}

/* The value of a unit's property; "" when the manager does not tell. */
static void show_property(const char *unit, const char *property, char *ret, size_t size) {
	int ends[2];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	ret[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0)
		run_systemctl(property, unit, ends[1]);
	close(ends[1]);
	while (pid > 0 && len + 1 < size && (n = read(ends[0], ret + len, size - len - 1)) > 0)
		len += (size_t)n;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	ret[len] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

enum unit_state unit_state(const struct rendezvous *place) {
	auto_free char *service = NULL, *socket = NULL;
	char state[64];

	if (!unit_is_there(place))
		return UNIT_NONE;
	socket = unit_name(place, "socket");
	service = unit_name(place, "service");
	if (!socket || !service)
		return UNIT_NONE;
	show_property(socket, "ActiveState", state, sizeof(state));
	if (strcmp(state, "active"))
		return UNIT_NONE;
	show_property(service, "ActiveState", state, sizeof(state));
	return !strcmp(state, "inactive") || !strcmp(state, "failed") || !*state ? UNIT_LISTENING
										  : UNIT_RUNNING;
}

pid_t unit_pid(const struct rendezvous *place) {
	auto_free char *service = NULL;
	char pid[32];

	if (!unit_is_there(place))
		return 0;
	service = unit_name(place, "service");
	if (!service)
		return 0;
	show_property(service, "MainPID", pid, sizeof(pid));
	return (pid_t)strtol(pid, NULL, 10);
}

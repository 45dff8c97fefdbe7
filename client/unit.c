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

static char *unit_name(const struct rendezvous *place, const char *kind) {
	char *name;
	int n = strcmp(place->name, WIRE_DEFAULT_NAME)
		? asprintf(&name, UNIT "@%s.%s", place->name, kind)
		: asprintf(&name, UNIT ".%s", kind);

	return n < 0 ? NULL : name;
}

char *unit_service(const struct rendezvous *place) {
	return unit_name(place, "service");
}

/* True when the manager may hold this very socket. */
static bool is_place_of_units(const struct rendezvous *place) {
	auto_free char *socket = NULL, *manager = NULL;
	unsigned uid = (unsigned)geteuid();

	if (asprintf(&socket, "/run/user/%u/ipython-mcp/%s.sock", uid, place->name) < 0)
		socket = NULL;
	if (asprintf(&manager, "/run/user/%u/systemd/private", uid) < 0)
		manager = NULL;
	return socket && manager && !strcmp(socket, place->socket) && access(manager, F_OK) == 0;
}

/* In the child: systemctl, its output in `out`. */
static void run_systemctl(const char *property, const char *unit, int out) {
	int null = open("/dev/null", O_RDWR);
	char directory[64];

	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(1);
	snprintf(directory, sizeof(directory), "/run/user/%u", (unsigned)geteuid());
	setenv("XDG_RUNTIME_DIR", directory, 1);
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

	if (!is_place_of_units(place))
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

	if (!is_place_of_units(place))
		return 0;
	service = unit_name(place, "service");
	if (!service)
		return 0;
	show_property(service, "MainPID", pid, sizeof(pid));
	return (pid_t)strtol(pid, NULL, 10);
}

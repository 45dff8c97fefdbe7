/* SPDX-License-Identifier: MIT */
/*
 * The Place to Listen
 *
 * A socket passed by the service manager is checked and used as it is; its file is the manager's.
 * Otherwise one is bound under the bind lock, which is held for that moment only: what it guards is
 * the change from "nobody listens" to "somebody does". A stale file is replaced, a live socket
 * never: a second daemon for a namespace says who the first one is, and ends.
 *
 * Removing the file at the end takes the same lock and looks whether somebody listens there by now,
 * so that it is never a successor's socket that goes.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "daemon/answer.h"
#include "daemon/endpoint.h"
#include "daemon/systemd.h"

/* Somebody else binds or removes: a matter of milliseconds, unless that process was stopped. */
enum { LOCK_TIMEOUT_MS = 5000, REMOVE_TIMEOUT_MS = 1000 };

/* The manager's place may be another one than ours; people are to be told the true one. */
static void adopt_path(struct rendezvous *r, int fd) {
	struct sockaddr_un address;
	socklen_t len = sizeof(address);
	char *path;

	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 || address.sun_path[0] != '/')
		return;
	path = strndup(address.sun_path, sizeof(address.sun_path));
	if (!path)
		return;
	free(r->socket);
	r->socket = path;
}

static char *in_use_message(const struct rendezvous *r) {
	auto_close int fd = rendezvous_connect(r);
	pid_t pid;
	uid_t uid;

	if (fd >= 0 && rendezvous_peer(fd, &pid, &uid))
		return answer_message(
			"a daemon for namespace \"%s\" runs already: process %d at %s; end it "
			"with `ipython-mcp stop %s`, or choose another --name",
			r->name, (int)pid, r->socket, r->name);
	return answer_message(
		"a daemon for namespace \"%s\" runs already at %s", r->name, r->socket);
}

static char *bind_message(const struct rendezvous *r, int err) {
	switch (err) {
	case -EADDRINUSE:
		return in_use_message(r);
	case -ENOTSOCK:
		return answer_message(
			"%s is in the way and is no socket: remove it, or choose another place "
			"with --socket",
			r->socket);
	case -EPERM:
		return answer_message(
			"%s belongs to another user: choose another place with --socket",
			r->socket);
	default:
		return answer_message("cannot listen at %s: %s", r->socket, strerror(-err));
	}
}

static int endpoint_bind(const struct rendezvous *r, int *ret_fd, char **ret_message) {
	auto_close int lock = rendezvous_lock(r, LOCK_TIMEOUT_MS);
	int fd;

	if (lock < 0) {
		*ret_message = answer_message("cannot lock %s: %s", r->lock, strerror(-lock));
		return lock;
	}
	fd = rendezvous_listen(r);
	if (fd < 0) {
		*ret_message = bind_message(r, fd);
		return fd;
	}
	*ret_fd = fd;
	return 0;
}

int endpoint_open(struct rendezvous *r, int *ret_fd, bool *ret_is_inherited, char **ret_message) {
	int n = systemd_socket(ret_fd);

	*ret_is_inherited = n > 0;
	if (n < 0)
		*ret_message =
			answer_message("the service manager must pass exactly one listening Unix "
				       "stream socket (ListenStream=): %s",
				strerror(-n));
	if (n < 0)
		return n;
	if (!n)
		return endpoint_bind(r, ret_fd, ret_message);
	adopt_path(r, *ret_fd);
	return 0;
}

void endpoint_remove(const struct rendezvous *r) {
	auto_close int lock = rendezvous_lock(r, REMOVE_TIMEOUT_MS);
	auto_close int successor = -1;

	if (lock < 0) {
		log_warning("cannot lock %s: %s, leaving the socket", r->lock, strerror(-lock));
		return;
	}
	successor = rendezvous_connect(r);
	if (successor == -ECONNREFUSED)
		unlink(r->socket);
}

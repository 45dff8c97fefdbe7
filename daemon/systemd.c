/* SPDX-License-Identifier: MIT */
/*
 * Service Manager
 *
 * libsystemd reads the environment here, once, before there are threads. It is opened only when the
 * environment speaks of a manager: with all that it depends on it would take a third of the time
 * that a daemon started by an agent needs until it listens.
 *
 * Notifications are sent by hand: sd_notify() would read the environment for each, while user code
 * may be changing it on another thread.
 */

#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "daemon/fds.h"
#include "daemon/systemd.h"

static struct {
	int notify; /* connected datagram socket, -1: nobody listens */
	int n_sockets;
	uint64_t watchdog_us;
} manager = { .notify = -1 };

#ifdef HAVE_SYSTEMD

/* Connects to the manager's socket; the environment says where. */
static int connect_notify(const char *path) {
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = strlen(path);

	if (fd < 0)
		return err_new(-errno);
	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(address.sun_path))
		return err_new(-EINVAL);
	memcpy(address.sun_path, path, len);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	len += offsetof(struct sockaddr_un, sun_path);
	if (connect(fd, (struct sockaddr *)&address, (socklen_t)len) < 0)
		return err_new(-errno);
	return take_fd(&fd);
}

/* What is used of libsystemd. */
static struct {
	__typeof__(sd_listen_fds) *listen_fds;
	__typeof__(sd_is_socket_unix) *is_socket_unix;
	__typeof__(sd_watchdog_enabled) *watchdog_enabled;
} libsystemd;

/* Stays open: it is small beside Python, and the manager is here to stay. */
static bool open_libsystemd(void) {
	void *library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
	libsystemd.listen_fds = dlsym(library, "sd_listen_fds");
	libsystemd.is_socket_unix = dlsym(library, "sd_is_socket_unix");
	libsystemd.watchdog_enabled = dlsym(library, "sd_watchdog_enabled");
	return libsystemd.listen_fds && libsystemd.is_socket_unix && libsystemd.watchdog_enabled;
}

void systemd_init(void) {
	const char *path = getenv("NOTIFY_SOCKET");

	if (path) {
		manager.notify = connect_notify(path);
		if (manager.notify < 0)
			log_warning(
				"cannot reach the service manager at NOTIFY_SOCKET: %s, ignoring",
				strerror(-manager.notify));
		else
			fds_add(manager.notify);
		unsetenv("NOTIFY_SOCKET");
	}
	if (!getenv("LISTEN_FDS") && !getenv("WATCHDOG_USEC"))
		return;
	if (!open_libsystemd()) {
		log_error("the service manager asks for libsystemd.so.0, which is missing: %s",
			dlerror());
		manager.n_sockets = -ENOENT;
		return;
	}
	if (libsystemd.watchdog_enabled(1, &manager.watchdog_us) <= 0)
		manager.watchdog_us = 0;
	manager.n_sockets = libsystemd.listen_fds(1);
}

int systemd_socket(int *ret_fd) {
	if (manager.n_sockets <= 0)
		return manager.n_sockets;
	if (manager.n_sockets > 1 ||
		libsystemd.is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) <= 0)
		return err_new(-ENOTSOCK);
	*ret_fd = SD_LISTEN_FDS_START;
	return 1;
}

#else

void systemd_init(void) {
}

int systemd_socket(int *ret_fd) {
	return 0;
}

#endif

uint64_t systemd_watchdog_us(void) {
	return manager.watchdog_us;
}

void systemd_notify(const char *state) {
	if (manager.notify >= 0)
		(void)!send(manager.notify, state, strlen(state), MSG_NOSIGNAL);
}

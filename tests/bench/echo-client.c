/* SPDX-License-Identifier: MIT */
/*
 * The Reference for Hops, Client
 *
 * Relays standard input to a Unix socket and what comes back to standard output: the least that a
 * stdio relay must do.
 *
 *	echo-client SOCKET
 */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Passes on what one descriptor has; false at its end. */
static int pass(int from, int to) {
	static char bytes[1 << 16];
	ssize_t len = read(from, bytes, sizeof(bytes));

	return len > 0 && write(to, bytes, (size_t)len) == len;
}

int main(int argc, char **argv) {
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct pollfd fds[2] = { { .fd = 0, .events = POLLIN }, { .events = POLLIN } };

	if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 64;
	strcpy(address.sun_path, argv[1]);
	fds[1].fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fds[1].fd < 0 ||
		connect(fds[1].fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		perror(argv[1]);
		return 1;
	}
	while (poll(fds, 2, -1) > 0) {
		if (fds[0].revents && !pass(0, fds[1].fd))
			return 0;
		if (fds[1].revents && !pass(fds[1].fd, 1))
			return 0;
	}
	return 1;
}

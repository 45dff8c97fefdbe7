/* SPDX-License-Identifier: MIT */
/*
 * The Reference for Hops, Server
 *
 * Answers each line that comes over a Unix socket with the same line: what any local server must
 * cost at least. One client at a time is all the benchmark needs.
 *
 *	echo-server SOCKET
 */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv) {
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	static char bytes[1 << 16];
	int fd, client;
	ssize_t len;

	if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 64;
	strcpy(address.sun_path, argv[1]);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, 16) < 0) {
		perror(argv[1]);
		return 1;
	}
	while ((client = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		while ((len = read(client, bytes, sizeof(bytes))) > 0)
			if (write(client, bytes, (size_t)len) != len)
				break;
		close(client);
	}
	return 1;
}

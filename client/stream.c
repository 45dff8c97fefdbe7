/* SPDX-License-Identifier: MIT */
/*
 * Stream
 *
 * Standard output belongs to the client as much as to us: O_NONBLOCK set on it would be set for
 * everybody who shares it. A socket takes a flag per message instead. A pipe or a terminal is
 * opened once more through /proc, which gives a description with flags of its own; where that is
 * refused, pieces of PIPE_BUF bytes never block once poll() has said that the pipe takes some. A
 * regular file is written as it is, since a new description would begin at its start.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/stream.h"

enum { KEPT_CAP = 256 * 1024 /* more than this is given back when it is empty */ };

void stream_init(struct stream *s, int fd) {
	*s = (struct stream){ .fd = fd, .own_fd = -1 };
}

void stream_deinit(struct stream *s) {
	buf_deinit(&s->data);
	if (s->own_fd >= 0)
		close(s->own_fd);
	s->own_fd = -1;
}

/* What is no socket. */
static void find_kind(struct stream *s) {
	char path[32];
	struct stat st;

	s->kind = STREAM_FILE;
	if (fstat(s->fd, &st) < 0 || (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
	s->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	s->kind = s->own_fd >= 0 ? STREAM_NONBLOCKING : STREAM_SLOW;
}

static ssize_t write_slow(struct stream *s, const char *data, size_t len) {
	struct pollfd fd = { .fd = s->fd, .events = POLLOUT };

	if (poll(&fd, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(s->fd, data, len < PIPE_BUF ? len : PIPE_BUF);
}

static ssize_t write_some(struct stream *s, const char *data, size_t len) {
	ssize_t n;

	if (s->kind == STREAM_UNKNOWN || s->kind == STREAM_SOCKET) {
		n = send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0 || errno != ENOTSOCK) {
			s->kind = STREAM_SOCKET;
			return n;
		}
		find_kind(s);
	}
	if (s->kind == STREAM_SLOW)
		return write_slow(s, data, len);
	return write(s->own_fd >= 0 ? s->own_fd : s->fd, data, len);
}

int stream_flush(struct stream *s) {
	if (s->data.has_failed)
		return -ENOMEM;
	while (s->sent < s->data.len) {
		ssize_t n = write_some(s, s->data.data + s->sent, s->data.len - s->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		s->sent += (size_t)n;
	}
	if (s->sent == s->data.len) {
		s->sent = 0;
		buf_clear(&s->data);
		if (s->data.cap > KEPT_CAP)
			buf_deinit(&s->data);
	} else if (s->sent > s->data.len / 2) {
		memmove(s->data.data, s->data.data + s->sent, s->data.len - s->sent);
		s->data.len -= s->sent;
		s->sent = 0;
	}
	return 0;
}

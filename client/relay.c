/* SPDX-License-Identifier: MIT */
/*
 * Relay
 *
 * One loop, one thread, four queues: lines that came from either side, bytes that still have to go
 * to the other. Only whole lines go on, as they came. Each direction is read as long as the other
 * end takes what was read before, so neither waits for the other and both are bounded.
 *
 * While there is no daemon (link.c) the client's lines stay in their queue. Nothing here waits: a
 * client that ends is noticed in any state.
 *
 * Signals need no handling. Clients send SIGINT or SIGTERM to have the shim end, and a signal's
 * default action is the fastest way; the daemon, in a session of its own, never sees them.
 */

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/frame.h"
#include "common/wire.h"
#include "client/link.h"
#include "client/lost.h"
#include "client/relay.h"

enum {
	READ_SIZE = 65536,
	HIGH_WATER = 1024 * 1024,    /* bytes waiting for one side before the other is not read */
	QUEUE_MAX = 8 * 1024 * 1024, /* bytes of lines waiting for a daemon */
	DEFAULT_MAX_MESSAGE = 67108864,

	GRACE_MS = 900,       /* for answers after the client's end */
	EOF_LIMIT_MS = 11000, /* for reaching a daemon at all after it */
};

struct relay {
	struct link link;
	struct replay *replay;
	int exit_code;

	struct frame from_client;
	struct stream to_client;
	bool has_ended;  /* standard input has */
	bool is_hung_up; /* it will, once it is read again */
	bool is_shut;    /* the daemon has been told */

	int64_t now_ms;
	int64_t ended_ms;    /* standard input did */
	int64_t shut_ms;     /* and the daemon was told */
	int64_t progress_ms; /* the daemon last took something */
};

void relay_complain(const char *format, ...) {
	char line[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	(void)dprintf(STDERR_FILENO, "ipython-mcp-connect: %s\n", line);
}

/* The limit that a daemon started by us would have. */
static size_t max_message(void) {
	const char *configured = getenv("IPYTHON_MCP_MAX_MESSAGE_BYTES");
	long long bytes = configured ? strtoll(configured, NULL, 10) : 0;

	return bytes > 0 ? (size_t)bytes : DEFAULT_MAX_MESSAGE;
}

/* Appends a line of a frame as it came, with whatever ended it. */
static void add_line(struct buf *to, const char *line, size_t len) {
	buf_add(to, line, len + (line[len] == '\r' ? 2 : 1));
}

/* Whether the client's next line has somewhere to go. */
static bool can_pump(const struct relay *r) {
	return r->link.state == LINK_REFUSING ||
		(r->link.state == LINK_STEADY && stream_pending(&r->link.out) < HIGH_WATER);
}

/* Passes on the client's lines. False when the program has to end. */
static bool pump_client(struct relay *r) {
	char *line;
	size_t len;

	while (can_pump(r)) {
		switch (frame_next(&r->from_client, &line, &len)) {
		case FRAME_MORE:
			return true;
		case FRAME_TOO_LONG:
			lost_write_too_long(&r->to_client.data,
				r->from_client.data + r->from_client.start,
				frame_pending(&r->from_client), r->from_client.max_line);
			frame_skip(&r->from_client);
			continue;
		case FRAME_LINE:
			break;
		}
		if (r->link.state == LINK_REFUSING) {
			replay_refuse(r->replay, line, len, r->link.failure, &r->to_client.data);
			continue;
		}
		switch (replay_on_client_line(r->replay, line, len)) {
		case REPLAY_PASS:
			if (!r->link.is_deaf)
				add_line(&r->link.out.data, line, len);
			break;
		case REPLAY_DROP:
			break;
		case REPLAY_FAIL:
			relay_complain("%s", replay_failure(r->replay));
			r->exit_code = WIRE_EXIT_SOFTWARE;
			return false;
		}
	}
	return true;
}

/* Passes on the daemon's lines. False when the program has to end. */
static bool pump_daemon(struct relay *r) {
	char *line;
	size_t len;

	for (;;) {
		enum frame_result result = frame_next(&r->link.in, &line, &len);

		if (result == FRAME_MORE)
			return true;
		if (result == FRAME_TOO_LONG) {
			relay_complain("the daemon sent a line of more than %zu bytes",
				r->link.in.max_line);
			link_lose(&r->link, r->is_shut);
			return true;
		}
		switch (link_on_line(&r->link, line, len)) {
		case REPLAY_PASS:
			add_line(&r->to_client.data, line, len);
			break;
		case REPLAY_DROP:
			break;
		case REPLAY_FAIL:
			relay_complain("%s", replay_failure(r->replay));
			r->exit_code = WIRE_EXIT_UNAVAILABLE;
			return false;
		}
	}
}

/* Reads once. More than 0, 0 at the end, or -1 when there is nothing now. */
static ssize_t read_some(int fd, struct frame *frame) {
	char *at = frame_reserve(frame, READ_SIZE);
	ssize_t n;

	if (!at)
		return 0;
	n = read(fd, at, READ_SIZE);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -1 : 0;
	frame_commit(frame, (size_t)n);
	return n;
}

static void read_client(struct relay *r) {
	ssize_t n = read_some(STDIN_FILENO, &r->from_client);

	if (n)
		return;
	r->has_ended = true;
	r->ended_ms = r->now_ms;
	/*
	 * `printf %s` leaves the last newline out. If it was a line cut short, the daemon will say
	 * so.
	 */
	if (frame_pending(&r->from_client) && frame_push(&r->from_client, "\n", 1) < 0)
		relay_complain("out of memory");
}

/* Whether a client's line is on its way to a daemon. */
static bool has_queued(const struct relay *r) {
	return frame_pending(&r->from_client) > 0 || stream_pending(&r->link.out) > 0;
}

/* After the end of standard input: whether the program's own has come. */
static bool is_over(struct relay *r) {
	if (r->is_hung_up && r->now_ms - r->progress_ms >= GRACE_MS)
		return true;
	if (!r->has_ended)
		return false;
	if (r->link.state == LINK_REFUSING)
		return !stream_pending(&r->to_client) || r->now_ms - r->ended_ms >= GRACE_MS;
	if (r->now_ms - r->ended_ms >= EOF_LIMIT_MS)
		return true;
	if (!has_queued(r) && !r->is_shut) {
		if (r->link.fd >= 0)
			(void)shutdown(r->link.fd, SHUT_WR);
		r->is_shut = true;
		r->shut_ms = r->now_ms;
	}
	if (!r->is_shut)
		return false;
	if (r->now_ms - r->shut_ms >= GRACE_MS)
		return true;
	return (r->link.fd < 0 || replay_is_idle(r->replay)) && !stream_pending(&r->to_client);
}

/* A reconnect that came to nothing ends the program once the client knows. */
static bool has_given_up(const struct relay *r) {
	return r->link.state == LINK_REFUSING && r->link.was_attached &&
		!stream_pending(&r->to_client);
}

static bool wants_client(const struct relay *r) {
	if (r->has_ended)
		return false;
	if (r->link.state == LINK_STEADY)
		return stream_pending(&r->link.out) < HIGH_WATER;
	return r->link.state == LINK_REFUSING ? stream_pending(&r->to_client) < HIGH_WATER
					      : frame_pending(&r->from_client) < QUEUE_MAX;
}

/* How long poll() may wait. */
static int timeout(const struct relay *r) {
	int64_t until = link_deadline(&r->link);

	if (r->is_hung_up && r->progress_ms + GRACE_MS < until)
		until = r->progress_ms + GRACE_MS;
	if (r->has_ended && !r->is_shut && r->ended_ms + EOF_LIMIT_MS < until)
		until = r->ended_ms + (r->link.state == LINK_REFUSING ? GRACE_MS : EOF_LIMIT_MS);
	if (r->is_shut && r->shut_ms + GRACE_MS < until)
		until = r->shut_ms + GRACE_MS;
	if (until == INT64_MAX)
		return -1;
	return until > r->now_ms ? (int)(until - r->now_ms) : 0;
}

/* Sends what can be sent. False when the client has gone. */
static bool flush(struct relay *r) {
	if (link_flush(&r->link))
		r->progress_ms = r->now_ms;
	if (r->to_client.data.has_failed) {
		relay_complain("out of memory");
		r->exit_code = WIRE_EXIT_SOFTWARE;
	}
	return stream_flush(&r->to_client) == 0;
}

enum { CLIENT_IN, CLIENT_OUT, DAEMON, STARTED, N_FDS };

/* Waits for something to happen, and reads it. False when the client has gone. */
static bool turn(struct relay *r) {
	bool wants_in = wants_client(r), wants_daemon = stream_pending(&r->to_client) < HIGH_WATER;
	bool ignores_in = r->has_ended || (!wants_in && r->is_hung_up);
	short daemon_events = (short)((wants_daemon ? POLLIN : 0) |
		(stream_pending(&r->link.out) ? POLLOUT : 0));
	struct pollfd fds[N_FDS] = {
		/* While it is not read, its end still counts, but once. */
		[CLIENT_IN] = { .fd = ignores_in ? -1 : STDIN_FILENO,
			.events = wants_in ? POLLIN : POLLRDHUP },
		[CLIENT_OUT] = { .fd = STDOUT_FILENO,
			.events = stream_pending(&r->to_client) ? POLLOUT : 0 },
		[DAEMON] = { .fd = daemon_events ? r->link.fd : -1, .events = daemon_events },
		[STARTED] = { .fd = r->link.attach.spawn.pidfd, .events = POLLIN },
	};

	if (poll(fds, N_FDS, timeout(r)) < 0 && errno != EINTR)
		return false;
	r->now_ms = attach_now_ms();
	if (fds[CLIENT_OUT].revents & (POLLERR | POLLHUP | POLLNVAL))
		return false;
	if (fds[CLIENT_IN].revents && wants_in) {
		r->is_hung_up = false;
		read_client(r);
	} else if (fds[CLIENT_IN].revents) {
		r->is_hung_up = true;
		r->progress_ms = r->now_ms;
	}
	if (fds[STARTED].revents)
		r->link.retry_ms = r->now_ms;
	if (wants_daemon && fds[DAEMON].revents & (POLLIN | POLLHUP | POLLERR) &&
		read_some(r->link.fd, &r->link.in) == 0)
		link_lose(&r->link, r->is_shut);
	return true;
}

static int run(struct relay *r) {
	for (;;) {
		link_advance(&r->link, r->now_ms, frame_pending(&r->from_client) > 0);
		if (r->link.fd >= 0 && !pump_daemon(r))
			break;
		if (!pump_client(r))
			break;
		if (!flush(r) || is_over(r) || has_given_up(r))
			break;
		if (!turn(r))
			break;
	}
	(void)stream_flush(&r->to_client);
	return r->exit_code ? r->exit_code : r->link.exit_code;
}

int relay_run(const struct relay_options *options) {
	struct relay r = { .now_ms = attach_now_ms() };
	int exit_code;

	r.replay = replay_new();
	if (!r.replay) {
		relay_complain("out of memory");
		return WIRE_EXIT_SOFTWARE;
	}
	replay_set_profile(r.replay, options->hello.profile);
	frame_init(&r.from_client, max_message());
	stream_init(&r.to_client, STDOUT_FILENO);
	link_init(&r.link, options, r.replay, &r.to_client.data);

	exit_code = run(&r);

	link_deinit(&r.link);
	frame_deinit(&r.from_client);
	stream_deinit(&r.to_client);
	replay_free(r.replay);
	return exit_code;
}

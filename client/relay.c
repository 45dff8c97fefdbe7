/* SPDX-License-Identifier: MIT */
/*
 * Relay
 *
 * One loop, one thread, four queues: lines that came from either side, bytes that still have to go
 * to the other. Only whole lines go on, as they came. Each direction is read as long as the other
 * end takes what was read before, so neither waits for the other and both are bounded.
 *
 * The daemon may go away at any moment. The client's lines then stay in their queue, what was in
 * flight is answered by replay.c, and attach.c finds or starts another daemon; when that one knows
 * the conversation the queue moves on. Nothing here waits: a client that ends is noticed in any
 * state.
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
#include "client/attach.h"
#include "client/lost.h"
#include "client/relay.h"
#include "client/replay.h"
#include "client/stream.h"

enum {
	READ_SIZE = 65536,
	HIGH_WATER = 1024 * 1024,      /* bytes waiting for one side before the other is not read */
	QUEUE_MAX = 8 * 1024 * 1024,   /* bytes of lines waiting for a daemon */
	MAX_REPLY = 256 * 1024 * 1024, /* a daemon's line; its own bound is far below */
	DEFAULT_MAX_MESSAGE = 67108864,

	GRACE_MS = 900,          /* for answers after the client's end */
	EOF_LIMIT_MS = 11000,    /* for reaching a daemon at all after it */
	SETTLE_LIMIT_MS = 10000, /* for a new daemon to take up the conversation */
	RECONNECT_LIMIT_MS = 15000,
	NO_SPAWN_LIMIT_MS = 5000, /* for a daemon that somebody else may start */
	STABLE_MS = 2000, /* a connection that lived so long was a good one */
	BACKOFF_MS = 100, /* before the second attempt; doubles */
	MAX_BACKOFF_MS = 250,
	MAX_SHORT_LIVES = 6, /* daemons that end at once, before the client has to want one */
};

enum state {
	ATTACHING, /* no daemon yet, or no longer */
	RESUMING,  /* connected; the new daemon learns the conversation */
	STEADY,
	REFUSING, /* there will be no daemon */
};

struct relay {
	const struct relay_options *options;
	enum state state;
	struct attach attach;
	struct replay *replay;
	const char *failure; /* in REFUSING */
	char *message;       /* what it points to, when it is ours to free */
	int exit_code;

	int daemon; /* -1: not connected */
	struct frame from_client, from_daemon;
	struct stream to_client, to_daemon;
	bool has_ended;    /* standard input has */
	bool is_hung_up;   /* it will, once it is read again */
	bool is_shut;      /* the daemon has been told */
	bool is_deaf;      /* the daemon takes nothing any more; it may still say something */
	bool is_answered;  /* the first line of this daemon has come */
	bool has_warned;   /* of differing startup variables */
	bool was_attached; /* to any daemon */

	pid_t pid;         /* of the daemon we know, when it binds its own socket; 0: not known */
	int64_t now_ms;
	int64_t retry_ms;     /* ATTACHING: the next step's time */
	int64_t connected_ms; /* since when */
	int64_t lost_ms;      /* the last one that knew the conversation went, or we began */
	int64_t ended_ms;     /* standard input did */
	int64_t shut_ms;      /* and the daemon was told */
	int64_t progress_ms;  /* the daemon last took something */
	int backoff_ms;
	unsigned n_short_lives;
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

static void refuse_all(struct relay *r, const char *failure, int exit_code) {
	r->state = REFUSING;
	r->failure = failure;
	r->exit_code = exit_code;
}

static void disconnect(struct relay *r) {
	if (r->daemon >= 0)
		close(r->daemon);
	r->daemon = -1;
	frame_deinit(&r->from_daemon);
	stream_deinit(&r->to_daemon);
}

static void back_off(struct relay *r) {
	r->backoff_ms = r->backoff_ms ? r->backoff_ms * 2 : BACKOFF_MS;
	if (r->backoff_ms > MAX_BACKOFF_MS)
		r->backoff_ms = MAX_BACKOFF_MS;
	r->retry_ms = r->now_ms + r->backoff_ms;
}

/*
 * The daemon has gone. A piece of a line that it left is dropped with the rest of its connection.
 * One that lived for a while is followed at once; those that end as soon as they start are given up
 * in the end, and not started at all for a client that wants nothing.
 */
static void lose(struct relay *r) {
	enum state before = r->state;

	disconnect(r);
	replay_lose(r->replay, &r->to_client.data);
	if (r->has_ended && r->is_shut)
		return;
	r->state = ATTACHING;
	if (before == STEADY)
		r->lost_ms = r->now_ms;
	if (r->now_ms - r->connected_ms >= STABLE_MS) {
		r->n_short_lives = 0;
		r->backoff_ms = 0;
		r->retry_ms = r->now_ms;
		return;
	}
	r->n_short_lives++;
	back_off(r);
	if (r->now_ms - r->lost_ms >= RECONNECT_LIMIT_MS) {
		relay_complain("daemons end before they have taken over; see %s",
			r->options->place->log);
		refuse_all(r, "daemons end before they have taken over", WIRE_EXIT_UNAVAILABLE);
	} else if (r->n_short_lives > MAX_SHORT_LIVES && !frame_pending(&r->from_client)) {
		r->retry_ms = INT64_MAX;
	}
}

/* A peer that binds its own socket and has the known number is the daemon we were connected to. */
static bool is_known_daemon(const struct relay *r, int fd) {
	pid_t pid;
	uid_t uid;

	return r->pid && rendezvous_peer(fd, &pid, &uid) && pid == r->pid;
}

/*
 * After a line of a new daemon: whether it knows the conversation. Its answer to the attach line is
 * waited for in any case: one that is about to end still accepts connections.
 */
static void settle(struct relay *r) {
	if (r->state != RESUMING || !r->is_answered || !replay_is_settled(r->replay))
		return;
	relay_complain("the daemon went away, another one has taken over");
	replay_end(r->replay, &r->to_client.data);
	r->state = STEADY;
}

static void on_connected(struct relay *r, int fd) {
	bool is_resumed = replay_has_begun(r->replay) && !is_known_daemon(r, fd);

	r->daemon = fd;
	r->is_deaf = r->is_answered = false;
	r->connected_ms = r->progress_ms = r->now_ms;
	frame_init(&r->from_daemon, MAX_REPLY);
	stream_init(&r->to_daemon, fd);
	hello_write(&r->to_daemon.data, &r->options->hello, is_resumed);
	if (!r->was_attached) {
		r->was_attached = true;
		r->state = STEADY;
		return;
	}
	replay_begin(r->replay, &r->to_daemon.data);
	r->state = RESUMING;
}

/*
 * No daemon for now. When it is the first, or the last of many attempts, the reason is told: a
 * probe that waits too long takes silence for an answer.
 */
static void on_attach_failed(struct relay *r, char *message) {
	static const char no_memory[] = "out of memory";
	int limit_ms = 0;

	if (r->was_attached)
		limit_ms = RECONNECT_LIMIT_MS;
	else if (!r->options->spawn)
		limit_ms = NO_SPAWN_LIMIT_MS;
	if (r->now_ms - r->lost_ms < limit_ms) {
		free(message);
		back_off(r);
		return;
	}
	r->message = message;
	relay_complain("%s", message ? message : no_memory);
	refuse_all(r, message ? message : no_memory, WIRE_EXIT_UNAVAILABLE);
}

static void attach(struct relay *r) {
	char *message = NULL;
	int fd = -1;

	while (r->state == ATTACHING && r->now_ms >= r->retry_ms) {
		switch (attach_step(&r->attach, &fd, &message)) {
		case ATTACH_CONNECTED:
			on_connected(r, fd);
			break;
		case ATTACH_FAILED:
			on_attach_failed(r, message);
			break;
		case ATTACH_WAIT:
			r->retry_ms = r->now_ms + r->attach.wait_ms;
			if (r->attach.wait_ms)
				return;
		}
	}
}

/* Appends a line of a frame as it came, with whatever ended it. */
static void add_line(struct buf *to, const char *line, size_t len) {
	buf_add(to, line, len + (line[len] == '\r' ? 2 : 1));
}

/* Whether the client's next line has somewhere to go. */
static bool can_pump(const struct relay *r) {
	return r->state == REFUSING ||
		(r->state == STEADY && stream_pending(&r->to_daemon) < HIGH_WATER);
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
		if (r->state == REFUSING) {
			replay_refuse(r->replay, line, len, r->failure, &r->to_client.data);
			continue;
		}
		switch (replay_on_client_line(r->replay, line, len)) {
		case REPLAY_PASS:
			if (!r->is_deaf)
				add_line(&r->to_daemon.data, line, len);
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

/* The daemon's first line, if it is what we asked for. */
static bool take_hello(struct relay *r, const char *line, size_t len) {
	struct hello_answer answer;
	pid_t peer;
	uid_t uid;

	if (r->is_answered)
		return false;
	r->is_answered = true;
	if (!hello_read(line, len, &answer))
		return false;
	if (answer.profile)
		replay_set_profile(r->replay, answer.profile);
	r->pid = rendezvous_peer(r->daemon, &peer, &uid) && peer == answer.pid ? peer : 0;
	if (answer.differing && !r->has_warned) {
		relay_complain("the daemon that runs was started with other values of %s; they "
			       "stay until it is stopped (ipython-mcp stop %s)",
			answer.differing, r->options->place->name);
		r->has_warned = true;
	}
	free(answer.differing);
	return true;
}

/* Passes on the daemon's lines. False when the program has to end. */
static bool pump_daemon(struct relay *r) {
	char *line;
	size_t len;

	for (;;) {
		enum frame_result result = frame_next(&r->from_daemon, &line, &len);

		if (result == FRAME_MORE)
			return true;
		if (result == FRAME_TOO_LONG) {
			relay_complain("the daemon sent a line of more than %d bytes", MAX_REPLY);
			lose(r);
			return true;
		}
		if (take_hello(r, line, len)) {
			settle(r);
			continue;
		}
		switch (replay_on_daemon_line(r->replay, line, len)) {
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
		settle(r);
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

	if (n > 0 && r->retry_ms == INT64_MAX)
		r->retry_ms = r->lost_ms = r->now_ms;
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
	return frame_pending(&r->from_client) > 0 || stream_pending(&r->to_daemon) > 0;
}

/* After the end of standard input: whether the program's own has come. */
static bool is_over(struct relay *r) {
	if (r->is_hung_up && r->now_ms - r->progress_ms >= GRACE_MS)
		return true;
	if (!r->has_ended)
		return false;
	if (r->state == REFUSING)
		return !stream_pending(&r->to_client) || r->now_ms - r->ended_ms >= GRACE_MS;
	if (r->now_ms - r->ended_ms >= EOF_LIMIT_MS)
		return true;
	if (!has_queued(r) && !r->is_shut) {
		if (r->daemon >= 0)
			(void)shutdown(r->daemon, SHUT_WR);
		r->is_shut = true;
		r->shut_ms = r->now_ms;
	}
	if (!r->is_shut)
		return false;
	if (r->now_ms - r->shut_ms >= GRACE_MS)
		return true;
	return (r->daemon < 0 || replay_is_idle(r->replay)) && !stream_pending(&r->to_client);
}

/* A reconnect that came to nothing ends the program once the client knows. */
static bool has_given_up(const struct relay *r) {
	return r->state == REFUSING && r->was_attached && !stream_pending(&r->to_client);
}

static bool wants_client(const struct relay *r) {
	if (r->has_ended)
		return false;
	if (r->state == STEADY)
		return stream_pending(&r->to_daemon) < HIGH_WATER;
	return r->state == REFUSING ? stream_pending(&r->to_client) < HIGH_WATER
				    : frame_pending(&r->from_client) < QUEUE_MAX;
}

/* How long poll() may wait. */
static int timeout(const struct relay *r) {
	int64_t until = INT64_MAX;

	if (r->state == ATTACHING && r->retry_ms < until)
		until = r->retry_ms;
	if (r->state == RESUMING && r->connected_ms + SETTLE_LIMIT_MS < until)
		until = r->connected_ms + SETTLE_LIMIT_MS;
	if (r->is_hung_up && r->progress_ms + GRACE_MS < until)
		until = r->progress_ms + GRACE_MS;
	if (r->has_ended && !r->is_shut && r->ended_ms + EOF_LIMIT_MS < until)
		until = r->ended_ms + (r->state == REFUSING ? GRACE_MS : EOF_LIMIT_MS);
	if (r->is_shut && r->shut_ms + GRACE_MS < until)
		until = r->shut_ms + GRACE_MS;
	if (until == INT64_MAX)
		return -1;
	return until > r->now_ms ? (int)(until - r->now_ms) : 0;
}

/* Sends what can be sent. False when the client has gone. */
static bool flush(struct relay *r) {
	size_t before = stream_pending(&r->to_daemon);

	if (r->daemon >= 0 && before && stream_flush(&r->to_daemon) < 0) {
		/* What it said before it went is still to be read; then its end shows. */
		(void)shutdown(r->daemon, SHUT_WR);
		r->is_deaf = true;
		stream_deinit(&r->to_daemon);
		stream_init(&r->to_daemon, r->daemon);
	}
	if (stream_pending(&r->to_daemon) != before)
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
	int started = r->state == ATTACHING ? r->attach.spawn.pidfd : -1;
	short daemon_events = (short)((wants_daemon ? POLLIN : 0) |
		(stream_pending(&r->to_daemon) ? POLLOUT : 0));
	struct pollfd fds[N_FDS] = {
		/* While it is not read, its end still counts, but once. */
		[CLIENT_IN] = { .fd = ignores_in ? -1 : STDIN_FILENO,
			.events = wants_in ? POLLIN : POLLRDHUP },
		[CLIENT_OUT] = { .fd = STDOUT_FILENO,
			.events = stream_pending(&r->to_client) ? POLLOUT : 0 },
		[DAEMON] = { .fd = daemon_events ? r->daemon : -1, .events = daemon_events },
		[STARTED] = { .fd = started, .events = POLLIN },
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
		r->retry_ms = r->now_ms;
	if (wants_daemon && fds[DAEMON].revents & (POLLIN | POLLHUP | POLLERR) &&
		read_some(r->daemon, &r->from_daemon) == 0)
		lose(r);
	return true;
}

static int run(struct relay *r) {
	for (;;) {
		attach(r);
		if (r->daemon >= 0 && !pump_daemon(r))
			break;
		if (!pump_client(r))
			break;
		if (!flush(r) || is_over(r) || has_given_up(r))
			break;
		if (!turn(r))
			break;
		if (r->state == RESUMING && r->now_ms - r->connected_ms >= SETTLE_LIMIT_MS)
			lose(r);
	}
	(void)stream_flush(&r->to_client);
	return r->exit_code;
}

int relay_run(const struct relay_options *options) {
	struct relay r = { .options = options, .daemon = -1, .state = ATTACHING };
	int exit_code;

	r.replay = replay_new();
	if (!r.replay) {
		relay_complain("out of memory");
		return WIRE_EXIT_SOFTWARE;
	}
	replay_set_profile(r.replay, options->hello.profile);
	attach_init(&r.attach, options->place, options->spawn);
	frame_init(&r.from_client, max_message());
	frame_init(&r.from_daemon, MAX_REPLY);
	stream_init(&r.to_client, STDOUT_FILENO);
	stream_init(&r.to_daemon, -1);
	r.now_ms = r.lost_ms = attach_now_ms();
	if (options->failure)
		refuse_all(&r, options->failure, options->failure_exit);

	exit_code = run(&r);

	disconnect(&r);
	attach_reset(&r.attach);
	frame_deinit(&r.from_client);
	stream_deinit(&r.to_client);
	replay_free(r.replay);
	free(r.message);
	return exit_code;
}

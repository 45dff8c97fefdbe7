/* SPDX-License-Identifier: MIT */
/*
 * Link
 *
 * A daemon may go away at any moment. What was in flight is then answered by replay.c, attach.c
 * finds or starts another daemon, and that one is told the conversation before it gets the client's
 * next line.
 *
 * The first time, a failure to reach a daemon is told at once: a probe that waits too long takes
 * silence for an answer. Later, a client has been promised a server that stays, so attempts go on
 * for a while: a daemon may be between stop and start, its program between two versions.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wire.h"
#include "client/link.h"

enum {
	MAX_REPLY = 256 * 1024 * 1024, /* a daemon's line; its own bound is far below */

	SETTLE_LIMIT_MS = 10000, /* for a new daemon to take up the conversation */
	RECONNECT_LIMIT_MS = 15000,
	NO_SPAWN_LIMIT_MS = 5000, /* for a daemon that somebody else may start */
	STABLE_MS = 2000,         /* a connection that lived so long was a good one */
	BACKOFF_MS = 100,         /* before the second attempt; doubles */
	MAX_BACKOFF_MS = 250,
	MAX_SHORT_LIVES = 6, /* daemons that end at once, before the client has to want one */
};

static void refuse(struct link *l, const char *failure, int exit_code) {
	l->state = LINK_REFUSING;
	l->failure = failure;
	l->exit_code = exit_code;
}

void link_init(struct link *l, const struct relay_options *options, struct replay *replay,
	struct buf *to_client) {
	*l = (struct link){ .options = options, .replay = replay, .to_client = to_client };
	l->fd = -1;
	l->now_ms = l->lost_ms = attach_now_ms();
	attach_init(&l->attach, options->place, options->spawn);
	frame_init(&l->in, MAX_REPLY);
	stream_init(&l->out, -1);
	if (options->failure)
		refuse(l, options->failure, options->failure_exit);
}

static void disconnect(struct link *l) {
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	frame_deinit(&l->in);
	stream_deinit(&l->out);
}

void link_deinit(struct link *l) {
	disconnect(l);
	attach_reset(&l->attach);
	free(l->message);
}

static void back_off(struct link *l) {
	l->backoff_ms = l->backoff_ms ? l->backoff_ms * 2 : BACKOFF_MS;
	if (l->backoff_ms > MAX_BACKOFF_MS)
		l->backoff_ms = MAX_BACKOFF_MS;
	l->retry_ms = l->now_ms + l->backoff_ms;
}

/*
 * A piece of a line that the daemon left is dropped with the rest of its connection. One that lived
 * for a while is followed at once; those that end as soon as they start are given up in the end,
 * and not started at all for a client that wants nothing.
 */
void link_lose(struct link *l, bool is_last) {
	enum link_state before = l->state;

	disconnect(l);
	replay_lose(l->replay, l->to_client);
	l->state = is_last ? LINK_OVER : LINK_ATTACHING;
	if (before == LINK_STEADY)
		l->lost_ms = l->now_ms;
	if (l->now_ms - l->connected_ms >= STABLE_MS) {
		l->n_short_lives = 0;
		l->backoff_ms = 0;
		l->retry_ms = l->now_ms;
		return;
	}
	l->n_short_lives++;
	back_off(l);
	if (!is_last && l->now_ms - l->lost_ms >= RECONNECT_LIMIT_MS) {
		relay_complain("daemons end before they have taken over; see %s",
			l->options->place->log);
		refuse(l, "daemons end before they have taken over", WIRE_EXIT_UNAVAILABLE);
	}
}

/* A peer that binds its own socket and has the known number is the daemon we were connected to. */
static bool is_known_daemon(const struct link *l, int fd) {
	pid_t pid;
	uid_t uid;

	return l->pid && rendezvous_peer(fd, &pid, &uid) && pid == l->pid;
}

static void on_connected(struct link *l, int fd) {
	bool is_resumed = replay_has_begun(l->replay) && !is_known_daemon(l, fd);

	l->fd = fd;
	l->is_deaf = l->is_answered = false;
	l->connected_ms = l->now_ms;
	frame_init(&l->in, MAX_REPLY);
	stream_init(&l->out, fd);
	hello_write(&l->out.data, &l->options->hello, is_resumed);
	if (!l->was_attached) {
		l->was_attached = true;
		l->state = LINK_STEADY;
		return;
	}
	replay_begin(l->replay, &l->out.data);
	l->state = LINK_RESUMING;
}

static void on_attach_failed(struct link *l, char *message) {
	static const char no_memory[] = "out of memory";
	int limit_ms = 0;

	if (l->was_attached)
		limit_ms = RECONNECT_LIMIT_MS;
	else if (!l->options->spawn)
		limit_ms = NO_SPAWN_LIMIT_MS;
	if (l->now_ms - l->lost_ms < limit_ms) {
		free(message);
		back_off(l);
		return;
	}
	l->message = message;
	relay_complain("%s", message ? message : no_memory);
	refuse(l, message ? message : no_memory, WIRE_EXIT_UNAVAILABLE);
}

/* One step towards a daemon; false when the next one is due later. */
static bool attach(struct link *l) {
	char *message = NULL;
	int fd = -1;

	switch (attach_step(&l->attach, &fd, &message)) {
	case ATTACH_CONNECTED:
		on_connected(l, fd);
		break;
	case ATTACH_FAILED:
		on_attach_failed(l, message);
		break;
	case ATTACH_WAIT:
		l->retry_ms = l->now_ms + l->attach.wait_ms;
		return !l->attach.wait_ms;
	}
	return true;
}

void link_advance(struct link *l, int64_t now_ms, bool is_wanted) {
	l->now_ms = now_ms;
	if (l->state == LINK_RESUMING && now_ms - l->connected_ms >= SETTLE_LIMIT_MS)
		link_lose(l, false);
	while (l->state == LINK_ATTACHING && now_ms >= l->retry_ms) {
		if (l->n_short_lives > MAX_SHORT_LIVES && !is_wanted) {
			l->is_parked = true;
			return;
		}
		if (l->is_parked)
			l->lost_ms = now_ms; /* the time for another attempt begins anew */
		l->is_parked = false;
		if (!attach(l))
			return;
	}
}

int64_t link_deadline(const struct link *l) {
	switch (l->state) {
	case LINK_ATTACHING:
		return l->is_parked ? INT64_MAX : l->retry_ms;
	case LINK_RESUMING:
		return l->connected_ms + SETTLE_LIMIT_MS;
	case LINK_STEADY:
	case LINK_REFUSING:
	case LINK_OVER:
		break;
	}
	return INT64_MAX;
}

/* The daemon's first line, if it is what we asked for. */
static bool take_hello(struct link *l, const char *line, size_t len) {
	struct hello_answer answer;
	pid_t peer;
	uid_t uid;

	if (l->is_answered)
		return false;
	l->is_answered = true;
	if (!hello_read(line, len, &answer))
		return false;
	if (answer.profile)
		replay_set_profile(l->replay, answer.profile);
	l->pid = rendezvous_peer(l->fd, &peer, &uid) && peer == answer.pid ? peer : 0;
	if (answer.differing && !l->has_warned) {
		relay_complain("the daemon that runs was started with other values of %s; they "
			       "stay until it is stopped (ipython-mcp stop %s)",
			answer.differing, l->options->place->name);
		l->has_warned = true;
	}
	free(answer.differing);
	return true;
}

/*
 * A new daemon's answer to the attach line is waited for even when there is nothing to repeat: one
 * that is about to end still accepts connections.
 */
enum replay_verdict link_on_line(struct link *l, const char *line, size_t len) {
	enum replay_verdict verdict = REPLAY_DROP;

	if (!take_hello(l, line, len))
		verdict = replay_on_daemon_line(l->replay, line, len);
	if (l->state == LINK_RESUMING && replay_is_settled(l->replay)) {
		relay_complain("the daemon went away, another one has taken over");
		replay_end(l->replay, l->to_client);
		l->state = LINK_STEADY;
	}
	return verdict;
}

bool link_flush(struct link *l) {
	size_t before = stream_pending(&l->out);

	if (l->fd < 0 || !before)
		return false;
	if (stream_flush(&l->out) < 0) {
		/* What it said before it went is still to be read; then its end shows. */
		(void)shutdown(l->fd, SHUT_WR);
		l->is_deaf = true;
		stream_deinit(&l->out);
		stream_init(&l->out, l->fd);
	}
	return stream_pending(&l->out) != before;
}

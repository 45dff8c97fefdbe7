/* SPDX-License-Identifier: MIT */
/*
 * Sessions
 *
 * One bufferevent for each attached client, on the loop thread. Bytes that arrive pass from it into
 * frame.c, which cuts them into lines; lines go to protocol.c. Three things keep one client from
 * touching the others:
 *
 * Turns. A session handles a few lines, then the loop looks at everybody else.
 *
 * Pressure. A client that does not read its answers is not read from, until it has caught up. What
 * piles up all the same (answers of calls that were already taken, notifications) is bounded:
 * beyond that the connection ends.
 *
 * One end. session_close() only decides; session_destroy() frees, on a later turn and nowhere else,
 * because most decisions fall deep inside a handler of the very session.
 *
 * A peer that has sent its end may still read: `printf … | ipython-mcp-connect` wants its answers.
 * So the session lives on until all it asked for is answered, for a second at most.
 */

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/frame.h"
#include "common/log.h"
#include "common/rendezvous.h"
#include "daemon/callq.h"
#include "daemon/fds.h"
#include "daemon/protocol.h"
#include "daemon/session.h"
#include "daemon/stop.h"

enum {
	LINES_PER_TURN = 32, /* or as many as TURN_MS allow */
	TURN_MS = 2,
	READ_AHEAD = 256 * 1024, /* bytes read before they are looked at */
	WRITE_AT_ONCE = 1024 * 1024,
	OUTPUT_HIGH = 1024 * 1024, /* unread answers: from here on the client is not read from */
	OUTPUT_LOW = 256 * 1024,   /* … and from here on it is again */
	BACKLOG_REPLIES = 4,       /* unread answers end the connection: that many of the longest */
	HEAD_FOR_ID = 64 * 1024,   /* of an overlong line, searched for its id */
	COPIED = 4096,             /* up to here copying a line is cheaper than keeping it */
	GRACE_S = 1,
	N_BUCKETS = 256,
};

struct sessions {
	struct session *first;
	struct session *buckets[N_BUCKETS]; /* by number, linked by next_in_bucket */
	size_t n;
	uint64_t last_id;
};

/* What only this file knows of a session. */
struct session_io {
	struct session *next_in_bucket;
	struct frame frame;
	struct event *turn;  /* next turn of the loop: lines that were held back, or the end */
	struct event *limit; /* how long the end may take */
	uint64_t queued;     /* bytes, since the beginning */
	unsigned n_requests; /* taken and not answered */
	bool has_eof;        /* the peer has sent its end */
	bool is_over;        /* … and all it sent before has been handled */
	bool is_congested;
	bool is_closing;
	bool is_flushing; /* closing, once the output is written */
};

static const struct timeval next_turn, grace = { .tv_sec = GRACE_S };

static struct session_io *session_io(const struct session *s) {
	return s->priv;
}

static struct evbuffer *session_output(const struct session *s) {
	return bufferevent_get_output(s->bev);
}

struct sessions *sessions_new(struct daemon *d) {
	return calloc(1, sizeof(struct sessions));
}

size_t sessions_count(const struct sessions *s) {
	return s->n;
}

struct session *session_first(struct daemon *d) {
	return d->sessions->first;
}

struct session *session_find(struct daemon *d, uint64_t id) {
	struct session *s = d->sessions ? d->sessions->buckets[id % N_BUCKETS] : NULL;

	/* At the daemon's end calls outlive the sessions. */
	while (s && s->id != id)
		s = session_io(s)->next_in_bucket;
	return s;
}

static void session_link(struct session *s) {
	struct sessions *all = s->daemon->sessions;
	struct session **bucket;

	s->id = ++all->last_id;
	s->next = all->first;
	if (s->next)
		s->next->prev = s;
	all->first = s;
	all->n++;

	bucket = &all->buckets[s->id % N_BUCKETS];
	session_io(s)->next_in_bucket = *bucket;
	*bucket = s;
}

static void session_unlink(struct session *s) {
	struct sessions *all = s->daemon->sessions;
	struct session **at = &all->buckets[s->id % N_BUCKETS];

	while (*at != s)
		at = &session_io(*at)->next_in_bucket;
	*at = session_io(s)->next_in_bucket;

	if (s->prev)
		s->prev->next = s->next;
	else
		all->first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	all->n--;
}

/* Frees what session_new() made so far. */
static void session_free(struct session *s) {
	struct session_io *io = session_io(s);

	if (s->bev) {
		fds_remove(bufferevent_getfd(s->bev));
		bufferevent_free(s->bev);
	}
	if (io) {
		if (io->turn)
			event_free(io->turn);
		if (io->limit)
			event_free(io->limit);
		frame_deinit(&io->frame);
	}
	free(io);
	free(s->cwd);
	free(s->client_version);
	free(s);
}

/* The one place where a session ends. */
static void session_destroy(struct session *s) {
	struct daemon *d = s->daemon;

	log_debug("session %llu: closed", (unsigned long long)s->id);
	if (!session_io(s)->is_over)
		callq_session_gone(s);
	protocol_session_gone(s);
	session_unlink(s);
	session_free(s);
	if (!d->sessions->n)
		stop_on_sessions_gone(d);
}

struct sessions *sessions_free(struct sessions *s) {
	if (!s)
		return NULL;
	while (s->first)
		session_destroy(s->first);
	free(s);
	return NULL;
}

void session_close(struct session *s, bool flush) {
	struct session_io *io = session_io(s);

	if (io->is_closing && (flush || !io->is_flushing))
		return;
	io->is_closing = true;
	bufferevent_disable(s->bev, EV_READ);
	io->is_flushing = flush && evbuffer_get_length(session_output(s)) > 0;
	if (io->is_flushing) {
		/* From now on session_on_write() is called when all is written. */
		bufferevent_setwatermark(s->bev, EV_WRITE, 0, 0);
		evtimer_add(io->limit, &grace);
	} else {
		/* Next turn, not now: we may be inside this session's own handler. */
		evtimer_add(io->turn, &next_turn);
	}
}

/* The peer sends nothing more and all it sent has been handled. */
static void session_on_over(struct session *s) {
	struct session_io *io = session_io(s);

	io->is_over = true;
	callq_session_gone(s);
	if (io->n_requests && !io->is_closing)
		evtimer_add(io->limit, &grace);
	else
		session_close(s, true);
}

void session_begin_request(struct session *s) {
	session_io(s)->n_requests++;
}

void session_end_request(struct session *s) {
	struct session_io *io = session_io(s);

	if (!--io->n_requests && io->is_over)
		session_close(s, true);
}

unsigned session_n_requests(const struct session *s) {
	return session_io(s)->n_requests;
}

uint64_t session_queued(const struct session *s) {
	return session_io(s)->queued;
}

bool session_has_written(const struct session *s, uint64_t mark) {
	return session_io(s)->queued - evbuffer_get_length(session_output(s)) >= mark;
}

bool session_is_congested(const struct session *s) {
	return session_io(s)->is_congested;
}

/* What has come and was not taken yet passes into the frame; false when there is nothing. */
static bool session_fill(struct session *s) {
	struct evbuffer *input = bufferevent_get_input(s->bev);
	size_t len = evbuffer_get_length(input);
	char *to;

	if (!len)
		return false;
	to = frame_reserve(&session_io(s)->frame, len);
	if (!to) {
		log_warning("session %llu: no memory for its message, closing it",
			(unsigned long long)s->id);
		session_close(s, false);
		return false;
	}
	evbuffer_remove(input, to, len);
	frame_commit(&session_io(s)->frame, len);
	return true;
}

static int64_t now_ms(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Handles some of the lines that are there. */
static void session_take_lines(struct session *s) {
	struct session_io *io = session_io(s);
	int64_t end = now_ms() + TURN_MS;

	for (unsigned n = 0; n < LINES_PER_TURN && (!n || now_ms() <= end);) {
		size_t len;
		char *line;

		if (io->is_closing || io->is_congested)
			return;
		switch (frame_next(&io->frame, &line, &len)) {
		case FRAME_LINE:
			protocol_dispatch(s, line, len);
			n++;
			break;
		case FRAME_TOO_LONG:
			len = frame_pending(&io->frame);
			protocol_refuse_too_long(s, io->frame.data + io->frame.start,
				len < HEAD_FOR_ID ? len : HEAD_FOR_ID);
			frame_skip(&io->frame);
			n++;
			break;
		case FRAME_MORE:
			if (session_fill(s))
				break;
			/* A last line without its newline was cut off: it is no message. */
			if (io->has_eof && !io->is_over)
				session_on_over(s);
			return;
		}
	}
	evtimer_add(io->turn, &next_turn);
}

static void session_on_read(struct bufferevent *bev, void *ctx) {
	struct session *s = ctx;

	/* Lines that wait for their turn come first; they take these with them. */
	if (!evtimer_pending(session_io(s)->turn, NULL))
		session_take_lines(s);
}

static void session_on_turn(evutil_socket_t fd, short what, void *ctx) {
	struct session *s = ctx;
	struct session_io *io = session_io(s);

	if (!io->is_closing)
		session_take_lines(s);
	else if (!io->is_flushing)
		session_destroy(s);
}

static void session_on_limit(evutil_socket_t fd, short what, void *ctx) {
	struct session *s = ctx;

	/*
	 * Answers that came within the grace are written; a flush that takes this long is given up.
	 */
	session_close(s, !session_io(s)->is_closing);
}

/* The output had shrunk to its low-water mark when this was put off to now. */
static void session_on_write(struct bufferevent *bev, void *ctx) {
	struct session *s = ctx;
	struct session_io *io = session_io(s);
	size_t len = evbuffer_get_length(session_output(s));

	if (io->is_flushing && !len) {
		io->is_flushing = false;
		evtimer_add(io->turn, &next_turn);
	} else if (io->is_congested && !io->is_closing && len <= OUTPUT_LOW) {
		io->is_congested = false;
		if (!io->has_eof)
			bufferevent_enable(s->bev, EV_READ);
		evtimer_add(io->turn, &next_turn);
	}
}

static void session_on_event(struct bufferevent *bev, short what, void *ctx) {
	struct session *s = ctx;

	if (!(what & BEV_EVENT_EOF)) {
		session_close(s, false);
		return;
	}
	session_io(s)->has_eof = true;
	if (!evtimer_pending(session_io(s)->turn, NULL))
		session_take_lines(s);
}

/* Beyond the line that a client may leave unread. */
static bool session_is_flooded(struct session *s, size_t backlog) {
	return backlog > OUTPUT_HIGH + BACKLOG_REPLIES * s->daemon->settings.max_reply_bytes;
}

static void free_line(const void *data, size_t len, void *line) {
	free(line);
}

/* Puts `line` (taken) from `start` to `end` behind what waits to be written. */
static int session_enqueue(struct session *s, char *line, size_t start, size_t end) {
	int r;

	if (end - start > COPIED)
		return evbuffer_add_reference(
			session_output(s), line + start, end - start, free_line, line);
	r = evbuffer_add(session_output(s), line + start, end - start);
	free(line);
	return r;
}

void session_send(struct session *s, struct buf *line) {
	struct session_io *io = session_io(s);
	struct evbuffer *output = session_output(s);
	ssize_t written = 0;
	auto_free char *data = NULL;
	size_t len;

	buf_add_char(line, '\n');
	data = buf_take(line, &len);
	if (io->is_closing)
		return;
	if (!data) {
		log_warning("session %llu: no memory for an answer, closing it",
			(unsigned long long)s->id);
		session_close(s, false);
		return;
	}

	/* Most lines fit the socket: written at once, they save two turns of the loop. */
	if (!evbuffer_get_length(output))
		written = send(bufferevent_getfd(s->bev), data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (written < 0)
		written = 0;
	io->queued += len;
	if ((size_t)written == len)
		return;
	if (session_enqueue(s, take(data), (size_t)written, len) < 0) {
		session_close(s, false);
		return;
	}

	len = evbuffer_get_length(output);
	if (session_is_flooded(s, len)) {
		log_warning("session %llu: reads none of its answers, closing it",
			(unsigned long long)s->id);
		session_close(s, false);
	} else if (len > OUTPUT_HIGH && !io->is_congested) {
		io->is_congested = true;
		bufferevent_disable(s->bev, EV_READ);
	}
}

/* Tells a client that there is no room; it fits the empty socket, or nobody reads it. */
static void session_refuse(struct daemon *d, int fd) {
	auto_buf struct buf line = BUF_NULL;

	buf_addf(&line,
		"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":%d,\"message\":\"%zu sessions are "
		"attached, as "
		"many as IPYTHON_MCP_MAX_SESSIONS allows: close one\"}}\n",
		RPC_INTERNAL_ERROR, d->sessions->n);
	if (!line.has_failed)
		(void)!send(fd, line.data, line.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int session_new(struct daemon *d, int fd) {
	auto_close int owned = fd;
	struct session_io *io;
	struct session *s;
	uid_t uid;

	if (d->sessions->n >= d->settings.max_sessions) {
		session_refuse(d, fd);
		return -EUSERS;
	}

	s = calloc(1, sizeof(*s));
	if (!s)
		return err_new(-ENOMEM);
	s->daemon = d;
	s->profile = d->settings.profile;
	s->priv = io = calloc(1, sizeof(*io));
	if (!io) {
		session_free(s);
		return err_new(-ENOMEM);
	}
	frame_init(&io->frame, d->settings.max_message_bytes);
	io->turn = evtimer_new(d->base, session_on_turn, s);
	io->limit = evtimer_new(d->base, session_on_limit, s);
	if (io->turn && io->limit)
		s->bev = bufferevent_socket_new(d->base, fd,
			BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!s->bev) {
		session_free(s);
		return err_new(-ENOMEM);
	}
	take_fd(&owned);
	fds_add(fd);
	rendezvous_peer(fd, &s->peer_pid, &uid);
	session_link(s);

	bufferevent_setcb(s->bev, session_on_read, session_on_write, session_on_event, s);
	bufferevent_setwatermark(s->bev, EV_READ, 0, READ_AHEAD);
	bufferevent_setwatermark(s->bev, EV_WRITE, OUTPUT_LOW, 0);
	bufferevent_set_max_single_read(s->bev, READ_AHEAD);
	bufferevent_set_max_single_write(s->bev, WRITE_AT_ONCE);
	bufferevent_enable(s->bev, EV_READ);
	log_debug(
		"session %llu: opened by process %d", (unsigned long long)s->id, (int)s->peer_pid);
	return 0;
}

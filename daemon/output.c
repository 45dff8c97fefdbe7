/* SPDX-License-Identifier: MIT */
/*
 * Output
 *
 * Descriptors 1 and 2 are pipes into this loop, so that Python's prints, a C library's and a child
 * process's arrive alike, in the order written. Each pipe fills one sink at a time: the running
 * call's, or between calls one that belongs to the session whose call ran last. What came between
 * calls leads that session's next execute. When another session's call comes first, the sink waits
 * aside (parked); when its session is gone, whoever executes next gets it.
 *
 * A sink is bounded whatever is printed: cleaned text as a head and a tail (collect.c), raw bytes
 * in memory or in a bounded file (spill.c).
 *
 * Draining at a call's end takes what is in the pipe at that moment and no more: a child that
 * writes without pause must not keep the answer from being sent. Loop thread only.
 */

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "daemon/clean.h"
#include "daemon/collect.h"
#include "daemon/fds.h"
#include "daemon/output.h"
#include "daemon/session.h"
#include "daemon/spill.h"

enum { N_STREAMS = 2 };

static const char *const stream_names[N_STREAMS] = { "stdout", "stderr" };

/* A writer that prints without pause is stopped less often the more the pipe holds. */
enum { PIPE_BYTES = 1 << 20, READ_BYTES = 128 * 1024, READS_A_TURN = 8 };

/* What one stream of one call comes to. */
struct sink {
	struct clean clean;
	struct collect collect;
	struct spill spill;
};

/* Both streams' sinks, and whose they are. */
struct sinks {
	struct sinks *next; /* parked, oldest first */
	uint64_t session;
	bool keeps; /* otherwise what comes is dropped */
	struct sink streams[N_STREAMS];
};

struct stream {
	struct output *output;
	int fd;
	struct event *readable;
};

struct output {
	struct daemon *daemon;
	struct stream streams[N_STREAMS];
	struct sinks *current;
	struct sinks *parked;
	int last_stream; /* that something came from */
	struct spill_place place;
	char buffer[READ_BYTES];
};

void output_text_deinit(struct output_text *t) {
	buf_deinit(&t->head);
	buf_deinit(&t->tail);
	free(t->file);
	*t = (struct output_text){ 0 };
}

static void sink_deinit(struct sink *s) {
	collect_deinit(&s->collect);
	spill_drop(&s->spill);
}

static void sink_init(struct sink *s, const struct settings *settings, bool keeps) {
	/* A dropped output has a last line all the same, for progress messages. */
	size_t head = keeps ? settings->max_text_chars : sizeof(s->collect.last);

	*s = (struct sink){ .clean.is_raw = settings->raw_output };
	collect_init(&s->collect, head, keeps ? settings->max_text_chars / 4 : 0);
	s->spill.is_lost = !keeps;
}

static struct sinks *sinks_free(struct sinks *s) {
	if (!s)
		return NULL;
	for (int i = 0; i < N_STREAMS; i++)
		sink_deinit(&s->streams[i]);
	free(s);
	return NULL;
}

static void sinks_init(struct sinks *s, const struct settings *settings, uint64_t session,
	bool keeps) {
	*s = (struct sinks){ .session = session, .keeps = keeps };
	for (int i = 0; i < N_STREAMS; i++)
		sink_init(&s->streams[i], settings, keeps);
}

/* Empties them for something new. */
static void sinks_renew(struct sinks *s, const struct settings *settings, uint64_t session,
	bool keeps) {
	for (int i = 0; i < N_STREAMS; i++)
		sink_deinit(&s->streams[i]);
	sinks_init(s, settings, session, keeps);
}

static bool sinks_are_empty(const struct sinks *s) {
	return collect_is_empty(&s->streams[0].collect) && collect_is_empty(&s->streams[1].collect);
}

static void take_bytes(struct output *o, int stream, const char *bytes, size_t len) {
	struct sink *sink = &o->current->streams[stream];

	clean_feed(&sink->clean, &sink->collect, bytes, len);
	spill_add(&sink->spill, &o->place, stream_names[stream], bytes, len);
	o->last_stream = stream;
}

/* Reads at most `len` bytes; how many came, 0 when there is nothing now. */
static size_t read_some(struct output *o, int stream, size_t len) {
	struct stream *s = &o->streams[stream];
	ssize_t n;

	do
		n = read(s->fd, o->buffer, len < sizeof(o->buffer) ? len : sizeof(o->buffer));
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		take_bytes(o, stream, o->buffer, (size_t)n);
		return (size_t)n;
	}
	if (n == 0 || errno != EAGAIN) {
		/*
		 * Only where the halves share their descriptors: user code closed all writing ends.
		 */
		log_warning("%s has ended; output is lost from now on", stream_names[stream]);
		event_del(s->readable);
	}
	return 0;
}

static void output_on_readable(evutil_socket_t fd, short what, void *arg) {
	struct stream *s = arg;
	int stream = (int)(s - s->output->streams);

	for (int i = 0; i < READS_A_TURN; i++)
		if (read_some(s->output, stream, READ_BYTES) < READ_BYTES)
			return;
}

/* Takes what the pipes hold now. */
static void drain(struct output *o) {
	for (int i = 0; i < N_STREAMS; i++) {
		int held = 0;

		if (ioctl(o->streams[i].fd, FIONREAD, &held) < 0)
			continue;
		while (held > 0) {
			size_t n = read_some(o, i, (size_t)held);

			if (!n)
				break;
			held -= (int)n;
		}
	}
}

static int open_stream(struct output *o, int stream) {
	struct stream *s = &o->streams[stream];
	auto_close int writing = -1;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_new(-errno);
	s->fd = fds[0];
	writing = fds[1];
	s->output = o;
	/*
	 * Unprivileged users may be refused above a limit of theirs; smaller pipes are only slower.
	 */
	(void)fcntl(writing, F_SETPIPE_SZ, PIPE_BYTES);
	/* The writing end blocks: print() has to wait, never to fail. */
	if (fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0)
		return err_new(-errno);
	s->readable =
		event_new(o->daemon->base, s->fd, EV_READ | EV_PERSIST, output_on_readable, s);
	if (!s->readable || event_add(s->readable, NULL) < 0)
		return err_new(-ENOMEM);
	fds_add(s->fd);
	if (dup2(writing, stream + 1) < 0)
		return err_new(-errno);
	return 0;
}

int output_new(struct daemon *d) {
	const struct settings *settings = &d->settings;
	struct output *o = calloc(1, sizeof(*o));
	auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int r = null < 0 || dup2(null, STDIN_FILENO) < 0 ? -errno : 0;

	if (!o)
		return err_new(-ENOMEM);
	o->daemon = d;
	o->streams[0].fd = o->streams[1].fd = -1;
	o->current = calloc(1, sizeof(*o->current));
	if (!o->current)
		r = -ENOMEM;
	else
		sinks_init(o->current, settings, 0, true);
	for (int i = 0; i < N_STREAMS && r == 0; i++)
		r = open_stream(o, i);
	if (r < 0) {
		output_free(o);
		return err_new(r);
	}

	o->place.directory = d->files_directory;
	o->place.max_bytes = settings->max_output_file_bytes;
	/* What is shown whole should not touch the disk. */
	o->place.keep_bytes = 64 * 1024;
	if (o->place.keep_bytes / 4 < settings->max_text_chars)
		o->place.keep_bytes = 4 * settings->max_text_chars;
	d->output = o;
	return 0;
}

struct output *output_free(struct output *o) {
	if (!o)
		return NULL;
	for (int i = 0; i < N_STREAMS; i++) {
		struct stream *s = &o->streams[i];

		if (s->readable)
			event_free(s->readable);
		if (s->fd >= 0) {
			fds_remove(s->fd);
			close(s->fd);
		}
	}
	sinks_free(o->current);
	while (o->parked) {
		struct sinks *next = o->parked->next;

		sinks_free(o->parked);
		o->parked = next;
	}
	spill_place_deinit(&o->place);
	free(o);
	return NULL;
}

/* Puts what came between calls aside, under the name of its session. */
static void park(struct output *o) {
	const struct settings *settings = &o->daemon->settings;
	struct sinks **end = &o->parked;
	struct sinks *fresh;

	if (sinks_are_empty(o->current) || !o->current->keeps)
		return;
	fresh = malloc(sizeof(*fresh));
	if (!fresh)
		return;
	sinks_init(fresh, settings, 0, true);
	while (*end)
		end = &(*end)->next;
	*end = o->current;
	o->current = fresh;
}

/* Joins what two sinks hold; `from` is the newer one. */
static void sinks_append(struct output *o, struct sinks *s, struct sinks *from) {
	for (int i = 0; i < N_STREAMS; i++) {
		struct sink *a = &s->streams[i], *b = &from->streams[i];

		clean_end(&a->clean, &a->collect);
		collect_append(&a->collect, &b->collect);
		a->clean = b->clean;
		spill_append(&a->spill, &o->place, stream_names[i], &b->spill);
	}
}

/* Makes current what waits for that session, and what nobody else will ask for. */
static void unpark(struct output *o, uint64_t session) {
	struct sinks **at = &o->parked;
	bool has_some = false;

	while (*at) {
		struct sinks *s = *at;

		if (s->session != session && session_find(o->daemon, s->session)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		if (has_some) {
			sinks_append(o, o->current, s);
			sinks_free(s);
		} else {
			sinks_free(o->current);
			o->current = s;
			has_some = true;
		}
	}
}

void output_begin(struct daemon *d, uint64_t session, bool keeps) {
	struct output *o = d->output;
	struct sinks *s = o->current;

	drain(o);
	if (keeps && s->keeps && !o->parked && (s->session == session || sinks_are_empty(s))) {
		/* The common case: one session, call after call. */
		s->session = session;
		return;
	}
	park(o);
	sinks_renew(o->current, &d->settings, session, keeps);
	if (keeps)
		unpark(o, session);
	o->current->session = session;
}

static void take_text(struct output *o, int stream, struct output_text *ret) {
	struct sink *sink = &o->current->streams[stream];
	struct output_text t = { 0 };

	clean_end(&sink->clean, &sink->collect);
	if (!collect_take(&sink->collect, &t.head, &t.tail, &t.omitted_chars))
		log_warning("Memory is short: a part of %s is lost", stream_names[stream]);
	if (t.omitted_chars)
		t.file = spill_keep(&sink->spill, &o->place, stream_names[stream]);
	*ret = t;
}

static void take_both(struct output *o, struct output_text *ret_stdout,
	struct output_text *ret_stderr) {
	drain(o);
	if (o->current->keeps) {
		take_text(o, 0, ret_stdout);
		take_text(o, 1, ret_stderr);
	} else {
		*ret_stdout = *ret_stderr = (struct output_text){ 0 };
	}
}

void output_end(struct daemon *d, struct output_text *ret_stdout, struct output_text *ret_stderr) {
	struct output *o = d->output;

	take_both(o, ret_stdout, ret_stderr);
	sinks_renew(o->current, &d->settings, o->current->session, true);
}

void output_snapshot(struct daemon *d, struct output_text *ret_stdout,
	struct output_text *ret_stderr) {
	struct output *o = d->output;

	take_both(o, ret_stdout, ret_stderr);
	sinks_renew(o->current, &d->settings, o->current->session, false);
}

bool output_last_line(struct daemon *d, const char **ret_line, size_t *ret_len) {
	struct output *o = d->output;
	struct sink *last = &o->current->streams[o->last_stream];

	return collect_last_line(&last->collect, ret_line, ret_len);
}

bool output_peek_line(struct daemon *d, const char **ret_line, size_t *ret_len) {
	struct output *o = d->output;

	return collect_peek_line(&o->current->streams[o->last_stream].collect, ret_line, ret_len);
}

/* SPDX-License-Identifier: MIT */
/*
 * What Is Said About Calls
 *
 * Messages that a model or a person reads when a call waits, is refused, or does not end: each
 * names what is in the way, since when, and the command that helps. Numbers are whole seconds,
 * which is precise enough and does not depend on the locale that user code may have set.
 */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire.h"
#include "daemon/call.h"

/* How a namespace is named on the command line of `ipython-mcp`. */
static const char *name_argument(const struct daemon *d, const char **ret_space) {
	bool is_default = !strcmp(d->rendezvous.name, WIRE_DEFAULT_NAME);

	*ret_space = is_default ? "" : " ";
	return is_default ? "" : d->rendezvous.name;
}

static unsigned long long seconds(double s) {
	return s > 0 ? (unsigned long long)s : 0;
}

/* What runs, and since when. */
static void add_running(struct callq *q, double now, struct buf *b) {
	const struct call *r = q->running;

	if (!r) {
		buf_add_str(b, "another call's turn comes first");
		return;
	}
	buf_addf(b, "%s of session %llu has been running for %llu s",
		r->tool.stable ? r->tool.name : "a registered tool", (unsigned long long)r->session,
		seconds(now - r->started_at));
	if (r->is_overdue || r->is_cancelled)
		buf_addf(b, " and has not ended after %u interrupts", r->n_interrupts);
}

static char *finish(struct buf *b) {
	return buf_take(b, NULL);
}

char *callwords_busy(struct callq *q, const struct call *c, double now) {
	const struct daemon *d = q->daemon;
	const char *space, *name = name_argument(d, &space);
	struct buf b = BUF_NULL;

	if (d->state == DAEMON_STOPPING)
		return answer_message(
			"The daemon is ending and takes no more calls; the call did not run.");
	/* In tenths: limits below a second are common. */
	buf_add_str(&b, "The call waited ");
	buf_add_number(&b, (double)seconds((now - c->asked_at) * 10) / 10);
	buf_add_str(&b, " s for its turn and did not run: ");
	if (d->state == DAEMON_STARTING)
		buf_addf(&b, "the shell is still being prepared (%s). Repeat it later.",
			shell_phase_name(d->phase));
	else {
		add_running(q, now, &b);
		buf_addf(&b, ". Repeat it later, or interrupt what runs: ipython-mcp interrupt%s%s",
			space, name);
		if (q->running && q->running->n_interrupts)
			buf_addf(&b,
				"; if that does not help, ipython-mcp restart --force%s%s ends it "
				"and loses the namespace",
				space, name);
		buf_add_char(&b, '.');
	}
	return finish(&b);
}

char *callwords_overdue(struct callq *q, const struct call *c) {
	const char *space, *name = name_argument(q->daemon, &space);
	struct buf b = BUF_NULL;

	buf_addf(&b, "The call exceeded its limit of ");
	buf_add_number(&b, c->timeout_s);
	buf_addf(&b,
		" s, was interrupted, and still runs: it ignores the interrupt, or code outside "
		"Python does not look for one. Later calls wait until it ends. It is interrupted "
		"again at growing intervals; ipython-mcp restart --force%s%s ends it and loses the "
		"namespace.",
		space, name);
	return finish(&b);
}

char *callwords_startup_failed(const struct daemon *d) {
	return answer_message("The shell did not start, in phase %s: %s",
		shell_phase_name(d->phase), d->failure ? d->failure : "memory was short");
}

void callwords_progress(struct callq *q, const struct call *c, double now, struct buf *b) {
	const struct daemon *d = q->daemon;
	const char *line;
	size_t len;

	if (c == q->running) {
		buf_addf(b, "running for %llu s", seconds(now - c->started_at));
		if (output_last_line(q->daemon, &line, &len)) {
			buf_add_str(b, ": ");
			buf_add(b, line, len);
		}
		return;
	}
	buf_addf(b, "waiting for %llu s: ", seconds(now - c->asked_at));
	if (d->state == DAEMON_STARTING)
		buf_addf(b, "the shell is being prepared (%s)", shell_phase_name(d->phase));
	else
		add_running(q, now, b);
}

/* One notice after another, each on a line. */
static void begin_notice(struct buf *b) {
	if (b->len)
		buf_add_char(b, '\n');
}

char *callwords_notice(struct callq *q, struct session *s, const char *more) {
	uint64_t others = q->n_cells - s->cells_seen - s->own_cells;
	struct buf b = BUF_NULL;

	s->cells_seen = q->n_cells;
	s->own_cells = 0;
	if (s->has_notice_pending_resume) {
		begin_notice(&b);
		buf_add_str(&b, "The namespace is new: the daemon was started again, what earlier "
				"calls defined is gone.");
	}
	if (s->has_notice_pending_version) {
		const char *space, *name = name_argument(q->daemon, &space);

		begin_notice(&b);
		buf_addf(&b,
			"The daemon is ipython-mcp %s, this client's ipython-mcp-connect is %s; "
			"ipython-mcp restart%s%s starts the installed one and loses the namespace.",
			PACKAGE_VERSION,
			s->client_version ? s->client_version : "of another version", space, name);
	}
	if (others) {
		begin_notice(&b);
		buf_addf(&b, "Other sessions ran %llu cell%s since this session's last call.",
			(unsigned long long)others, others == 1 ? "" : "s");
	}
	if (more) {
		begin_notice(&b);
		buf_add_str(&b, more);
	}
	s->has_notice_pending_resume = s->has_notice_pending_version = false;
	return b.len ? finish(&b) : NULL;
}

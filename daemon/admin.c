/* SPDX-License-Identifier: MIT */
/*
 * Administration
 *
 * Requests of `ipython-mcp`, the program for people. They come over the same socket, belong to
 * neither era, need no handshake and are answered by the event half alone, whatever Python does.
 * Loop thread.
 *
 * ipython-mcp/status {} answers
 *	name, pid, version	of the daemon
 *	state			"starting" "ready" "failed" "stopping"
 *	phase			of the start: where it is, or where it failed; null once ready
 *	failure			why the start failed, or null
 *	uptime_seconds
 *	python			{executable, version}, each null until known
 *	ipython_version		null until known
 *	sessions		[{id, pid, profile, client_version, waiting}], oldest first;
 *				profile is the name, client_version null for a client without the
 *				shim, waiting the number of its requests that have no answer yet
 *	running			null, or {session, tool, seconds, overdue, interrupts, last_line}
 *	waiting, calls		calls that wait for their turn; calls that have ended
 *	memory			{rss_bytes, pss_bytes}, each null where the kernel does not tell
 *	socket			path
 *	status_line		all of it in one line, as systemd is told
 * The session that asks is listed and counted like any other; ipython-mcp leaves itself out.
 *
 * ipython-mcp/interrupt {own?: bool} answers {interrupted}: whether a call was running; with own,
 * only a call of the session that asks counts.
 *
 * ipython-mcp/stop {force?: bool} answers {} and then ends the daemon as SIGTERM does; with force
 * without its grace for the running call.
 *
 * ipython-mcp/call takes what tools/call takes, progress and cancellation included, and waits its
 * turn like one; only its answer differs, since a terminal keeps apart what a model reads as one
 * text:
 *	stdout, stderr		what was printed, as profile text shows it
 *	stdoutFile, stderrFile	the whole of it, when some was omitted and has been saved
 *	text			the value of a last expression, or the error, as the session's
 *				profile shows it
 *	images			[path] of the images that were saved
 *	notice			as everywhere, absent when there is none
 *	isError
 */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wire.h"
#include "daemon/callq.h"
#include "daemon/era.h"
#include "daemon/lifecycle.h"
#include "daemon/output.h"

static void add_string(struct buf *b, const char *name, const char *value) {
	buf_addf(b, "\"%s\":", name);
	if (value)
		buf_add_json_string(b, value, strlen(value));
	else
		buf_add_str(b, "null");
}

static void add_next_string(struct buf *b, const char *name, const char *value) {
	buf_add_char(b, ',');
	add_string(b, name, value);
}

/* What /proc tells; -1: nothing. */
struct memory {
	long long rss_kb, pss_kb;
};

/* To sum it up the kernel walks over all pages: no more than once a second, whoever asks. */
static struct memory read_memory(void) {
	static struct memory memory = { -1, -1 };
	static time_t read_at = -1;
	struct timespec now;
	char line[256];
	FILE *f;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec == read_at)
		return memory;
	read_at = now.tv_sec;
	memory = (struct memory){ -1, -1 };
	f = fopen("/proc/self/smaps_rollup", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Rss:", 4))
			memory.rss_kb = strtoll(line + 4, NULL, 10);
		else if (!strncmp(line, "Pss:", 4))
			memory.pss_kb = strtoll(line + 4, NULL, 10);
	}
	if (f)
		fclose(f);
	return memory;
}

static void add_bytes(struct buf *b, const char *name, long long kb) {
	buf_addf(b, "\"%s\":", name);
	if (kb < 0)
		buf_add_str(b, "null");
	else
		buf_addf(b, "%lld", kb * 1024);
}

static void add_memory(struct buf *b) {
	struct memory memory = read_memory();

	buf_add_str(b, ",\"memory\":{");
	add_bytes(b, "rss_bytes", memory.rss_kb);
	buf_add_char(b, ',');
	add_bytes(b, "pss_bytes", memory.pss_kb);
	buf_add_char(b, '}');
}

static void add_sessions(struct buf *b, struct daemon *d) {
	struct session *s = session_first(d);
	bool is_first = true;

	/* The list is linked newest first. */
	while (s && s->next)
		s = s->next;
	buf_add_str(b, ",\"sessions\":[");
	for (; s; s = s->prev) {
		buf_addf(b, "%s{\"id\":%llu,\"pid\":%d", is_first ? "" : ",",
			(unsigned long long)s->id, (int)s->peer_pid);
		add_next_string(b, "profile", profile_name(s->profile));
		add_next_string(b, "client_version", s->client_version);
		buf_addf(b, ",\"waiting\":%u}", session_n_requests(s));
		is_first = false;
	}
	buf_add_char(b, ']');
}

static void add_running(struct buf *b, struct daemon *d, const struct callq_status *q) {
	const char *line;
	size_t len;

	buf_add_str(b, ",\"running\":");
	if (!q->is_running) {
		buf_add_str(b, "null");
		return;
	}
	buf_addf(b, "{\"session\":%llu", (unsigned long long)q->session);
	add_next_string(b, "tool", q->tool);
	buf_add_str(b, ",\"seconds\":");
	buf_add_number(b, q->running_s);
	buf_addf(b, ",\"overdue\":%s,\"interrupts\":%u,\"last_line\":",
		q->is_overdue ? "true" : "false", q->n_interrupts);
	if (output_peek_line(d, &line, &len))
		buf_add_json_string(b, line, len);
	else
		buf_add_str(b, "null");
	buf_add_char(b, '}');
}

static void admin_status(struct request *r) {
	static const char *const states[] = {
		[DAEMON_STARTING] = "starting",
		[DAEMON_READY] = "ready",
		[DAEMON_FAILED] = "failed",
		[DAEMON_STOPPING] = "stopping",
	};
	struct daemon *d = r->session->daemon;
	auto_free char *line = lifecycle_status_line(d);
	struct callq_status q;
	struct buf b = BUF_NULL;

	callq_status(d, &q);
	add_string(&b, "name", d->rendezvous.name);
	buf_addf(&b, ",\"pid\":%d,\"version\":\"%s\"", (int)getpid(), PACKAGE_VERSION);
	add_next_string(&b, "state", states[d->state]);
	add_next_string(&b, "phase", d->python_version ? NULL : shell_phase_name(d->phase));
	add_next_string(&b, "failure", d->failure);
	buf_add_str(&b, ",\"uptime_seconds\":");
	buf_add_number(&b, daemon_uptime(d));
	buf_add_str(&b, ",\"python\":{");
	add_string(&b, "executable", d->python_executable);
	add_next_string(&b, "version", d->python_version);
	buf_add_char(&b, '}');
	add_next_string(&b, "ipython_version", d->ipython_version);
	add_sessions(&b, d);
	add_running(&b, d, &q);
	buf_addf(&b, ",\"waiting\":%zu,\"calls\":%llu", q.n_waiting, (unsigned long long)q.n_calls);
	add_memory(&b);
	add_next_string(&b, "socket", d->rendezvous.socket);
	add_next_string(&b, "status_line", line);
	protocol_result(d, &r->to, &b);
}

static void admin_interrupt(struct request *r) {
	struct daemon *d = r->session->daemon;
	bool is_meant = true;
	struct callq_status q;

	if (jspan_is_word(jscan_get(r->params, "own"), "true")) {
		callq_status(d, &q);
		is_meant = q.is_running && q.session == r->session->id;
	}
	era_answer(r,
		is_meant && callq_interrupt(d) ? "\"interrupted\":true" : "\"interrupted\":false");
}

static void admin_stop(struct request *r) {
	bool force = jspan_is_word(jscan_get(r->params, "force"), "true");

	era_answer(r, "");
	daemon_stop(r->session->daemon, force);
}

static void admin_call(struct request *r) {
	r->to.revision = &revision_people;
	era_tools_call(r);
}

static const struct method admin_methods[] = {
	{ WIRE_STATUS, admin_status },
	{ WIRE_INTERRUPT, admin_interrupt },
	{ WIRE_STOP, admin_stop },
	{ WIRE_CALL, admin_call },
	{ 0 },
};

const struct era era_admin = { .methods = admin_methods };

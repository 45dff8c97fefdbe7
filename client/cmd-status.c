/* SPDX-License-Identifier: MIT */
/* ipython-mcp status: one daemon, what runs, and who is attached. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/admin.h"
#include "client/show.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/wire.h"

enum { LABEL_WIDTH = 11 };

/* The text of a member, NULL when it is none. */
static const char *text_of(const json_t *object, const char *key) {
	return json_string_value(json_object_get(object, key));
}

/* One line: a label and what the buffer holds, which is emptied. */
static void show_field(const char *label, struct buf *value) {
	auto_free char *text = buf_take(value, NULL), *line = NULL;

	if (text && *text && asprintf(&line, "  %-*s %s", LABEL_WIDTH, label, text) >= 0)
		show_line(line, show_width());
}

static void show_text(const char *label, const char *text) {
	struct buf b = BUF_NULL;

	buf_add_str(&b, text ? text : "");
	show_field(label, &b);
}

static void show_process(const json_t *status) {
	const json_t *memory = json_object_get(status, "memory");
	const json_t *pss = json_object_get(memory, "pss_bytes"),
		     *rss = json_object_get(memory, "rss_bytes");
	char text[SHOW_SIZE];
	struct buf b = BUF_NULL;

	buf_addf(&b, "%lld, up %s", json_integer_value(json_object_get(status, "pid")),
		show_duration(json_number_value(json_object_get(status, "uptime_seconds")), text));
	if (json_is_number(pss))
		buf_addf(&b, ", %s of memory", show_bytes(json_number_value(pss), text));
	else if (json_is_number(rss))
		buf_addf(&b, ", %s of memory", show_bytes(json_number_value(rss), text));
	show_field("process", &b);
}

static void show_versions(const json_t *status) {
	const json_t *python = json_object_get(status, "python");
	struct buf b = BUF_NULL;

	if (text_of(python, "version"))
		buf_addf(&b, "%s, ", text_of(python, "version"));
	if (text_of(python, "executable"))
		buf_add_str(&b, text_of(python, "executable"));
	show_field("python", &b);
	show_text("ipython", text_of(status, "ipython_version"));
	buf_addf(&b, "%s", text_of(status, "version") ? text_of(status, "version") : "");
	if (text_of(status, "version") && strcmp(text_of(status, "version"), PACKAGE_VERSION))
		buf_addf(&b, " (this program: %s; `ipython-mcp restart` starts that one)",
			PACKAGE_VERSION);
	show_field("version", &b);
}

static void show_running(const json_t *status) {
	const json_t *running = json_object_get(status, "running");
	long long n_interrupts = json_integer_value(json_object_get(running, "interrupts"));
	char text[SHOW_SIZE];
	struct buf b = BUF_NULL;

	if (json_is_object(running)) {
		buf_addf(&b, "%s of session %lld, %s",
			text_of(running, "tool") ? text_of(running, "tool") : "?",
			json_integer_value(json_object_get(running, "session")),
			show_duration(json_number_value(json_object_get(running, "seconds")),
				text));
		if (json_is_true(json_object_get(running, "overdue")))
			buf_add_str(&b, ", past its time limit");
		if (n_interrupts)
			buf_addf(&b, ", interrupted %lld time%s", n_interrupts,
				n_interrupts == 1 ? "" : "s");
		show_field("running", &b);
		show_text("last line", text_of(running, "last_line"));
	}
	buf_addf(&b, "%lld waiting, %lld ended",
		json_integer_value(json_object_get(status, "waiting")),
		json_integer_value(json_object_get(status, "calls")));
	show_field("calls", &b);
}

static void show_sessions(const json_t *status) {
	const json_t *sessions = json_object_get(status, "sessions"), *session;
	const char *label = "sessions";
	size_t i;

	json_array_foreach((json_t *)sessions, i, session) {
		long long pid = json_integer_value(json_object_get(session, "pid"));
		long long n_waiting = json_integer_value(json_object_get(session, "waiting"));
		struct buf b = BUF_NULL;

		buf_addf(&b, "%lld: process %lld, profile %s",
			json_integer_value(json_object_get(session, "id")), pid,
			text_of(session, "profile") ? text_of(session, "profile") : "?");
		if (text_of(session, "client_version"))
			buf_addf(&b, ", version %s", text_of(session, "client_version"));
		if (n_waiting)
			buf_addf(&b, ", %lld unanswered", n_waiting);
		show_field(label, &b);
		label = "";
	}
}

/* "default: idle; 2 sessions": the daemon's own words but for the number, which counts us. */
static void show_head(const struct invocation *inv, const json_t *status) {
	const char *words = text_of(status, "status_line"),
		   *end = words ? strrchr(words, ';') : NULL;
	size_t n = json_array_size(json_object_get(status, "sessions"));
	auto_free char *head = NULL;

	/* Why a start failed may be a page; it has lines of its own. */
	if (!end || text_of(status, "failure")) {
		words = text_of(status, "state") ? text_of(status, "state") : "";
		end = words + strlen(words);
	}
	if (asprintf(&head, "%s: %.*s; %zu session%s", inv->name, (int)(end - words), words, n,
		    n == 1 ? "" : "s") >= 0)
		show_line(head, show_width());
}

static int status_run(struct invocation *inv) {
	auto_rpc struct rpc r = RPC_NULL;
	auto_json json_t *status = NULL;
	const char *failure;
	int exit_status = admin_connect(inv, &r);

	if (exit_status)
		return exit_status;
	status = admin_call(inv, &r, WIRE_STATUS, json_object());
	if (!status)
		return EXIT_FAILURE;
	admin_forget_self(status);
	if (inv->is_json) {
		json_dumpf(status, stdout, JSON_INDENT(2));
		putchar('\n');
		return EXIT_SUCCESS;
	}
	show_head(inv, status);
	failure = text_of(status, "failure");
	if (failure)
		printf("\nThe start failed in phase %s:\n%s\n\n", text_of(status, "phase"),
			failure);
	show_process(status);
	show_versions(status);
	show_running(status);
	show_sessions(status);
	show_text("socket", text_of(status, "socket"));
	return EXIT_SUCCESS;
}

const struct command cmd_status = {
	.name = "status",
	.arguments = "[--json] [NAME]",
	.help = "one daemon: what runs, since when, and who is attached",
	.takes_name = true,
	.takes_json = true,
	.run = status_run,
};

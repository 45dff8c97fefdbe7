/* SPDX-License-Identifier: MIT */
/*
 * A Daemon that Does Nothing
 *
 * See fake-daemon.h. Functions of the daemon's other files, in their headers' order.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/callq.h"
#include "daemon/catalog.h"
#include "daemon/lifecycle.h"
#include "daemon/output.h"
#include "tests/lib/fake-daemon.h"

struct fake fake;

void fake_reset(void) {
	if (fake.has_call)
		protocol_drop(&fake.daemon, &fake.call);
	fake_forget_call();
	protocol_session_gone(&fake.session);
	free(fake.session.cwd);
	free(fake.session.client_version);
	buf_deinit(&fake.sent);
	fake = (struct fake){ 0 };
	fake.session.id = 7;
	fake.session.daemon = &fake.daemon;
	fake.daemon.settings.max_reply_bytes = 1000;
	fake.daemon.settings.max_message_bytes = 1000;
	fake.daemon.fingerprint = (char *)"{}";
	fake.daemon.rendezvous.name = (char *)"default";
}

struct session *session_find(struct daemon *d, uint64_t id) {
	return id == fake.session.id ? &fake.session : NULL;
}

struct session *session_first(struct daemon *d) {
	return &fake.session;
}

size_t sessions_count(const struct sessions *s) {
	return 1;
}

void session_send(struct session *s, struct buf *line) {
	buf_add(&fake.sent, line->data, line->len);
	buf_add_char(&fake.sent, '\n');
	buf_deinit(line);
}

void session_begin_request(struct session *s) {
	fake.n_requests++;
}

void session_end_request(struct session *s) {
	fake.n_requests--;
}

unsigned session_n_requests(const struct session *s) {
	return fake.n_requests;
}

bool session_is_congested(const struct session *s) {
	return false;
}

uint64_t session_queued(const struct session *s) {
	return fake.sent.len;
}

bool session_has_written(const struct session *s, uint64_t mark) {
	return true;
}

bool callq_has(struct session *s, const char *id) {
	return fake.has_call && !strcmp(fake.call.id, id);
}

void fake_forget_call(void) {
	free(fake.call_token);
	free(fake.call_arguments);
	fake.call_token = fake.call_arguments = NULL;
	fake.has_call = false;
}

void callq_cancel(struct session *s, const char *id) {
	if (!callq_has(s, id))
		return;
	fake.n_cancelled++;
	protocol_drop(&fake.daemon, &fake.call);
	fake_forget_call();
}

void callq_submit(struct daemon *d, struct session *s, struct reply_to *to,
	const struct tool_ref *tool, struct jspan arguments, struct jspan progress_token) {
	struct buf members = BUF_NULL;

	if (fake.has_call) {
		buf_add_str(&members, "\"content\":[]");
		protocol_result(d, &fake.call, &members);
		fake_forget_call();
	}
	fake.call = *to;
	*to = (struct reply_to)REPLY_TO_NULL;
	fake.call_token = jspan_copy(progress_token);
	fake.call_arguments = jspan_copy(arguments);
	fake.has_call = true;
}

void callq_on_list(struct session *s) {
}

bool callq_interrupt(struct daemon *d) {
	return fake.has_call;
}

void callq_status(struct daemon *d, struct callq_status *ret) {
	*ret = (struct callq_status){ 0 };
}

bool catalog_find(
	struct daemon *d, enum profile profile, const char *name, struct tool_ref *ret_tool) {
	return !strcmp(name, "execute");
}

const char *catalog_list(struct daemon *d, enum profile profile, const struct revision *revision,
	size_t *ret_len) {
	*ret_len = 2;
	return "[]";
}

uint64_t catalog_revision(const struct daemon *d) {
	return fake.catalog_revision;
}

bool output_peek_line(struct daemon *d, const char **ret_line, size_t *ret_len) {
	return false;
}

char *lifecycle_status_line(struct daemon *d) {
	return strdup("idle");
}

double daemon_uptime(const struct daemon *d) {
	return 1.5;
}

void daemon_stop(struct daemon *d, bool force) {
	fake.was_stopped = true;
	fake.was_forced = force;
}

/* SPDX-License-Identifier: MIT */
/* The call queue: turns, deadlines, progress, cancellation, notices, held answers. */

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/bridge.h"
#include "daemon/call.h"
#include "daemon/catalog.h"
#include "daemon/lifecycle.h"
#include "daemon/loader.h"
#include "daemon/notify.h"
#include "daemon/output.h"
#include "tests/lib/check.h"
#include "tests/unit/fake-shell.h"

static const struct revision revision = { .name = "2025-11-25", .has_tool_title = true };

/* What clients got: one row for each message, in order. */
struct message {
	char *id; /* of the answer; for progress the token */
	char *text;
	bool is_progress;
	double progress;
};

static struct {
	struct daemon d;
	struct session sessions[3];
	bool is_there[3];
	struct message messages[256];
	size_t n;
	bool has_ended, awaits_list;
} t;

/* Stand-ins for the parts around the queue. */

struct session *session_find(struct daemon *d, uint64_t id) {
	return id >= 1 && id <= 3 && t.is_there[id - 1] ? &t.sessions[id - 1] : NULL;
}

void reply_to_deinit(struct reply_to *to) {
	free(to->id);
	*to = (struct reply_to)REPLY_TO_NULL;
}

void protocol_result(struct daemon *d, struct reply_to *to, struct buf *members) {
	if (session_find(d, to->session))
		t.messages[t.n++] =
			(struct message){ .id = strdup(to->id), .text = buf_take(members, NULL) };
	buf_deinit(members);
	reply_to_deinit(to);
}

void protocol_error(struct daemon *d, struct reply_to *to, int code, const char *data,
	const char *format, ...) {
	abort();
}

void protocol_drop(struct daemon *d, struct reply_to *to) {
	reply_to_deinit(to);
}

void protocol_progress(struct daemon *d, const struct reply_to *to, const char *token,
	double progress, const char *message, size_t len) {
	t.messages[t.n++] = (struct message){ .id = strdup(token), .text = strndup(message, len),
		.is_progress = true, .progress = progress };
}

void lifecycle_rearm_signals(struct daemon *d) {
}

void lifecycle_update(struct daemon *d) {
}

void notify_tools_changed(struct daemon *d) {
}

bool notify_awaits_list(const struct session *s) {
	return t.awaits_list;
}

int loader_open(const char *python, const char *cache_directory, const struct shell_ops **ret_ops,
	struct shell_interpreter *ret_interpreter, char **ret_message) {
	*ret_ops = fake_shell_ops();
	*ret_interpreter = (struct shell_interpreter){ .executable = strdup("/fake/python") };
	return 0;
}

void daemon_on_phase(struct daemon *d, enum shell_phase phase) {
	d->phase = phase;
}

void daemon_on_ready(struct daemon *d, const char *python_version, const char *ipython_version) {
	d->state = DAEMON_READY;
	callq_on_state(d);
}

void daemon_on_failed(struct daemon *d, enum shell_phase phase, char *message) {
	d->state = DAEMON_FAILED;
	d->failure = message;
	callq_on_state(d);
}

static void on_end(struct daemon *d) {
	t.has_ended = true;
}

static void give_up(evutil_socket_t fd, short what, void *arg) {
	*(bool *)arg = true;
}

/* Turns of the loop until the condition holds, at most ten seconds. */
#define WAIT_FOR(condition)                                                                        \
	do {                                                                                       \
		bool is_late = false;                                                              \
		struct event *limit = evtimer_new(t.d.base, give_up, &is_late);                    \
		evtimer_add(limit, &(struct timeval){ .tv_sec = 10 });                             \
		while (!(condition) && !is_late)                                                   \
			event_base_loop(t.d.base, EVLOOP_ONCE);                                    \
		event_free(limit);                                                                 \
	} while (0)

static void begin(void) {
	int saved[] = { dup(0), dup(1), dup(2) };

	memset(&t, 0, sizeof(t));
	t.d.base = event_base_new();
	t.d.rendezvous.name = (char *)"default";
	t.d.settings.max_text_chars = 1000;
	t.d.settings.max_reply_bytes = 1 << 20;
	t.d.settings.max_pending_calls = 4;
	t.d.settings.max_wait_s = 30;
	for (size_t i = 0; i < 3; i++) {
		t.sessions[i] = (struct session){ .id = i + 1, .daemon = &t.d };
		t.is_there[i] = true;
	}
	t.d.catalog = catalog_new(&t.d);
	t.d.callq = callq_new(&t.d);
	fflush(stdout);
	if (output_new(&t.d) < 0 || bridge_start(&t.d, NULL) < 0)
		abort();
	/* By then the Python thread has its own copies. */
	WAIT_FOR(t.d.phase == SHELL_PRELOAD);
	for (int i = 0; i < 3; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	if (!fake_shell_start_ms)
		WAIT_FOR(t.d.state != DAEMON_STARTING);
}

static void end(void) {
	/* No call is begun that nobody would end. */
	t.d.state = DAEMON_STOPPING;
	bridge_stop(&t.d, on_end);
	WAIT_FOR(t.has_ended);
	for (size_t i = 0; i < 3; i++)
		callq_session_gone(&t.sessions[i]);
	t.d.callq = callq_free(t.d.callq);
	t.d.bridge = bridge_free(t.d.bridge);
	t.d.output = output_free(t.d.output);
	t.d.catalog = catalog_free(t.d.catalog);
	event_base_free(t.d.base);
	for (size_t i = 0; i < 3; i++)
		free(t.sessions[i].cwd);
	for (size_t i = 0; i < t.n; i++) {
		free(t.messages[i].id);
		free(t.messages[i].text);
	}
	free(t.d.failure);
	free(t.d.python_executable);
}

static void call_tool(int session, const char *id, const char *tool, const char *arguments,
	const char *token) {
	struct session *s = &t.sessions[session - 1];
	struct reply_to to = { .session = s->id, .id = strdup(id), .revision = &revision };
	struct tool_ref ref;
	struct jspan span = { arguments, strlen(arguments) };

	if (!catalog_find(&t.d, PROFILE_FULL, tool, &ref))
		abort();
	callq_submit(&t.d, s, &to, &ref, span,
		token ? (struct jspan){ token, strlen(token) } : JSPAN_NULL);
}

/* execute of fake-shell.h's commands; `more` are further arguments, with a comma first. */
static void call(int session, const char *id, const char *code, const char *more) {
	auto_free char *arguments = answer_message("{\"code\":\"%s\"%s}", code, more);

	call_tool(session, id, "execute", arguments, NULL);
}

/* The answer to `id`; NULL before it comes. */
static const char *answer(const char *id) {
	for (size_t i = 0; i < t.n; i++)
		if (!t.messages[i].is_progress && !strcmp(t.messages[i].id, id))
			return t.messages[i].text;
	return NULL;
}

static bool says(const char *id, const char *part) {
	const char *text = answer(id);

	if (text && !strstr(text, part))
		printf("# %s\n", text);
	return text && strstr(text, part);
}

static void test_callq_takes_turns(void) {
	static const char *const order[] = { "1", "2", "b1", "3", "b2" };

	begin();
	call(1, "1", "sleep:50", "");
	call(1, "2", "", "");
	call(1, "3", "", "");
	call(2, "b1", "", "");
	call(2, "b2", "", "");
	WAIT_FOR(t.n == 5);
	CHECK(t.n == 5);
	for (size_t i = 0; i < 5; i++)
		CHECK_STR(t.messages[i].id, order[i]);
	end();
}

static void test_callq_bounds_a_session(void) {
	begin();
	call(1, "0", "sleep:300", "");
	for (int i = 0; i < 4; i++)
		call(1, "more", "", "");
	CHECK(t.n == 0);
	call(1, "full", "", "");
	CHECK(says("full", "queue_full") && says("full", "\"retryable\\\":true") &&
		says("full", "stdout"));
	/* Another session's line is its own. */
	call(2, "other", "", "");
	CHECK(!answer("other"));
	end();
}

static void test_callq_times_a_call_out(void) {
	struct callq_status status;

	begin();
	call(1, "1", "out:before;sleep:10000", ",\"timeout\":0.1");
	callq_status(&t.d, &status);
	CHECK(status.is_running && status.session == 1 && !status.is_overdue);
	WAIT_FOR(answer("1"));
	CHECK(says("1", "timeout") && says("1", "before"));
	/* An interrupt never reaches the next one. */
	call(1, "2", "sleep:20", "");
	WAIT_FOR(answer("2"));
	CHECK(says("2", "\"ok\\\":true"));
	end();
}

static void test_callq_answers_what_does_not_stop(void) {
	struct callq_status status;

	begin();
	call(1, "1", "out:part;stuck:2500;out:late", ",\"timeout\":0.1");
	WAIT_FOR(answer("1"));
	CHECK(says("1", "still runs") && says("1", "restart --force") && says("1", "part"));
	callq_status(&t.d, &status);
	CHECK(status.is_overdue && status.n_interrupts == 2);
	CHECK(!callq_has(&t.sessions[0], "1"));
	call(2, "2", "", ",\"timeout\":0.1");
	WAIT_FOR(answer("2"));
	CHECK(says("2", "busy") && says("2", "execute of session 1 has been running"));
	call(1, "3", "", "");
	WAIT_FOR(answer("3"));
	/* What it wrote after its answer is nobody's. */
	CHECK(says("3", "\"ok\\\":true") && !strstr(answer("3"), "late"));
	CHECK(t.n == 3);
	end();
}

static void test_callq_reads_times_in_any_spelling(void) {
	static const char *const bad[] = { "-1", "\\\"x\\\"", "null", "true", "[]", "\\\"-2\\\"",
		"1e999" };

	begin();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_free char *more = answer_message(",\"timeout\":%s", bad[i]), *plain = NULL;
		size_t len = 0;

		/* The list is written for C; the arguments are JSON. */
		plain = strdup(more);
		for (char *c = more; *c; c++)
			if (*c != '\\')
				plain[len++] = *c;
		plain[len] = '\0';
		call(1, bad[i], "", plain);
		CHECK(says(bad[i], "invalid_arguments") && says(bad[i], "`timeout`"));
	}
	call(1, "p", "", ",\"progress_interval\":{}");
	CHECK(says("p", "`progress_interval`"));
	call(1, "s", "sleep:10000", ",\"timeout\":\"0.05\"");
	WAIT_FOR(answer("s"));
	CHECK(says("s", "timeout"));
	t.d.settings.max_execution_timeout_s = 0.05;
	call(1, "c", "sleep:10000", ",\"timeout\":1e300");
	WAIT_FOR(answer("c"));
	CHECK(says("c", "timeout"));
	t.d.settings.execution_timeout_s = 0.05;
	call(1, "d", "sleep:10000", "");
	WAIT_FOR(answer("d"));
	CHECK(says("d", "timeout"));
	end();
}

static void test_callq_cancels(void) {
	begin();
	call(1, "1", "sleep:10000", "");
	call(1, "2", "", "");
	call(1, "3", "", "");
	CHECK(callq_has(&t.sessions[0], "1") && callq_has(&t.sessions[0], "2"));
	CHECK(!callq_has(&t.sessions[1], "1"));
	/* Another session's id is another id. */
	callq_cancel(&t.sessions[1], "1");
	callq_cancel(&t.sessions[0], "999");
	callq_cancel(&t.sessions[0], "2");
	CHECK(!callq_has(&t.sessions[0], "2"));
	callq_cancel(&t.sessions[0], "1");
	callq_cancel(&t.sessions[0], "1");
	/* Taken until the work ends. */
	CHECK(callq_has(&t.sessions[0], "1"));
	WAIT_FOR(answer("3"));
	CHECK(says("3", "\"ok\\\":true") && t.n == 1 && !callq_has(&t.sessions[0], "1"));
	end();
}

static void test_callq_interrupts_for_a_person(void) {
	begin();
	CHECK(!callq_interrupt(&t.d));
	call(1, "1", "sleep:10000", "");
	CHECK(callq_interrupt(&t.d));
	WAIT_FOR(answer("1"));
	CHECK(says("1", "execution_error"));
	end();
}

/* Progress messages for a token so far that hold `part`. */
static size_t count_progress(const char *token, const char *part) {
	size_t n = 0;

	for (size_t i = 0; i < t.n; i++)
		n += t.messages[i].is_progress && !strcmp(t.messages[i].id, token) &&
		     strstr(t.messages[i].text, part);
	return n;
}

static void test_callq_tells_progress(void) {
	double last = 0;

	begin();
	call_tool(1, "1", "execute",
		"{\"code\":\"out:half\\\\n;sleep:60000\",\"progress_interval\":0.1}", "7");
	call_tool(2, "2", "execute", "{\"code\":\"\",\"progress_interval\":0.1}", "\"w\"");
	call_tool(3, "3", "execute", "{\"code\":\"\",\"progress_interval\":0}", "8");
	WAIT_FOR(count_progress("7", " s: half") && count_progress("7", "running for") >= 3 &&
		 count_progress("\"w\"", "execute of session 1 has been running") >= 2);
	/* Fresh output is told once. */
	CHECK(count_progress("7", " s: half") == 1);
	callq_interrupt(&t.d);
	WAIT_FOR(answer("3"));
	CHECK(answer("1") && answer("2") && answer("3"));
	CHECK(!count_progress("8", ""));
	for (size_t i = 0; i < t.n; i++) {
		if (!t.messages[i].is_progress || strcmp(t.messages[i].id, "7"))
			continue;
		CHECK(t.messages[i].progress > last);
		last = t.messages[i].progress;
	}
	end();
}

static void test_callq_waits_for_the_start(void) {
	fake_shell_start_ms = 250;
	begin();
	call_tool(1, "1", "execute", "{\"code\":\"\",\"progress_interval\":0.1}", "7");
	call(1, "2", "", ",\"timeout\":0.05");
	WAIT_FOR(answer("2"));
	CHECK(says("2", "busy") && says("2", "being prepared"));
	WAIT_FOR(answer("1"));
	CHECK(says("1", "\"ok\\\":true"));
	CHECK(t.messages[1].is_progress && strstr(t.messages[1].text, "(preload)"));
	end();
	fake_shell_start_ms = 0;
}

static void test_callq_tells_that_the_start_failed(void) {
	fake_shell_fails = true;
	fake_shell_start_ms = 50;
	begin();
	call(1, "1", "", "");
	WAIT_FOR(answer("1"));
	call_tool(1, "2", "list", "{}", NULL);
	CHECK(says("1", "startup_failed") && says("1", "preload") && says("1", "no such module"));
	CHECK(says("2", "startup_failed") && says("2", "\\\"functions\\\":[]"));
	end();
	fake_shell_fails = false;
	fake_shell_start_ms = 0;
}

static void test_callq_answers_when_it_stops(void) {
	begin();
	call(1, "1", "sleep:100", "");
	call(1, "2", "", "");
	t.d.state = DAEMON_STOPPING;
	callq_on_state(&t.d);
	CHECK(says("2", "busy") && says("2", "ending"));
	call(1, "3", "", "");
	CHECK(says("3", "ending"));
	WAIT_FOR(answer("1"));
	CHECK(says("1", "\"ok\\\":true"));
	end();
}

static void test_callq_tells_of_other_sessions(void) {
	begin();
	call(1, "1", "", "");
	call(2, "b1", "", "");
	call(2, "b2", "", "");
	call(2, "b3", "blank", "");
	WAIT_FOR(answer("b3"));
	CHECK(!strstr(answer("1"), "notice") && !strstr(answer("b3"), "notice"));
	call(1, "2", "", "");
	WAIT_FOR(answer("2"));
	CHECK(says("2", "Other sessions ran 2 cells"));
	call(1, "3", "", "");
	WAIT_FOR(answer("3"));
	CHECK(!strstr(answer("3"), "notice"));
	t.sessions[0].has_notice_pending_resume = true;
	call_tool(1, "4", "list", "{}", NULL);
	WAIT_FOR(answer("4"));
	CHECK(says("4", "namespace is new"));
	call(1, "5", "", "");
	WAIT_FOR(answer("5"));
	CHECK(!strstr(answer("5"), "notice"));
	end();
}

static void test_callq_keeps_the_directory_of_a_session(void) {
	begin();
	call(1, "1", "cwd:/there;note:moved", "");
	WAIT_FOR(answer("1"));
	CHECK_STR(t.sessions[0].cwd, "/there");
	CHECK(!t.sessions[1].cwd && says("1", "moved\\\\n"));
	end();
}

static void test_callq_goes_on_when_the_session_is_gone(void) {
	struct callq_status status;

	begin();
	call(1, "1", "sleep:1300", "");
	call(1, "2", "", "");
	call(2, "b", "", "");
	callq_session_gone(&t.sessions[0]);
	t.is_there[0] = false;
	callq_status(&t.d, &status);
	CHECK(status.is_running && status.n_waiting == 2);
	WAIT_FOR(answer("b"));
	callq_status(&t.d, &status);
	/* The running one ended by itself, the waiting one was dropped after its grace. */
	CHECK(t.n == 1 && status.n_calls == 2 && status.n_waiting == 0);
	end();
}

static void test_callq_holds_an_answer_for_the_list(void) {
	struct callq_status status;

	begin();
	t.awaits_list = true;
	/* Only the tools that say so hold, and only when the list has changed. */
	call(1, "1", "publish:1", "");
	WAIT_FOR(answer("1"));
	call_tool(1, "2", "register_tool", "{\"publish\":0}", NULL);
	WAIT_FOR(answer("2"));
	CHECK(says("2", "\"ok\\\":true"));

	call_tool(1, "3", "register_tool", "{\"publish\":2}", NULL);
	call(2, "b", "", "");
	WAIT_FOR(answer("b"));
	callq_status(&t.d, &status);
	CHECK(!answer("3") && status.n_calls == 4 && callq_has(&t.sessions[0], "3"));
	callq_on_list(&t.sessions[1]);
	CHECK(!answer("3"));
	callq_on_list(&t.sessions[0]);
	CHECK(answer("3"));

	/* A client that does not list gets it all the same; one that cancels does not. */
	call_tool(1, "4", "register_tool", "{\"publish\":3}", NULL);
	WAIT_FOR(answer("4"));
	CHECK(answer("4"));
	call_tool(1, "5", "register_tool", "{\"publish\":4}", NULL);
	call(2, "c", "", "");
	WAIT_FOR(answer("c"));
	callq_cancel(&t.sessions[0], "5");
	CHECK(!callq_has(&t.sessions[0], "5"));
	callq_on_list(&t.sessions[0]);
	CHECK(!answer("5"));
	end();
}

int main(void) {
	RUN(test_callq_takes_turns);
	RUN(test_callq_bounds_a_session);
	RUN(test_callq_times_a_call_out);
	RUN(test_callq_answers_what_does_not_stop);
	RUN(test_callq_reads_times_in_any_spelling);
	RUN(test_callq_cancels);
	RUN(test_callq_interrupts_for_a_person);
	RUN(test_callq_tells_progress);
	RUN(test_callq_waits_for_the_start);
	RUN(test_callq_tells_that_the_start_failed);
	RUN(test_callq_answers_when_it_stops);
	RUN(test_callq_tells_of_other_sessions);
	RUN(test_callq_keeps_the_directory_of_a_session);
	RUN(test_callq_goes_on_when_the_session_is_gone);
	RUN(test_callq_holds_an_answer_for_the_list);
	return check_done();
}

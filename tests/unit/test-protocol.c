/* SPDX-License-Identifier: MIT */
/*
 * JSON-RPC, the choice of an era, batches and listen streams, against a session that keeps what it is sent
 * and a queue that keeps what it is given.
 */

#include <stdarg.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/wire.h"
#include "daemon/batch.h"
#include "daemon/callq.h"
#include "daemon/catalog.h"
#include "daemon/lifecycle.h"
#include "daemon/notify.h"
#include "daemon/output.h"
#include "daemon/protocol.h"
#include "tests/lib/check.h"

/* --- The rest of the daemon --- */

static struct daemon daemon_;
static struct session session_;
static struct buf sent;        /* lines, each with its newline */
static struct reply_to submitted; /* the one call that the queue holds */
static char *submitted_token, *submitted_arguments;
static bool has_call;
static int n_cancelled;
static unsigned n_requests;
static uint64_t catalog_revision_;
static bool was_stopped, was_forced;

struct session *session_find(struct daemon *d, uint64_t id) {
	return id == session_.id ? &session_ : NULL;
}

struct session *session_first(struct daemon *d) {
	return &session_;
}

size_t sessions_count(const struct sessions *s) {
	return 1;
}

void session_send(struct session *s, struct buf *line) {
	buf_add(&sent, line->data, line->len);
	buf_add_char(&sent, '\n');
	buf_deinit(line);
}

void session_begin_request(struct session *s) {
	n_requests++;
}

void session_end_request(struct session *s) {
	n_requests--;
}

unsigned session_n_requests(const struct session *s) {
	return n_requests;
}

bool session_is_congested(const struct session *s) {
	return false;
}

uint64_t session_queued(const struct session *s) {
	return sent.len;
}

bool session_has_written(const struct session *s, uint64_t mark) {
	return true;
}

bool callq_has(struct session *s, const char *id) {
	return has_call && !strcmp(submitted.id, id);
}

static void forget_call(void) {
	free(submitted_token);
	free(submitted_arguments);
	submitted_token = submitted_arguments = NULL;
	has_call = false;
}

void callq_cancel(struct session *s, const char *id) {
	if (!callq_has(s, id))
		return;
	n_cancelled++;
	protocol_drop(&daemon_, &submitted);
	forget_call();
}

void callq_submit(struct daemon *d, struct session *s, struct reply_to *to, const struct tool_ref *tool,
	struct jspan arguments, struct jspan progress_token) {
	submitted = *to;
	*to = (struct reply_to)REPLY_TO_NULL;
	submitted_token = jspan_copy(progress_token);
	submitted_arguments = jspan_copy(arguments);
	has_call = true;
}

void callq_on_list(struct session *s) {
}

bool callq_interrupt(struct daemon *d) {
	return has_call;
}

void callq_status(struct daemon *d, struct callq_status *ret) {
	*ret = (struct callq_status){ 0 };
}

bool catalog_find(struct daemon *d, enum profile profile, const char *name, struct tool_ref *ret_tool) {
	return !strcmp(name, "execute");
}

const char *catalog_list(struct daemon *d, enum profile profile, const struct revision *revision,
	size_t *ret_len) {
	*ret_len = 2;
	return "[]";
}

uint64_t catalog_revision(const struct daemon *d) {
	return catalog_revision_;
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
	was_stopped = true;
	was_forced = force;
}

/* --- Conversation --- */

#define META "\"_meta\":{\"" META_VERSION "\":\"2026-07-28\",\"" META_CAPABILITIES "\":{}}"
#define INITIALIZE(revision)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"" \
	revision "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"

/* A session as it is after connecting; what the last case left is dropped. */
static void begin(void) {
	if (has_call)
		protocol_drop(&daemon_, &submitted);
	forget_call();
	protocol_session_gone(&session_);
	free(session_.cwd);
	free(session_.client_version);
	session_ = (struct session){ .id = 7, .daemon = &daemon_ };
	daemon_.settings.max_reply_bytes = 1000;
	daemon_.settings.max_message_bytes = 1000;
	daemon_.fingerprint = (char[]){ "{}" };
	daemon_.rendezvous.name = (char[]){ "default" };
	n_requests = 0;
	n_cancelled = 0;
	catalog_revision_ = 0;
	buf_clear(&sent);
}

/* Hands in a line and returns what was sent because of it, without the last newline. */
static const char *say(const char *line) {
	auto_free char *copy = strdup(line);

	buf_clear(&sent);
	protocol_dispatch(&session_, copy, strlen(copy));
	if (sent.len)
		sent.len--;
	buf_add_char(&sent, '\0');
	return sent.data;
}

static const char *error_of(const char *id, int code) {
	static char text[128];

	snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\"%s%s,\"error\":{\"code\":%d,", *id ? ",\"id\":" : "",
		id, code);
	return text;
}

/* True when `line` is answered by an error of that code, with that id ("": none). */
static bool is_refused(const char *line, const char *id, int code) {
	const char *answer = say(line), *expected = error_of(id, code);
	bool is_right = !strncmp(answer, expected, strlen(expected)) && !strchr(answer, '\n');

	if (!is_right)
		printf("# %s\n# is answered %s\n", line, answer);
	return is_right;
}

static void open_legacy(const char *line) {
	begin();
	say(line);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
}

#define CALL(id) \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"execute\"," \
	"\"arguments\":{\"code\":\"1\",\"n\":123456789012345678901234567890}," META "}}"

/* --- Cases --- */

static void test_protocol_echoes_ids(void) {
	begin();
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");
	CHECK_STR(say("{\"id\":\"\",\"method\":\"ping\",\"jsonrpc\":\"2.0\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"result\":{}}");
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":-12345678901234567890123,\"method\":\"ping\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":-12345678901234567890123,\"result\":{}}");
	CHECK(n_requests == 0);
}

static void test_protocol_refuses_what_is_no_message(void) {
	begin();
	CHECK(is_refused("nonsense", "", RPC_PARSE_ERROR));
	CHECK(is_refused("\xef\xbb\xbf{}", "", RPC_PARSE_ERROR));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\",\"x\":\"\xff\"}", "4",
		RPC_PARSE_ERROR));
	CHECK(is_refused("17", "", RPC_INVALID_REQUEST));
	CHECK(is_refused("{}", "", RPC_INVALID_REQUEST));
	CHECK(is_refused("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", "1", RPC_INVALID_REQUEST));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", "1", RPC_INVALID_REQUEST));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", "", RPC_INVALID_REQUEST));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"ping\"}", "", RPC_INVALID_REQUEST));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"ping\"}", "1",
		RPC_INVALID_REQUEST));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", "1",
		RPC_INVALID_PARAMS));
	CHECK(is_refused("[]", "", RPC_INVALID_REQUEST));
	CHECK_STR(say(" \t"), "");
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"), "");
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"method\":\"no/such\",\"params\":[]}"), "");
}

static void test_protocol_refuses_long_lines(void) {
	begin();
	protocol_refuse_too_long(&session_, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"params\":{\"a\":\"aaaa", 44);
	buf_add_char(&sent, '\0');
	CHECK(!strncmp(sent.data, error_of("\"x\"", RPC_INVALID_REQUEST),
		strlen(error_of("\"x\"", RPC_INVALID_REQUEST))));
}

static void test_protocol_chooses_the_era(void) {
	begin();
	/* Neither metadata nor a handshake. */
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", "1", RPC_INVALID_PARAMS));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/y\"}", "1", RPC_METHOD_NOT_FOUND));
	/* Modern. */
	CHECK(strstr(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}"),
		"\"result\":{\"resultType\":\"complete\",\"tools\":[],\"ttlMs\":"));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{" META "}}", "1",
		RPC_METHOD_NOT_FOUND));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{" META "}}", "1",
		RPC_METHOD_NOT_FOUND));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\""
			 META_VERSION "\":\"2026-07-28\"}}}", "1", RPC_INVALID_PARAMS));
	CHECK(strstr(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":{\""
			 META_VERSION "\":\"2025-11-25\"}}}"),
		"-32022,\"message\":\"Unsupported protocol version\",\"data\":{\"supported\":[\"2026-07-28\"],"
		"\"requested\":\"2025-11-25\"}"));
	/* A handshake after all that. */
	CHECK(strstr(say(INITIALIZE("2031-01-01")), "\"protocolVersion\":\"2025-11-25\""));
	CHECK(is_refused(INITIALIZE("2025-11-25"), "0", RPC_INVALID_REQUEST));
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}");
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", "1",
		RPC_INVALID_PARAMS));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\",\"params\":"
			 "{\"level\":\"info\"}}", "1", RPC_METHOD_NOT_FOUND));
}

static void test_protocol_hands_calls_over(void) {
	struct buf members = BUF_NULL;

	begin();
	CHECK_STR(say(CALL("\"a\\u0062\"")), "");
	CHECK(has_call && n_requests == 1);
	CHECK_STR(submitted_arguments, "{\"code\":\"1\",\"n\":123456789012345678901234567890}");
	/* However it is spelled, it is the same id. */
	CHECK(is_refused(CALL("\"ab\""), "\"ab\"", RPC_INVALID_REQUEST));
	buf_clear(&sent);
	buf_add_str(&members, "\"content\":[]");
	protocol_result(&daemon_, &submitted, &members);
	forget_call();
	buf_add_char(&sent, '\0');
	CHECK(strstr(sent.data, "{\"jsonrpc\":\"2.0\",\"id\":\"ab\",\"result\":{\"resultType\":\"complete\","
				"\"content\":[],\"_meta\":{\"" META_SERVER "\":{\"name\":"));
	CHECK(n_requests == 0);
}

static void test_protocol_cancels(void) {
	begin();
	say(CALL("5"));
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		      "{\"requestId\":\"5\"}}"), "");
	CHECK(n_cancelled == 0);
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		      "{\"requestId\":5}}"), "");
	CHECK(n_cancelled == 1 && n_requests == 0);
}

static void test_batch_collects_answers(void) {
	begin();
	CHECK(is_refused("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", "", RPC_INVALID_REQUEST));
	open_legacy(INITIALIZE("2025-03-26"));
	CHECK_STR(say("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
		      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"},"
		      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]"),
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]");
	CHECK_STR(say("[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}]"), "");
	CHECK(is_refused("[]", "", RPC_INVALID_REQUEST));
	CHECK(strstr(say("[5," INITIALIZE("2025-03-26") "]"), "-32600"));
}

static void test_batch_waits_for_the_last_answer(void) {
	open_legacy(INITIALIZE("2025-03-26"));
	CHECK_STR(say("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"execute\"}},"
		      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]"),
		"");
	CHECK(has_call && n_requests == 1);
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		      "{\"requestId\":1}}"),
		"[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]");
	CHECK(n_requests == 0);
}

static void test_batch_splits_what_is_too_long(void) {
	auto_buf struct buf line = BUF_NULL;
	const char *answer;
	size_t longest = 0;

	open_legacy(INITIALIZE("2025-03-26"));
	for (int i = 0; i < 100; i++)
		buf_addf(&line, "%c{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}", i ? ',' : '[', i);
	buf_add(&line, "]", 2);
	answer = say(line.data);
	for (const char *at = answer; *at; at += strspn(at, "\n")) {
		size_t len = strcspn(at, "\n");

		CHECK(at[0] == '[' && at[len - 1] == ']');
		longest = len > longest ? len : longest;
		at += len;
	}
	CHECK(longest <= daemon_.settings.max_reply_bytes);
	CHECK(strstr(answer, "\"id\":99,"));
}

static void test_listen_streams(void) {
	begin();
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"subscriptions/listen\",\"params\":{" META
		      ",\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":true}}}"),
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":"
		"{\"" META_SUBSCRIPTION "\":\"l\"},\"notifications\":{\"toolsListChanged\":true}}}");
	CHECK(n_requests == 0);
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"ping\"}", "\"l\"",
		RPC_INVALID_REQUEST));

	catalog_revision_ = 1;
	buf_clear(&sent);
	notify_tools_changed(&daemon_);
	buf_add_char(&sent, '\0');
	CHECK_STR(sent.data, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":"
			     "{\"_meta\":{\"" META_SUBSCRIPTION "\":\"l\"}}}\n");
	CHECK(notify_awaits_list(&session_));
	notify_listed(&session_);
	CHECK(!notify_awaits_list(&session_));

	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		      "{\"requestId\":\"l\"}}"), "");
	catalog_revision_ = 2;
	notify_tools_changed(&daemon_);
	CHECK_STR(sent.data, "");
}

static void test_notify_gives_up_on_who_does_not_list(void) {
	open_legacy(INITIALIZE("2025-06-18"));
	catalog_revision_ = 1;
	notify_tools_changed(&daemon_);
	CHECK(notify_awaits_list(&session_));
	catalog_revision_ = 2;
	notify_tools_changed(&daemon_);
	CHECK(!notify_awaits_list(&session_));
	notify_listed(&session_);
	catalog_revision_ = 3;
	notify_tools_changed(&daemon_);
	CHECK(notify_awaits_list(&session_));
}

static void test_attach_comes_first_or_never(void) {
	begin();
	CHECK(strstr(say("{\"jsonrpc\":\"2.0\",\"method\":\"" WIRE_ATTACH "\",\"params\":{\"profile\":\"text\","
			 "\"cwd\":\"/tmp\",\"version\":\"0\",\"resumed\":true,\"acknowledge\":true}}"),
		"\"method\":\"" WIRE_ATTACHED "\",\"params\":{\"version\":"));
	CHECK(session_.profile == PROFILE_TEXT && session_.has_notice_pending_resume &&
		session_.has_notice_pending_version);
	CHECK_STR(session_.cwd, "/tmp");
	begin();
	say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	say("{\"jsonrpc\":\"2.0\",\"method\":\"" WIRE_ATTACH "\",\"params\":{\"profile\":\"text\"}}");
	CHECK(session_.profile == PROFILE_FULL && !session_.is_attached);
}

static void test_admin_needs_no_era(void) {
	begin();
	CHECK(strstr(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" WIRE_STATUS "\"}"),
		"\"result\":{\"name\":\"default\",\"pid\":"));
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" WIRE_INTERRUPT "\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"interrupted\":false}}");
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" WIRE_STOP "\",\"params\":{\"force\":true}}"),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	CHECK(was_stopped && was_forced);
}

int main(void) {
	RUN(test_protocol_echoes_ids);
	RUN(test_protocol_refuses_what_is_no_message);
	RUN(test_protocol_refuses_long_lines);
	RUN(test_protocol_chooses_the_era);
	RUN(test_protocol_hands_calls_over);
	RUN(test_protocol_cancels);
	RUN(test_batch_collects_answers);
	RUN(test_batch_waits_for_the_last_answer);
	RUN(test_batch_splits_what_is_too_long);
	RUN(test_listen_streams);
	RUN(test_notify_gives_up_on_who_does_not_list);
	RUN(test_attach_comes_first_or_never);
	RUN(test_admin_needs_no_era);
	begin();
	buf_deinit(&sent);
	return check_done();
}

/* SPDX-License-Identifier: MIT */
/*
 * JSON-RPC, the choice of an era, batches and listen streams, against the fake daemon's session.
 */

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/wire.h"
#include "daemon/notify.h"
#include "daemon/protocol.h"
#include "tests/lib/check.h"
#include "tests/lib/fake-daemon.h"

/* --- Conversation --- */

#define META "\"_meta\":{\"" META_VERSION "\":\"2026-07-28\",\"" META_CAPABILITIES "\":{}}"
#define INITIALIZE(revision)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
	"\"" revision "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"

/* Hands in a line and returns what was sent because of it, without the last newline. */
static const char *say(const char *line) {
	auto_free char *copy = strdup(line);

	buf_clear(&fake.sent);
	protocol_dispatch(&fake.session, copy, strlen(copy));
	if (fake.sent.len)
		fake.sent.len--;
	buf_add_char(&fake.sent, '\0');
	return fake.sent.data;
}

static const char *error_of(const char *id, int code) {
	static char text[128];

	snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\"%s%s,\"error\":{\"code\":%d,",
		*id ? ",\"id\":" : "", id, code);
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
	fake_reset();
	say(line);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
}

#define CALL(id)                                                                                   \
	"{\"jsonrpc\":\"2.0\",\"id\":" id                                                          \
	",\"method\":\"tools/call\",\"params\":{\"name\":\"execute\","                             \
	"\"arguments\":{\"code\":\"1\",\"n\":123456789012345678901234567890}," META "}}"

/* --- Cases --- */

static void test_protocol_echoes_ids(void) {
	fake_reset();
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");
	CHECK_STR(say("{\"id\":\"\",\"method\":\"ping\",\"jsonrpc\":\"2.0\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"result\":{}}");
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":-12345678901234567890123,\"method\":\"ping\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":-12345678901234567890123,\"result\":{}}");
	CHECK(fake.n_requests == 0);
}

static void test_protocol_refuses_what_is_no_message(void) {
	fake_reset();
	CHECK(is_refused("nonsense", "", RPC_PARSE_ERROR));
	CHECK(is_refused("\xef\xbb\xbf{}", "", RPC_PARSE_ERROR));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\",\"x\":\"\xff\"}", "4",
		RPC_PARSE_ERROR));
	CHECK(is_refused("17", "", RPC_INVALID_REQUEST));
	CHECK(is_refused("{}", "", RPC_INVALID_REQUEST));
	CHECK(is_refused(
		"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", "1", RPC_INVALID_REQUEST));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", "1", RPC_INVALID_REQUEST));
	CHECK(is_refused(
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", "", RPC_INVALID_REQUEST));
	CHECK(is_refused(
		"{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"ping\"}", "", RPC_INVALID_REQUEST));
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
	fake_reset();
	protocol_refuse_too_long(
		&fake.session, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"params\":{\"a\":\"aaaa", 44);
	buf_add_char(&fake.sent, '\0');
	CHECK(!strncmp(fake.sent.data, error_of("\"x\"", RPC_INVALID_REQUEST),
		strlen(error_of("\"x\"", RPC_INVALID_REQUEST))));
}

static void test_protocol_chooses_the_era(void) {
	fake_reset();
	/* Neither metadata nor a handshake. */
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", "1",
		RPC_INVALID_PARAMS));
	CHECK(is_refused(
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/y\"}", "1", RPC_METHOD_NOT_FOUND));
	/* Modern. */
	CHECK(strstr(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META
			 "}}"),
		"\"result\":{\"resultType\":\"complete\",\"tools\":[],\"ttlMs\":"));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{" META "}}",
		"1", RPC_METHOD_NOT_FOUND));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{" META
			 "}}",
		"1", RPC_METHOD_NOT_FOUND));
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
			 "list\",\"params\":{\"_meta\":{\"" META_VERSION "\":\"2026-07-28\"}}}",
		"1", RPC_INVALID_PARAMS));
	CHECK(strstr(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":{"
			 "\"" META_VERSION "\":\"2025-11-25\"}}}"),
		"-32022,\"message\":\"Unsupported protocol "
		"version\",\"data\":{\"supported\":[\"2026-07-28\"],"
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

	fake_reset();
	CHECK_STR(say(CALL("\"a\\u0062\"")), "");
	CHECK(fake.has_call && fake.n_requests == 1);
	CHECK_STR(fake.call_arguments, "{\"code\":\"1\",\"n\":123456789012345678901234567890}");
	/* However it is spelled, it is the same id. */
	CHECK(is_refused(CALL("\"ab\""), "\"ab\"", RPC_INVALID_REQUEST));
	buf_clear(&fake.sent);
	buf_add_str(&members, "\"content\":[]");
	protocol_result(&fake.daemon, &fake.call, &members);
	fake_forget_call();
	buf_add_char(&fake.sent, '\0');
	CHECK(strstr(fake.sent.data,
		"{\"jsonrpc\":\"2.0\",\"id\":\"ab\",\"result\":{\"resultType\":\"complete\","
		"\"content\":[],\"_meta\":{\"" META_SERVER "\":{\"name\":"));
	CHECK(fake.n_requests == 0);
}

static void test_protocol_cancels(void) {
	fake_reset();
	say(CALL("5"));
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		      "{\"requestId\":\"5\"}}"), "");
	CHECK(fake.n_cancelled == 0);
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		      "{\"requestId\":5}}"), "");
	CHECK(fake.n_cancelled == 1 && fake.n_requests == 0);
}

static void test_batch_collects_answers(void) {
	fake_reset();
	CHECK(is_refused(
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", "", RPC_INVALID_REQUEST));
	open_legacy(INITIALIZE("2025-03-26"));
	CHECK_STR(say("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
		      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"},"
		      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]"),
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":2,"
		"\"result\":{}}]");
	CHECK_STR(say("[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}]"), "");
	CHECK(is_refused("[]", "", RPC_INVALID_REQUEST));
	CHECK(strstr(say("[5," INITIALIZE("2025-03-26") "]"), "-32600"));
}

static void test_batch_waits_for_the_last_answer(void) {
	open_legacy(INITIALIZE("2025-03-26"));
	CHECK_STR(say("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
		      "call\",\"params\":{\"name\":\"execute\"}},"
		      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]"),
		"");
	CHECK(fake.has_call && fake.n_requests == 1);
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		      "{\"requestId\":1}}"),
		"[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]");
	CHECK(fake.n_requests == 0);
}

static void test_batch_splits_what_is_too_long(void) {
	auto_buf struct buf line = BUF_NULL;
	const char *answer;
	size_t longest = 0;

	open_legacy(INITIALIZE("2025-03-26"));
	for (int i = 0; i < 100; i++)
		buf_addf(&line, "%c{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}",
			i ? ',' : '[', i);
	buf_add(&line, "]", 2);
	answer = say(line.data);
	for (const char *at = answer; *at; at += strspn(at, "\n")) {
		size_t len = strcspn(at, "\n");

		CHECK(at[0] == '[' && at[len - 1] == ']');
		longest = len > longest ? len : longest;
		at += len;
	}
	CHECK(longest <= fake.daemon.settings.max_reply_bytes);
	CHECK(strstr(answer, "\"id\":99,"));
}

static void test_listen_streams(void) {
	fake_reset();
	CHECK_STR(
		say("{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"subscriptions/"
		    "listen\",\"params\":{" META
		    ",\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":true}}}"),
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
		"acknowledged\",\"params\":{\"_meta\":"
		"{\"" META_SUBSCRIPTION
		"\":\"l\"},\"notifications\":{\"toolsListChanged\":true}}}");
	CHECK(fake.n_requests == 0);
	CHECK(is_refused("{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"ping\"}", "\"l\"",
		RPC_INVALID_REQUEST));

	fake.catalog_revision = 1;
	buf_clear(&fake.sent);
	notify_tools_changed(&fake.daemon);
	buf_add_char(&fake.sent, '\0');
	CHECK_STR(fake.sent.data,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":"
		"{\"_meta\":{\"" META_SUBSCRIPTION "\":\"l\"}}}\n");
	CHECK(notify_awaits_list(&fake.session));
	notify_listed(&fake.session);
	CHECK(!notify_awaits_list(&fake.session));

	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
		      "{\"requestId\":\"l\"}}"), "");
	fake.catalog_revision = 2;
	notify_tools_changed(&fake.daemon);
	CHECK_STR(fake.sent.data, "");
}

static void test_notify_gives_up_on_who_does_not_list(void) {
	open_legacy(INITIALIZE("2025-06-18"));
	fake.catalog_revision = 1;
	notify_tools_changed(&fake.daemon);
	CHECK(notify_awaits_list(&fake.session));
	fake.catalog_revision = 2;
	notify_tools_changed(&fake.daemon);
	CHECK(!notify_awaits_list(&fake.session));
	notify_listed(&fake.session);
	fake.catalog_revision = 3;
	notify_tools_changed(&fake.daemon);
	CHECK(notify_awaits_list(&fake.session));
}

static void test_attach_comes_first_or_never(void) {
	fake_reset();
	CHECK(strstr(
		say("{\"jsonrpc\":\"2.0\",\"method\":\"" WIRE_ATTACH
		    "\",\"params\":{\"profile\":\"text\","
		    "\"cwd\":\"/tmp\",\"version\":\"0\",\"resumed\":true,\"acknowledge\":true}}"),
		"\"method\":\"" WIRE_ATTACHED "\",\"params\":{\"version\":"));
	CHECK(fake.session.profile == PROFILE_TEXT && fake.session.has_notice_pending_resume &&
		fake.session.has_notice_pending_version);
	CHECK_STR(fake.session.cwd, "/tmp");
	fake_reset();
	say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	say("{\"jsonrpc\":\"2.0\",\"method\":\"" WIRE_ATTACH
	    "\",\"params\":{\"profile\":\"text\"}}");
	CHECK(fake.session.profile == PROFILE_FULL && !fake.session.is_attached);
}

static void test_admin_needs_no_era(void) {
	fake_reset();
	CHECK(strstr(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" WIRE_STATUS "\"}"),
		"\"result\":{\"name\":\"default\",\"pid\":"));
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" WIRE_INTERRUPT "\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"interrupted\":false}}");
	CHECK_STR(say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" WIRE_STOP
		      "\",\"params\":{\"force\":true}}"),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	CHECK(fake.was_stopped && fake.was_forced);
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
	fake_reset();
	return check_done();
}

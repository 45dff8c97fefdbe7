/* SPDX-License-Identifier: MIT */
#include <stdbool.h>

#include "common/cleanup.h"
#include "common/jscan.h"
#include "client/replay.h"
#include "tests/lib/check.h"

/* For the eye, JSON is written with apostrophes here; none of the texts holds a real one. */

#define VERSION_KEY "'io.modelcontextprotocol/protocolVersion':'2026-07-28'"
#define MODERN	    "'_meta':{" VERSION_KEY ",'io.modelcontextprotocol/clientCapabilities':{}}"
#define SUBSCRIPTION(id) "'_meta':{'io.modelcontextprotocol/subscriptionId':" id "}"

static const char initialize[] = "{'jsonrpc':'2.0','id':0,'method':'initialize','params':"
				 "{'protocolVersion':'2025-11-25','capabilities':{},'x':1e400}}";
static const char initialized[] = "{'jsonrpc':'2.0','method':'notifications/initialized'}";
static const char list_changed[] =
	"{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}\n";

/* What follows the id in the answer to an `initialize`. */
#define INITIALIZE_RESULT(version)                                                                 \
	"'result':{'protocolVersion':'" version                                              \
	"','capabilities':{'tools':{'listChanged':true}},'serverInfo':{}}"

/* A daemon's answer, owned by the caller. */
static char *answer(const char *id, const char *rest) {
	char *line;

	return asprintf(&line, "{'jsonrpc':'2.0','id':%s,%s}", id, rest) < 0 ? NULL : line;
}

/* Apostrophes to quotes, or back; owned by the caller. */
static char *swap(const char *text, char from, char to) {
	char *copy = strdup(text);

	for (char *c = copy; c && *c; c++)
		if (*c == from)
			*c = to;
	return copy;
}

typedef enum replay_verdict on_line_fn(struct replay *, const char *, size_t);

static enum replay_verdict feed(on_line_fn *f, struct replay *r, const char *line) {
	auto_free char *text = swap(line, '\'', '"');

	return text ? f(r, text, strlen(text)) : REPLAY_FAIL;
}

#define SENDS(r, line)	  (feed(replay_on_client_line, (r), (line)) == REPLAY_PASS)
#define RECEIVES(r, line) (feed(replay_on_daemon_line, (r), (line)) == REPLAY_PASS)
#define DROPS(f, r, line) (feed((f), (r), (line)) == REPLAY_DROP)

/* What a function that appends to a buffer appends; valid until the next call. */
static const char *said_by(void (*f)(struct replay *, struct buf *), struct replay *r) {
	static char *text;
	struct buf b = BUF_NULL;
	auto_free char *said = NULL;

	free(text);
	f(r, &b);
	said = buf_take(&b, NULL);
	text = said ? swap(said, '"', '\'') : NULL;
	return text;
}

/* A legacy conversation whose handshake is done. */
static struct replay *legacy(const char *result) {
	struct replay *r = replay_new();
	auto_free char *line = answer("0", result);

	if (r && line && SENDS(r, initialize) && RECEIVES(r, line) && SENDS(r, initialized))
		return r;
	return replay_free(r);
}

/* The id of our own request number `n` in what replay_begin() said, with its quotes. */
static char *own_id(const char *said, int n) {
	const char *line = said;

	for (;; line = strchr(line, '\n') + 1) {
		const char *id = strstr(line, "'id':'ipython-mcp-connect-");

		if (!id)
			return NULL;
		if (n-- == 0)
			return strndup(id + 5, strcspn(id + 6, "'") + 2);
		line = id;
	}
}

/* Whether a new daemon's answer to our own request goes no further. */
static bool takes_own(struct replay *r, const char *id, const char *rest) {
	auto_free char *line = answer(id, rest);

	return line && DROPS(replay_on_daemon_line, r, line);
}

static void test_replay_answers_lost_calls(void) {
	struct replay *r = legacy(INITIALIZE_RESULT("2025-11-25"));

	CHECK(r && replay_is_idle(r));
	CHECK(SENDS(r, "{'jsonrpc':'2.0','id':'a\\u0041','method':'tools/"
		       "call','params':{'name':'execute'}}"));
	CHECK(SENDS(r, "{'jsonrpc':'2.0','id':12345678901234567890,'method':'tools/list'}"));
	CHECK(!replay_is_idle(r));
	CHECK_STR(said_by(replay_lose, r),
		"{'jsonrpc':'2.0','id':'a\\u0041','result':{'content':[{'type':'text','text':"
		"'{\\'ok\\':false,\\'error\\':{\\'code\\':\\'namespace_lost\\',\\'message\\':\\'"
		"The IPython "
		"daemon ended while this call was in flight. Whether the call ran to its end is "
		"unknown, and it "
		"was not repeated. The namespace is new: variables, imports and registered tools "
		"are gone. Look "
		"at what the call may have done outside of it before you repeat "
		"it.\\',\\'error_type\\':null,"
		"\\'location\\':null,\\'traceback\\':null,\\'retryable\\':false,"
		"\\'retry_after_seconds\\':null,\\'message_truncated\\':false,"
		"\\'location_truncated\\':false,\\'traceback_truncated\\':false}}'}],'isError':"
		"true}}\n"
		"{'jsonrpc':'2.0','id':12345678901234567890,'error':{'code':-32603,'message':'The "
		"IPython "
		"daemon went away; this request was lost and its effects are "
		"unknown','data':{'reason':"
		"'daemon-restarted'}}}\n");
	CHECK(replay_is_idle(r) && replay_has_begun(r));
	CHECK_STR(said_by(replay_lose, r), "");
	replay_free(r);
}

static void test_replay_answers_in_profile_and_era(void) {
	static const char call[] =
		"{'jsonrpc':'2.0','id':7,'method':'tools/call','params':{" MODERN "}}";
	struct replay *r = replay_new();
	const char *said;

	CHECK(r);
	replay_set_profile(r, "compact");
	CHECK(SENDS(r, call));
	said = said_by(replay_lose, r);
	CHECK(strstr(said,
		"{'resultType':'complete','content':[{'type':'text','text':'{\\'ok\\':false,"
		"\\'error\\':{\\'code\\':\\'namespace_lost\\',\\'message\\':\\'The "));
	CHECK(strstr(said,
		"repeat it.\\'}}'}],'isError':true,'_meta':{'io.modelcontextprotocol/serverInfo':{"
		"'name':'ipython-mcpd',"));
	replay_set_profile(r, "text");
	CHECK(SENDS(r, call));
	said = said_by(replay_lose, r);
	CHECK(strstr(said, "'text':'[namespace_lost] The IPython daemon ended"));
	replay_free(r);
}

static void test_replay_forgets_what_was_answered(void) {
	struct replay *r = legacy(INITIALIZE_RESULT("2025-11-25"));

	CHECK(r);
	CHECK(SENDS(r, "{'jsonrpc':'2.0','id':1,'method':'ping'}"));
	CHECK(SENDS(r, "{'jsonrpc':'2.0','id':'1','method':'ping'}"));
	CHECK(RECEIVES(r, "{'jsonrpc':'2.0','id':1,'result':{}}"));
	CHECK(RECEIVES(r, "{'jsonrpc':'2.0','id':99,'result':{}}"));
	CHECK(RECEIVES(r, "{'jsonrpc':'2.0','error':{'code':-32700,'message':''}}"));
	CHECK(!replay_is_idle(r));
	CHECK(strstr(said_by(replay_lose, r), "'id':'1',"));
	replay_free(r);
}

static void test_replay_follows_cancels(void) {
	static const char call[] = "{'jsonrpc':'2.0','id':5,'method':'tools/call','params':{}}";
	static const char cancel[] =
		"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':5}}";
	struct replay *r = legacy(INITIALIZE_RESULT("2025-11-25"));

	CHECK(r);
	/* A cancelled call is answered by nobody. */
	CHECK(SENDS(r, call) && SENDS(r, cancel));
	CHECK_STR(said_by(replay_lose, r), "");
	/* A lost call's cancel would reach a daemon that never knew it. */
	CHECK(SENDS(r, call));
	CHECK(strstr(said_by(replay_lose, r), "namespace_lost"));
	CHECK(DROPS(replay_on_client_line, r, cancel));
	CHECK(SENDS(r, cancel));
	/* The id may serve again, and then its cancel counts. */
	CHECK(SENDS(r, call));
	CHECK(strstr(said_by(replay_lose, r), "namespace_lost"));
	CHECK(SENDS(r, call) && SENDS(r, cancel));
	replay_free(r);
}

static void test_replay_repeats_a_legacy_handshake(void) {
	struct replay *r = legacy(INITIALIZE_RESULT("2025-06-18"));
	auto_free char *first = NULL, *second = NULL, *said = NULL, *expected = NULL;

	CHECK(r);
	CHECK(SENDS(r,
		"{'jsonrpc':'2.0','id':3,'method':'logging/setLevel','params':{'level':'error'}}"));
	CHECK(RECEIVES(r, "{'jsonrpc':'2.0','id':3,'result':{}}"));
	CHECK_STR(said_by(replay_lose, r), "");
	said = strdup(said_by(replay_begin, r));
	first = own_id(said, 0);
	second = own_id(said, 1);
	CHECK(first && second && strcmp(first, second));
	CHECK(asprintf(&expected,
		      "{'jsonrpc':'2.0','id':%s,'method':'initialize','params':{'protocolVersion':"
		      "'2025-11-25','capabilities':{},'x':1e400}}\n%s\n{'jsonrpc':'2.0','id':%s,'"
		      "method':"
		      "'logging/setLevel','params':{'level':'error'}}\n",
		      first, initialized, second) > 0);
	CHECK_STR(said, expected);
	CHECK(!replay_is_settled(r));
	CHECK(takes_own(r, first, INITIALIZE_RESULT("2025-06-18")));
	CHECK(!replay_is_settled(r));
	CHECK(takes_own(r, second, "'result':{}"));
	CHECK(replay_is_settled(r));
	CHECK_STR(said_by(replay_end, r), list_changed);
	replay_free(r);
}

static void test_replay_chooses_other_ids_each_time(void) {
	struct replay *r = legacy(INITIALIZE_RESULT("2025-11-25"));
	auto_free char *first = NULL, *second = NULL;

	CHECK(r);
	first = own_id(said_by(replay_begin, r), 0);
	(void)said_by(replay_lose, r);
	second = own_id(said_by(replay_begin, r), 0);
	CHECK(first && second && strcmp(first, second));
	replay_free(r);
}

static void test_replay_gives_up_when_a_daemon_offers_less(void) {
	static const char *const answers[] = {
		INITIALIZE_RESULT("2025-06-18"),
		"'result':{'protocolVersion':'2025-11-25','capabilities':{}}",
		"'result':{'protocolVersion':'2025-11-25','capabilities':{'tools':{}}}",
		"'error':{'code':-32603,'message':'no'}",
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct replay *r = legacy(INITIALIZE_RESULT("2025-11-25"));
		auto_free char *id = NULL, *line = NULL;

		CHECK(r);
		id = own_id(said_by(replay_begin, r), 0);
		CHECK(id);
		line = answer(id, answers[i]);
		CHECK(line);
		CHECK(feed(replay_on_daemon_line, r, line) == REPLAY_FAIL);
		CHECK(replay_failure(r) != NULL);
		replay_free(r);
	}
}

static void test_replay_sends_an_unanswered_initialize_again(void) {
	struct replay *r = replay_new();
	auto_free char *expected = NULL, *line = NULL;

	CHECK(r && !replay_has_begun(r));
	CHECK(SENDS(r, initialize) && SENDS(r, initialized) && replay_has_begun(r));
	CHECK_STR(said_by(replay_lose, r), "");
	CHECK(asprintf(&expected, "%s\n%s\n", initialize, initialized) > 0);
	CHECK_STR(said_by(replay_begin, r), expected);
	/* Its answer is the client's. */
	CHECK(replay_is_settled(r));
	line = answer("0", INITIALIZE_RESULT("2025-11-25"));
	CHECK(line && RECEIVES(r, line));
	CHECK(replay_is_idle(r));
	replay_free(r);
}

static void test_replay_opens_streams_again(void) {
	static const char listen[] =
		"{'jsonrpc':'2.0','id':'listen:0','method':'subscriptions/listen',"
		"'params':{" MODERN ",'notifications':{'toolsListChanged':true}}}";
	static const char other[] =
		"{'jsonrpc':'2.0','id':4,'method':'subscriptions/listen','params':{" MODERN
		",'notifications':{}}}";
	static const char ack[] =
		"{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged',"
		"'params':{" SUBSCRIPTION("'listen:0'") ",'notifications':{}}}";
	static const char other_ack[] =
		"{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged',"
		"'params':{" SUBSCRIPTION("4") ",'notifications':{}}}";
	struct replay *r = replay_new();
	auto_free char *expected = NULL;

	CHECK(r);
	CHECK(SENDS(r, listen) && RECEIVES(r, ack) && SENDS(r, other));
	/* Open streams keep nobody from leaving. */
	CHECK(replay_is_idle(r));
	CHECK_STR(said_by(replay_lose, r), "");
	CHECK(asprintf(&expected, "%s\n%s\n", listen, other) > 0);
	CHECK_STR(said_by(replay_begin, r), expected);
	CHECK(!replay_is_settled(r));
	/* Lost once more before it could acknowledge. */
	(void)said_by(replay_lose, r);
	CHECK_STR(said_by(replay_begin, r), expected);
	CHECK(DROPS(replay_on_daemon_line, r, ack));
	CHECK(replay_is_settled(r));
	/* The client never saw the other one's acknowledgement, so it gets it. */
	CHECK(RECEIVES(r, other_ack));
	CHECK_STR(said_by(replay_end, r),
		"{'jsonrpc':'2.0','method':'notifications/tools/list_changed','params':{"
		SUBSCRIPTION("'listen:0'") "}}\n");
	replay_free(r);
}

static void test_replay_keeps_streams_that_a_stopping_daemon_ends(void) {
	static const char listen[] =
		"{'jsonrpc':'2.0','id':9,'method':'subscriptions/listen','params':{" MODERN
		",'notifications':{}}}";
	static const char ack[] =
		"{'jsonrpc':'2.0','method':'notifications/subscriptions/acknowledged',"
		"'params':{" SUBSCRIPTION("9") "}}";
	struct replay *r = replay_new();
	auto_free char *expected = NULL;

	CHECK(r);
	CHECK(SENDS(r, listen) && RECEIVES(r, ack));
	CHECK(DROPS(replay_on_daemon_line, r,
		"{'jsonrpc':'2.0','id':9,'result':{'resultType':'complete'}}"));
	CHECK(DROPS(replay_on_daemon_line, r,
		"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':9}}"));
	(void)said_by(replay_lose, r);
	CHECK(asprintf(&expected, "%s\n", listen) > 0);
	CHECK_STR(said_by(replay_begin, r), expected);
	CHECK(DROPS(replay_on_daemon_line, r, ack));

	/* The client ends it itself: then it is over. */
	CHECK(SENDS(r,
		"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':9}}"));
	(void)said_by(replay_lose, r);
	CHECK_STR(said_by(replay_begin, r), "");
	CHECK(replay_is_settled(r));

	/* A refused one never was open. */
	CHECK(SENDS(r, listen));
	CHECK(RECEIVES(r, "{'jsonrpc':'2.0','id':9,'error':{'code':-32602,'message':''}}"));
	CHECK_STR(said_by(replay_begin, r), "");
	replay_free(r);
}

static void test_replay_answers_batches_as_batches(void) {
	struct replay *r = legacy(INITIALIZE_RESULT("2025-03-26"));
	const char *said;

	CHECK(r);
	CHECK(SENDS(r, "[{'jsonrpc':'2.0','id':1,'method':'ping'},{'jsonrpc':'2.0','method':'x'},"
		       "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{}}]"));
	CHECK(SENDS(r, "{'jsonrpc':'2.0','id':3,'method':'ping'}"));
	CHECK(SENDS(r, "[{'jsonrpc':'2.0','id':4,'method':'ping'}]"));
	CHECK(SENDS(r, "[{'jsonrpc':'2.0','id':5,'method':'ping'}]"));
	CHECK(RECEIVES(r, "[{'jsonrpc':'2.0','id':4,'result':{}}]"));
	said = said_by(replay_lose, r);
	CHECK(!strncmp(said, "[{'jsonrpc':'2.0','id':1,", 25));
	CHECK(strstr(said, "},{'jsonrpc':'2.0','id':2,'result'"));
	CHECK(strstr(said, "'isError':true}}]\n{'jsonrpc':'2.0','id':3,"));
	CHECK(strstr(said, "}}}\n[{'jsonrpc':'2.0','id':5,"));
	CHECK(!strcmp(said + strlen(said) - 5, "}}}]\n"));
	replay_free(r);
}

static void test_replay_lets_what_it_cannot_follow_pass(void) {
	struct replay *r = legacy(INITIALIZE_RESULT("2025-11-25"));

	CHECK(r);
	CHECK(SENDS(r, "") && SENDS(r, "  ") && replay_is_idle(r));
	CHECK(SENDS(r, "{'jsonrpc':'2.0','id':1,'id':2,'method':'ping'}"));
	/* Whether the daemon still owes an answer is not known from then on. */
	CHECK(!replay_is_idle(r));
	CHECK(SENDS(r, "[{'jsonrpc':'2.0','id':1,'method':'ping'}]"));
	CHECK(SENDS(r, "not json") && SENDS(r, "17") && SENDS(r, "{}") &&
		SENDS(r, "{'method':'ping','id':null}"));
	CHECK(RECEIVES(r, "not json") && RECEIVES(r, "") && RECEIVES(r, "[") &&
		RECEIVES(r, "{'id'"));
	CHECK_STR(said_by(replay_lose, r), "");
	replay_free(r);
}

static void test_replay_refuses_with_the_reason(void) {
	struct replay *r = replay_new();
	auto_buf struct buf out = BUF_NULL;
	auto_free char *raw = NULL, *text = NULL;
	static const char *const lines[] = {
		"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{}}",
		"{'jsonrpc':'2.0','method':'notifications/initialized'}", "garbage",
		"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{" MODERN "}}"
	};

	CHECK(r);
	replay_set_profile(r, "text");
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		auto_free char *line = swap(lines[i], '\'', '"');

		CHECK(line);
		replay_refuse(r, line, strlen(line), "no \"libpython\"", &out);
	}
	raw = buf_take(&out, NULL);
	CHECK(raw);
	text = swap(raw, '"', '\'');
	CHECK(text);
	CHECK(!strncmp(text,
		"{'jsonrpc':'2.0','id':0,'error':{'code':-32603,'message':'There is no IPython "
		"daemon: no "
		"\\'libpython\\'','data':{'reason':'daemon-unavailable'}}}\n"
		"{'jsonrpc':'2.0','id':1,'result':{'resultType':'complete','content':[{'type':'"
		"text',"
		"'text':'[startup_failed] There is no IPython daemon: no "
		"\\'libpython\\''}],'isError':true,",
		300));
	replay_free(r);
}

int main(void) {
	RUN(test_replay_answers_lost_calls);
	RUN(test_replay_answers_in_profile_and_era);
	RUN(test_replay_forgets_what_was_answered);
	RUN(test_replay_follows_cancels);
	RUN(test_replay_repeats_a_legacy_handshake);
	RUN(test_replay_chooses_other_ids_each_time);
	RUN(test_replay_gives_up_when_a_daemon_offers_less);
	RUN(test_replay_sends_an_unanswered_initialize_again);
	RUN(test_replay_opens_streams_again);
	RUN(test_replay_keeps_streams_that_a_stopping_daemon_ends);
	RUN(test_replay_answers_batches_as_batches);
	RUN(test_replay_lets_what_it_cannot_follow_pass);
	RUN(test_replay_refuses_with_the_reason);
	return check_done();
}

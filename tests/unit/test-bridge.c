/* SPDX-License-Identifier: MIT */
/*
 * The border: bridge.c against a Python half without Python. Meant to be clean under the thread
 * sanitizer.
 */

#include <event2/event.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/bridge.h"
#include "daemon/callq.h"
#include "daemon/catalog.h"
#include "daemon/fds.h"
#include "daemon/loader.h"
#include "daemon/notify.h"
#include "tests/lib/check.h"
#include "tests/unit/fake-shell.h"

/* What came over the border. */
static struct {
	int n_phases, n_replies, n_catalogs, n_ready, n_ends;
	enum shell_phase phase;
	char *failure;
	struct shell_reply *reply;
	uint64_t revision, revision_at_reply;
	char python[64];
} seen;

static bool loader_fails;

int loader_open(const char *python, const char *cache_directory, const struct shell_ops **ret_ops,
	struct shell_interpreter *ret_interpreter, char **ret_message) {
	if (loader_fails) {
		*ret_message = strdup("no such interpreter");
		return -1;
	}
	*ret_ops = fake_shell_ops();
	*ret_interpreter = (struct shell_interpreter){ .executable = strdup("/fake/python") };
	return 0;
}

void daemon_on_phase(struct daemon *d, enum shell_phase phase) {
	seen.n_phases++;
	seen.phase = phase;
}

void daemon_on_ready(struct daemon *d, const char *python_version, const char *ipython_version) {
	seen.n_ready++;
	snprintf(seen.python, sizeof(seen.python), "%s", python_version);
}

void daemon_on_failed(struct daemon *d, enum shell_phase phase, char *message) {
	free(seen.failure);
	seen.failure = message;
	seen.phase = phase;
}

bool catalog_publish(struct daemon *d, struct shell_catalog *next) {
	seen.n_catalogs++;
	seen.revision = next->revision;
	shell_catalog_free(next);
	return true;
}

void notify_tools_changed(struct daemon *d) {
}

void callq_on_reply(struct daemon *d, struct shell_reply *reply) {
	shell_reply_free(seen.reply);
	seen.reply = reply;
	seen.revision_at_reply = seen.revision;
	seen.n_replies++;
}

static void on_end(struct daemon *d) {
	seen.n_ends++;
}

/* Turns of the loop until the condition holds, at most ten seconds. */
static void give_up(evutil_socket_t fd, short what, void *arg) {
	*(bool *)arg = true;
}

#define WAIT_FOR(d, condition)                                                                     \
	do {                                                                                       \
		bool is_late = false;                                                              \
		struct event *limit = evtimer_new((d)->base, give_up, &is_late);                   \
		evtimer_add(limit, &(struct timeval){ .tv_sec = 10 });                             \
		while (!(condition) && !is_late)                                                   \
			event_base_loop((d)->base, EVLOOP_ONCE);                                   \
		event_free(limit);                                                                 \
	} while (0)

static void begin(struct daemon *d) {
	shell_reply_free(seen.reply);
	free(seen.failure);
	memset(&seen, 0, sizeof(seen));
	*d = (struct daemon){ .base = event_base_new() };
}

static void end(struct daemon *d) {
	if (!seen.n_ends) {
		bridge_stop(d, on_end);
		WAIT_FOR(d, seen.n_ends);
	}
	d->bridge = bridge_free(d->bridge);
	event_base_free(d->base);
	free(d->python_executable);
}

static void submit(struct daemon *d, uint64_t id, const char *code) {
	struct shell_call *call = calloc(1, sizeof(*call));

	call->id = id;
	call->tool = strdup("execute");
	call->arguments = answer_message("{\"code\":\"%s\"}", code);
	call->arguments_len = strlen(call->arguments);
	bridge_submit(d, call);
}

static void test_bridge_carries_calls_and_news(void) {
	struct daemon d;

	begin(&d);
	CHECK(bridge_start(&d, NULL) == 0);
	WAIT_FOR(&d, seen.n_ready);
	CHECK(seen.n_ready == 1 && seen.phase == SHELL_PRELOAD);
	CHECK_STR(seen.python, "3.99.0");
	CHECK_STR(d.python_executable, "/fake/python");
	for (int i = 1; i <= 200; i++) {
		submit(&d, (uint64_t)i, "value:1");
		WAIT_FOR(&d, seen.n_replies == i);
		CHECK(seen.n_replies == i && seen.reply->call == (uint64_t)i);
	}
	end(&d);
	CHECK(seen.n_ends == 1);
}

static void test_bridge_delivers_the_catalog_before_the_reply(void) {
	struct daemon d;

	begin(&d);
	CHECK(bridge_start(&d, NULL) == 0);
	WAIT_FOR(&d, seen.n_ready);
	submit(&d, 1, "publish:3");
	WAIT_FOR(&d, seen.n_replies);
	CHECK(seen.n_catalogs == 1 && seen.revision_at_reply == 3);
	/* Of two the newer one counts; whether the older one was seen depends on the threads. */
	submit(&d, 2, "publish:4;publish:5");
	WAIT_FOR(&d, seen.n_replies == 2);
	CHECK(seen.revision_at_reply == 5);
	end(&d);
}

static void test_bridge_interrupts_the_running_call_only(void) {
	struct daemon d;

	begin(&d);
	CHECK(bridge_start(&d, NULL) == 0);
	CHECK(!bridge_interrupt(&d, 1, SHELL_TIMEOUT, 0));
	WAIT_FOR(&d, seen.n_ready);
	submit(&d, 1, "sleep:10000");
	while (!bridge_interrupt(&d, 1, SHELL_TIMEOUT, 0))
		usleep(100);
	WAIT_FOR(&d, seen.n_replies);
	CHECK(seen.n_replies == 1 && seen.reply->answer->is_error);
	CHECK(!bridge_interrupt(&d, 1, SHELL_TIMEOUT, 1));
	end(&d);
}

/* In a container whose kernel refuses a table of one's own, closing everything is the end. */
/* As fds_separate() sees it; the thread sanitizer keeps it from separating them. */
static bool has_separate_descriptors(void) {
#if defined(__SANITIZE_THREAD__)
	return false;
#endif
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(unshare(CLONE_FILES | CLONE_FS) < 0);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void test_bridge_survives_closed_descriptors(void) {
	struct daemon d;

	if (!has_separate_descriptors())
		return;
	begin(&d);
	CHECK(bridge_start(&d, NULL) == 0);
	WAIT_FOR(&d, seen.n_ready);
	for (int i = 1; i <= 3; i++) {
		submit(&d, (uint64_t)i, "close");
		WAIT_FOR(&d, seen.n_replies == i);
		CHECK(seen.n_replies == i);
	}
	end(&d);
}

static void test_bridge_stops_before_it_is_ready(void) {
	struct daemon d;

	begin(&d);
	fake_shell_start_ms = 10000;
	CHECK(bridge_start(&d, NULL) == 0);
	bridge_stop(&d, on_end);
	WAIT_FOR(&d, seen.n_ends);
	CHECK(seen.n_ends == 1);
	end(&d);
	fake_shell_start_ms = 0;
}

static void test_bridge_tells_why_the_start_failed(void) {
	struct daemon d;

	begin(&d);
	loader_fails = true;
	CHECK(bridge_start(&d, NULL) == 0);
	WAIT_FOR(&d, seen.failure);
	CHECK_STR(seen.failure, "no such interpreter");
	CHECK(seen.phase == SHELL_CONFIGURATION);
	end(&d);
	loader_fails = false;

	begin(&d);
	fake_shell_fails = true;
	CHECK(bridge_start(&d, NULL) == 0);
	WAIT_FOR(&d, seen.failure);
	CHECK_STR(seen.failure, "no such module");
	CHECK(seen.phase == SHELL_PRELOAD);
	end(&d);
	fake_shell_fails = false;

	begin(&d);
	CHECK(bridge_start(&d, "IPYTHON_MCP_X: wrong\n") == 0);
	WAIT_FOR(&d, seen.failure);
	CHECK_STR(seen.failure, "IPYTHON_MCP_X: wrong\n");
	CHECK(seen.n_phases == 0);
	end(&d);
	CHECK(seen.n_ends == 1);
}

/* Children inherit the Python thread's mask; SIGINT is for that thread alone. */
static void test_bridge_blocks_interrupts_on_the_loop_thread(void) {
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	CHECK(sigismember(&mask, SIGINT));
}

int main(void) {
	RUN(test_bridge_carries_calls_and_news);
	RUN(test_bridge_delivers_the_catalog_before_the_reply);
	RUN(test_bridge_interrupts_the_running_call_only);
	RUN(test_bridge_survives_closed_descriptors);
	RUN(test_bridge_stops_before_it_is_ready);
	RUN(test_bridge_tells_why_the_start_failed);
	RUN(test_bridge_blocks_interrupts_on_the_loop_thread);
	shell_reply_free(seen.reply);
	free(seen.failure);
	return check_done();
}

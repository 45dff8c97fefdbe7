/* SPDX-License-Identifier: MIT */
/*
 * Fake Shell
 *
 * See fake-shell.h. It keeps the border's rules as the real one does: one thread runs everything,
 * calls arrive under a lock, an interrupt reaches the call that runs and no other.
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/jscan.h"
#include "tests/unit/fake-shell.h"

int fake_shell_start_ms;
bool fake_shell_fails;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct shell_call *next;
	uint64_t running;
	unsigned n_interrupts;
	enum shell_reason reason;
	bool is_stopping;
	const struct shell_host *host; /* of the thread */
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

/* Waits for an interrupt, a stop or the time's end, whichever `ends` says. */
static void wait_ms(int ms, bool ends) {
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&fake.lock);
	while (!ends || (!fake.n_interrupts && !fake.is_stopping))
		if (pthread_cond_timedwait(&fake.wake, &fake.lock, &until))
			break;
	pthread_mutex_unlock(&fake.lock);
}

static bool was_interrupted(enum shell_reason *ret_reason) {
	bool is_set;

	pthread_mutex_lock(&fake.lock);
	is_set = fake.n_interrupts > 0;
	*ret_reason = fake.reason;
	pthread_mutex_unlock(&fake.lock);
	return is_set;
}

static void publish(int n, bool last_is_stale) {
	struct shell_catalog *c = calloc(1, sizeof(*c));

	c->revision = (uint64_t)n;
	c->n_tools = (size_t)n;
	c->tools = calloc(c->n_tools, sizeof(*c->tools));
	for (int i = 0; i < n; i++) {
		c->tools[i].name = answer_message("tool%d", i);
		c->tools[i].description = strdup("A tool");
		c->tools[i].schema = strdup("{\"type\":\"object\"}");
	}
	c->tools[n - 1].is_stale = last_is_stale;
	fake.host->catalog(fake.host->ctx, c);
}

static void write_text(int fd, const char *text) {
	for (; *text; text++) {
		char c = *text;

		if (c == '\\' && text[1] == 'n') {
			c = '\n';
			text++;
		}
		if (write(fd, &c, 1) != 1)
			return;
	}
}

/*
 * As os.closerange() does. The low numbers are then taken again, unseen by the thread sanitizer,
 * which takes equal numbers of the two tables for the same descriptor.
 */
static void close_all(void) {
	(void)syscall(SYS_close_range, 3, ~0u, 0);
	for (int i = 0; i < 60; i++)
		(void)syscall(SYS_dup, 0);
}

/* What the commands of one call do to its reply. */
struct effect {
	struct shell_reply *reply;
	struct buf result, fallback;
	bool has_image, is_wide, is_blank, is_nothing;
};

static void command(const char *name, const char *argument, struct effect *e) {
	int number = atoi(argument);

	if (!strcmp(name, "out") || !strcmp(name, "err"))
		write_text(*name == 'o' ? 1 : 2, argument);
	else if (!strcmp(name, "sleep") || !strcmp(name, "stuck"))
		wait_ms(number, !strcmp(name, "sleep"));
	else if (!strcmp(name, "publish") || !strcmp(name, "stale"))
		publish(number, *name == 's');
	else if (!strcmp(name, "close"))
		close_all();
	else if (!strcmp(name, "cwd"))
		e->reply->cwd = strdup(argument);
	else if (!strcmp(name, "note"))
		e->reply->cwd_note = strdup(argument);
	else if (!strcmp(name, "value"))
		buf_add_str(&e->result, argument);
	else if (!strcmp(name, "image"))
		e->has_image = true;
	else if (!strcmp(name, "wide"))
		e->is_wide = true;
	else if (!strcmp(name, "blank"))
		e->is_blank = true;
	else if (!strcmp(name, "nothing"))
		e->is_nothing = true;
	if (!strcmp(name, "big")) {
		buf_add_char(&e->result, '"');
		for (int i = 0; i < number; i++)
			buf_add_char(&e->result, 'x');
		buf_add_char(&e->result, '"');
		buf_add_str(&e->fallback, "{\"json_compatible\":false}");
	}
}

static void execute(const struct shell_call *call, struct effect *e) {
	struct jspan arguments = jscan_value(call->arguments, call->arguments_len);
	auto_free char *code = jspan_decode(jscan_get(arguments, "code"), NULL);
	char *state = NULL;

	for (char *c = code ? strtok_r(code, ";", &state) : NULL; c;
		c = strtok_r(NULL, ";", &state)) {
		char *colon = strchr(c, ':');

		if (colon)
			*colon = '\0';
		command(c, colon ? colon + 1 : "", e);
	}
}

/* Tools that change the list, as far as that goes here. */
static void publish_argument(const struct shell_call *call) {
	struct jspan revision =
		jscan_get(jscan_value(call->arguments, call->arguments_len), "publish");
	int n = revision.at ? atoi(revision.at) : 0;

	if (n)
		publish(n, false);
}

static struct answer *make_answer(const struct shell_call *call, struct effect *e) {
	struct answer *a = answer_new();
	enum shell_reason reason;

	if (strcmp(call->tool, "execute")) {
		answer_add_bool(a, "ok", true, false);
		buf_add(answer_member(a, "result", false), call->arguments, call->arguments_len);
		answer_add_literal(a, "error", "null", true);
		return a;
	}
	answer_add_bool(a, "ok", true, false);
	answer_add_literal(a, "status", "\"ok\"", true);
	answer_add_literal(a, "execution_count", e->is_blank ? "null" : "7", e->is_blank);
	if (!e->result.len)
		buf_add_str(&e->result, "null");
	buf_add(answer_member(a, "result", false), e->result.data, e->result.len);
	answer_add_literal(a, "display_data",
		e->has_image ? "[{\"data\":{\"text/plain\":\"a\"},\"metadata\":{}},"
			       "{\"data\":{\"image/png\":{\"block\":1}},\"metadata\":{}}]" : "[]",
		!e->has_image);
	if (e->has_image)
		answer_add_image(a, "image/png", strdup("QUJD"), 4);
	a->has_wide_integer = e->is_wide;
	a->result_fallback = e->fallback;
	e->fallback = (struct buf)BUF_NULL;
	if (call->profile == PROFILE_TEXT && strcmp(e->result.data, "null"))
		buf_add(&a->text, e->result.data, e->result.len);
	if (was_interrupted(&reason)) {
		struct answer_error error = {
			.code = reason == SHELL_TIMEOUT ? "timeout" : "execution_error",
			.message = (char *)"interrupted",
		};

		answer_set_error(a, &error, call->profile);
	} else {
		answer_add_literal(a, "error", "null", true);
	}
	return a;
}

static void serve(struct shell_call *call) {
	struct effect e = { .reply = calloc(1, sizeof(*e.reply)) };

	if (!strcmp(call->tool, "execute"))
		execute(call, &e);
	else
		publish_argument(call);
	e.reply->call = call->id;
	e.reply->answer = e.is_nothing ? NULL : make_answer(call, &e);
	buf_deinit(&e.result);
	buf_deinit(&e.fallback);
	pthread_mutex_lock(&fake.lock);
	fake.running = 0;
	pthread_mutex_unlock(&fake.lock);
	fake.host->reply(fake.host->ctx, e.reply);
	shell_call_free(call);
}

static int fake_run(const struct settings *settings, const struct shell_interpreter *interpreter,
	const char *files_directory, const struct shell_host *host) {
	fake.host = host;
	host->phase(host->ctx, SHELL_PRELOAD);
	wait_ms(fake_shell_start_ms, true);
	if (fake_shell_fails) {
		host->failed(host->ctx, SHELL_PRELOAD, strdup("no such module"));
		return -1;
	}
	host->ready(host->ctx, "3.99.0", "99.0");
	for (;;) {
		struct shell_call *call;

		pthread_mutex_lock(&fake.lock);
		while (!fake.next && !fake.is_stopping)
			pthread_cond_wait(&fake.wake, &fake.lock);
		call = take(fake.next);
		fake.running = call ? call->id : 0;
		fake.n_interrupts = 0;
		if (!call)
			fake.is_stopping = false;
		pthread_mutex_unlock(&fake.lock);
		if (!call)
			return 0;
		serve(call);
	}
}

static void fake_submit(struct shell_call *call) {
	pthread_mutex_lock(&fake.lock);
	fake.next = call;
	pthread_cond_signal(&fake.wake);
	pthread_mutex_unlock(&fake.lock);
}

static bool fake_interrupt(uint64_t id, enum shell_reason reason, unsigned again) {
	bool is_running;

	pthread_mutex_lock(&fake.lock);
	is_running = fake.running == id;
	if (is_running) {
		fake.n_interrupts++;
		fake.reason = reason;
		pthread_cond_signal(&fake.wake);
	}
	pthread_mutex_unlock(&fake.lock);
	return is_running;
}

static void fake_stop(void) {
	pthread_mutex_lock(&fake.lock);
	fake.is_stopping = true;
	pthread_cond_signal(&fake.wake);
	pthread_mutex_unlock(&fake.lock);
}

const struct shell_ops *fake_shell_ops(void) {
	static const struct shell_ops ops = { .abi = SHELL_ABI,
		.run = fake_run,
		.submit = fake_submit,
		.interrupt = fake_interrupt,
		.stop = fake_stop };

	/* A stop that came when the last run was over is nothing to this one. */
	pthread_mutex_lock(&fake.lock);
	fake.is_stopping = false;
	pthread_mutex_unlock(&fake.lock);
	return &ops;
}

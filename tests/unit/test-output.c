/* SPDX-License-Identifier: MIT */
/* The pipes behind descriptors 1 and 2: whose output it is, whole files, bounded memory. */

#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/files.h"
#include "daemon/output.h"
#include "daemon/session.h"
#include "tests/lib/check.h"

/* Sessions that are there, as bits. */
static unsigned long live;

struct session *session_find(struct daemon *d, uint64_t id) {
	static struct session there;

	return live >> id & 1 ? &there : NULL;
}

/* A daemon's output, with its writing ends in `pipes` instead of on descriptors 1 and 2. */
struct fixture {
	struct daemon d;
	int pipes[2];
	char directory[32];
};

static void begin(struct fixture *f, size_t max_text, size_t max_file) {
	int saved[] = { dup(0), dup(1), dup(2) };

	fflush(stdout);
	*f = (struct fixture){ .directory = "/tmp/test-output.XXXXXX" };
	f->d.base = event_base_new();
	f->d.settings.max_text_chars = max_text;
	f->d.settings.max_output_file_bytes = max_file;
	if (!mkdtemp(f->directory))
		abort();
	setenv("IPYTHON_MCP_RUNTIME_DIR", f->directory, 1);
	f->d.rendezvous.directory = f->directory;
	f->d.rendezvous.name = (char *)"name";
	f->d.rendezvous.socket = answer_message("%s/name.sock", f->directory);
	files_new(&f->d);
	if (output_new(&f->d) < 0)
		abort();
	for (int i = 0; i < 2; i++)
		f->pipes[i] = dup(i + 1);
	for (int i = 0; i < 3; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	live = 0;
}

static void end(struct fixture *f) {
	auto_free char *files = answer_message("%s/files", f->directory);

	f->d.output = output_free(f->d.output);
	files_free(&f->d);
	for (int i = 0; i < 2; i++)
		close(f->pipes[i]);
	event_base_free(f->d.base);
	free(f->d.rendezvous.socket);
	rmdir(files);
	rmdir(f->directory);
}

static void say(struct fixture *f, int stream, const char *text) {
	if (write(f->pipes[stream], text, strlen(text)) != (ssize_t)strlen(text))
		abort();
}

/* Ends the call; owned by the caller. */
static char *end_call(struct fixture *f, int stream) {
	struct output_text texts[2];
	char *text;

	output_end(&f->d, &texts[0], &texts[1]);
	text = buf_take(&texts[stream].head, NULL);
	output_text_deinit(&texts[0]);
	output_text_deinit(&texts[1]);
	return text;
}

#define CHECK_CALL(f, stream, expected)                                                            \
	do {                                                                                       \
		auto_free char *got_ = end_call(f, stream);                                        \
		CHECK_STR(got_, expected);                                                         \
	} while (0)

static void test_output_belongs_to_the_call(void) {
	struct fixture f;

	begin(&f, 100, 0);
	live = 1 << 1;
	output_begin(&f.d, 1, true);
	say(&f, 0, "out\n");
	say(&f, 1, "err\n");
	CHECK_CALL(&f, 0, "out\n");
	output_begin(&f.d, 1, true);
	CHECK_CALL(&f, 0, "");
	end(&f);
}

static void test_output_between_calls_leads_the_same_sessions_next(void) {
	struct fixture f;

	begin(&f, 100, 0);
	live = 1 << 1 | 1 << 2;
	output_begin(&f.d, 1, true);
	CHECK_CALL(&f, 0, "");
	say(&f, 0, "late ");
	/* Another session's execute and a call without output come first. */
	output_begin(&f.d, 2, true);
	say(&f, 0, "two");
	CHECK_CALL(&f, 0, "two");
	output_begin(&f.d, 1, false);
	say(&f, 0, "discarded");
	CHECK_CALL(&f, 0, "");
	say(&f, 0, "later ");
	output_begin(&f.d, 1, true);
	say(&f, 0, "now");
	CHECK_CALL(&f, 0, "late later now");
	end(&f);
}

static void test_output_of_a_gone_session_goes_to_the_next(void) {
	struct fixture f;

	begin(&f, 100, 0);
	live = 1 << 1 | 1 << 2 | 1 << 3;
	/* What comes before any call belongs to nobody. */
	say(&f, 0, "early ");
	output_begin(&f.d, 1, true);
	say(&f, 0, "one");
	CHECK_CALL(&f, 0, "early one");
	say(&f, 0, "left ");
	output_begin(&f.d, 2, true);
	CHECK_CALL(&f, 0, "");
	say(&f, 0, "own ");
	live &= ~(1ul << 1);
	output_begin(&f.d, 2, true);
	CHECK_CALL(&f, 0, "left own ");
	end(&f);
}

static void test_output_snapshot_drops_the_rest(void) {
	struct fixture f;
	struct output_text out, err;

	begin(&f, 100, 0);
	live = 1 << 1;
	output_begin(&f.d, 1, true);
	say(&f, 0, "before");
	output_snapshot(&f.d, &out, &err);
	CHECK(out.head.len == 6);
	output_text_deinit(&out);
	output_text_deinit(&err);
	say(&f, 0, "after");
	CHECK_CALL(&f, 0, "");
	output_begin(&f.d, 1, true);
	CHECK_CALL(&f, 0, "");
	end(&f);
}

static size_t read_file(const char *path, char *text, size_t size) {
	auto_close int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size);

	return n < 0 ? 0 : (size_t)n;
}

static void test_output_saves_the_whole_uncleaned(void) {
	struct fixture f;
	struct output_text out, err;
	char text[64];
	struct stat st;

	begin(&f, 8, 1000);
	live = 1 << 1;
	output_begin(&f.d, 1, true);
	say(&f, 0, "\x1b[1m0123456789abcdef");
	output_end(&f.d, &out, &err);
	CHECK(out.omitted_chars == 8 && out.tail.len == 2 && !err.file);
	CHECK(out.file && stat(out.file, &st) == 0 && (st.st_mode & 0777) == 0600);
	CHECK(read_file(out.file, text, sizeof(text)) == 20 &&
		!memcmp(text, "\x1b[1m0123456789abcdef", 20));
	output_text_deinit(&out);
	output_text_deinit(&err);
	/* Nothing omitted, nothing saved. */
	output_begin(&f.d, 1, true);
	say(&f, 0, "short");
	output_end(&f.d, &out, &err);
	CHECK(!out.file && !out.omitted_chars);
	output_text_deinit(&out);
	output_text_deinit(&err);
	end(&f);
}

static void test_output_files_are_bounded(void) {
	struct fixture f;
	struct output_text out, err;
	char text[64], *first = NULL;
	struct stat st;

	begin(&f, 4, 10);
	live = 1 << 1;
	for (int i = 0; i < 65; i++) {
		output_begin(&f.d, 1, true);
		say(&f, 0, "0123456789abcdef");
		output_end(&f.d, &out, &err);
		CHECK(out.file && read_file(out.file, text, sizeof(text)) == 10);
		if (!first)
			first = strdup(out.file);
		else if (i < 64)
			CHECK(stat(first, &st) == 0);
		output_text_deinit(&out);
		output_text_deinit(&err);
	}
	CHECK(stat(first, &st) < 0);
	free(first);
	end(&f);
}

static void test_output_without_a_directory_costs_the_file_only(void) {
	struct fixture f;
	struct output_text out, err;

	begin(&f, 4, 1000);
	live = 1 << 1;
	files_free(&f.d);
	output_begin(&f.d, 1, true);
	say(&f, 0, "0123456789");
	output_end(&f.d, &out, &err);
	CHECK(out.omitted_chars == 6 && !out.file);
	output_text_deinit(&out);
	output_text_deinit(&err);
	end(&f);
}

static void *write_much(void *arg) {
	struct fixture *f = arg;
	char line[64];

	for (int i = 0; i < 300000; i++) {
		int len = snprintf(line, sizeof(line), "%d\n", i);

		if (write(f->pipes[0], line, (size_t)len) != len)
			abort();
	}
	say(f, 1, "done");
	return NULL;
}

static void test_output_of_any_length_is_counted(void) {
	struct fixture f;
	struct output_text out, err;
	const char *line;
	size_t len, n = 0;
	pthread_t thread;
	struct stat st;

	begin(&f, 1000, 1 << 26);
	live = 1 << 1;
	output_begin(&f.d, 1, true);
	pthread_create(&thread, NULL, write_much, &f);
	/* The last word comes on the other stream. */
	do
		event_base_loop(f.d.base, EVLOOP_ONCE);
	while (!output_last_line(&f.d, &line, &len) || len != 4 || memcmp(line, "done", 4));
	pthread_join(thread, NULL);
	output_end(&f.d, &out, &err);
	for (int i = 0; i < 300000; i++)
		n += (size_t)snprintf(NULL, 0, "%d\n", i);
	CHECK(out.head.len == 1000 && out.omitted_chars == n - 1000 && out.tail.len == 250);
	CHECK(!memcmp(out.tail.data + 243, "299999\n", 7));
	CHECK(out.file && stat(out.file, &st) == 0 && (size_t)st.st_size == n);
	output_text_deinit(&out);
	output_text_deinit(&err);
	end(&f);
}

int main(void) {
	RUN(test_output_belongs_to_the_call);
	RUN(test_output_between_calls_leads_the_same_sessions_next);
	RUN(test_output_of_a_gone_session_goes_to_the_next);
	RUN(test_output_snapshot_drops_the_rest);
	RUN(test_output_saves_the_whole_uncleaned);
	RUN(test_output_files_are_bounded);
	RUN(test_output_without_a_directory_costs_the_file_only);
	RUN(test_output_of_any_length_is_counted);
	return check_done();
}

/* SPDX-License-Identifier: MIT */
/*
 * Children of shell commands: who gets the signal, who does not, and who gets it later.
 */

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/python/children.h"
#include "tests/lib/check.h"

enum { LIMIT_MS = 20000 };

/* A child that waits for ever, and a child of its own that does, too. Their end closes the pipe. */
struct family {
	pid_t pid;
	int end;
};

static void sit(void) {
	for (;;)
		pause();
}

/* Starts them; returns when both are there. */
static struct family start(bool ignores_interrupts) {
	struct family f = { -1, -1 };
	int fds[2];
	char ready;

	if (pipe(fds) < 0)
		return f;
	f.pid = fork();
	if (f.pid == 0) {
		close(fds[0]);
		setpgid(0, 0);
		/* Whoever runs the tests in the background has made us ignore it. */
		signal(SIGINT, ignores_interrupts ? SIG_IGN : SIG_DFL);
		/* A failed case must not leave behind who holds the report's pipe. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (write(fds[1], "", 1) == 1)
				sit();
			_exit(1);
		}
		sit();
	}
	close(fds[1]);
	f.end = fds[0];
	if (read(f.end, &ready, 1) != 1)
		f.pid = -1;
	return f;
}

/* True when both have ended. */
static bool has_ended(const struct family *f, int limit_ms) {
	struct pollfd p = { .fd = f->end, .events = POLLIN };
	char c;

	return poll(&p, 1, limit_ms) == 1 && read(f->end, &c, 1) == 0;
}

static void stop(struct family *f) {
	kill(-f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	close(f->end);
}

static void test_children_signals_the_command_and_its_descendants(void) {
	struct family f;

	children_note_command();
	f = start(false);
	CHECK(f.pid > 0);
	children_signal(SIGINT);
	CHECK(has_ended(&f, LIMIT_MS));
	stop(&f);
}

static void test_children_spares_who_was_there_before(void) {
	struct family before = start(false), f;

	children_note_command();
	f = start(false);
	children_signal(SIGKILL);
	CHECK(has_ended(&f, LIMIT_MS));
	CHECK(!has_ended(&before, 0));
	stop(&f);

	children_forget();
	children_note_command();
	children_signal(SIGKILL);
	CHECK(!has_ended(&before, 0));
	stop(&before);
}

static void test_children_spares_what_the_user_started(void) {
	struct family f;

	children_note_command();
	children_note_own();
	f = start(false);
	children_signal(SIGKILL);
	CHECK(!has_ended(&f, 0));
	CHECK(waitpid(f.pid, NULL, WNOHANG) == 0);
	stop(&f);
}

static void test_children_ends_survivors_a_second_later(void) {
	struct family f;

	children_note_command();
	f = start(true);
	children_signal(SIGINT);
	kill(f.pid, SIGKILL); /* the parent goes, as subprocess.call() makes it */
	waitpid(f.pid, NULL, 0);
	children_doom();
	children_forget();
	CHECK(children_reap());
	CHECK(!has_ended(&f, 0));
	for (int waited = 0; children_reap(); waited += 50) {
		CHECK(waited < LIMIT_MS);
		poll(NULL, 0, 50);
	}
	CHECK(has_ended(&f, LIMIT_MS));
	close(f.end);
}

static void test_children_has_nothing_to_do_without_a_command(void) {
	children_forget();
	children_signal(SIGKILL);
	children_doom();
	CHECK(!children_reap());
}

int main(void) {
	RUN(test_children_signals_the_command_and_its_descendants);
	RUN(test_children_spares_who_was_there_before);
	RUN(test_children_spares_what_the_user_started);
	RUN(test_children_ends_survivors_a_second_later);
	RUN(test_children_has_nothing_to_do_without_a_command);
	return check_done();
}

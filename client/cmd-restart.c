/* SPDX-License-Identifier: MIT */
/*
 * ipython-mcp restart: an empty namespace, under the same settings.
 *
 * The new daemon gets what the old one was started with (environment, directory, --python, read
 * from /proc before the old one ends), not what happens to be set in this terminal: an agent's
 * settings must survive a restart by a person. The program is today's, so that a restart after an
 * upgrade runs the new version.
 *
 * Attached agents start a daemon themselves when theirs is gone, each with its own environment. The
 * start lock is held from before the end until the new daemon listens, so that ours is the one.
 * Where the user manager listens on the socket, connecting is what starts it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/attach.h"
#include "client/ending.h"
#include "client/show.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/wire.h"

enum {
	LOCK_LIMIT_MS = 10000,
	LOCK_TICK_MS = 50,
	READY_TICK_MS = 100,
	ANSWER_LIMIT_MS = 5000,
};

/* What a process was started with. The arrays' strings lie in the texts. */
struct origin {
	char *environment_text, *arguments_text, *directory;
	char **environment, **arguments;
};

static void origin_deinit(struct origin *o) {
	free(o->environment_text);
	free(o->arguments_text);
	free(o->directory);
	free(o->environment);
	free(o->arguments);
}

#define auto_origin __attribute__((cleanup(origin_deinit)))

/* Reads a file of /proc that holds strings with a NUL after each. False when it cannot be read. */
static bool read_strings(pid_t pid, const char *file, char **ret_text, char ***ret_strings) {
	auto_buf struct buf b = BUF_NULL;
	auto_free char *text = NULL, **strings = NULL;
	auto_close int fd = -1;
	char path[64];
	size_t len, n = 0;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	do {
		char *room = buf_reserve(&b, 65536);

		got = room ? read(fd, room, 65536) : -1;
		if (got > 0)
			b.len += (size_t)got;
	} while (got > 0);
	text = got == 0 ? buf_take(&b, &len) : NULL;
	if (!text)
		return false;
	for (size_t i = 0; i < len; i++)
		n += !text[i];
	strings = calloc(n + 2, sizeof(*strings));
	if (!strings)
		return false;
	n = 0;
	for (size_t i = 0; i < len; i += strlen(text + i) + 1)
		strings[n++] = text + i;
	*ret_text = take(text);
	*ret_strings = take(strings);
	return true;
}

static bool origin_read(struct origin *o, pid_t pid) {
	char link[32], path[4096];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	len = readlink(link, path, sizeof(path) - 1);
	if (len > 0) {
		path[len] = '\0';
		o->directory = strdup(path);
	}
	return o->directory &&
		read_strings(pid, "environ", &o->environment_text, &o->environment) &&
		read_strings(pid, "cmdline", &o->arguments_text, &o->arguments);
}

/* The value of "--python VALUE" or "--python=VALUE"; NULL when it was not given. */
static const char *origin_python(const struct origin *o) {
	for (char **a = o->arguments; *a; a++) {
		if (!strcmp(*a, "--python"))
			return a[1];
		if (!strncmp(*a, "--python=", strlen("--python=")))
			return *a + strlen("--python=");
	}
	return NULL;
}

/* This process becomes like the one that started the old daemon. */
static void origin_assume(const struct origin *o) {
	const char *home = getenv("HOME");

	environ = o->environment;
	/* It may be gone by now; a daemon without a directory would start all the same. */
	if (chdir(o->directory) < 0 && (!home || chdir(home) < 0))
		(void)!chdir("/");
}

/* Takes the start lock, waiting for whoever starts a daemon just now. Its descriptor, or -1. */
static int take_lock(const struct invocation *inv) {
	int64_t deadline = attach_now_ms() + LOCK_LIMIT_MS;
	int fd;

	while ((fd = rendezvous_lock_start(&inv->place)) == -EAGAIN && attach_now_ms() < deadline)
		usleep(LOCK_TICK_MS * 1000);
	if (fd < 0)
		admin_complain("cannot take %s, the lock for starting a daemon: %s",
			inv->place.start, strerror(-fd));
	return fd < 0 ? -1 : fd;
}

/* Waits until the daemon is ready. Returns the exit status. */
static int wait_until_ready(const struct invocation *inv, struct rpc *r) {
	for (;;) {
		auto_json json_t *answer = NULL;
		const json_t *result;
		const char *state, *line, *failure;

		if (rpc_call(r, WIRE_STATUS, json_object(), ANSWER_LIMIT_MS, &answer) !=
			RPC_MESSAGE) {
			show_progress_end();
			admin_complain("the new daemon does not answer; see `ipython-mcp logs %s`",
				inv->name);
			return EXIT_FAILURE;
		}
		result = json_object_get(answer, "result");
		state = json_string_value(json_object_get(result, "state"));
		line = json_string_value(json_object_get(result, "status_line"));
		if (state && !strcmp(state, "starting")) {
			show_progress("%s: %s", inv->name, line ? line : state);
			usleep(READY_TICK_MS * 1000);
			continue;
		}
		show_progress_end();
		failure = json_string_value(json_object_get(result, "failure"));
		if (failure) {
			admin_complain("%s", failure);
			return EXIT_FAILURE;
		}
		printf("%s: restarted, process %lld\n", inv->name,
			json_integer_value(json_object_get(result, "pid")));
		return EXIT_SUCCESS;
	}
}

static int restart_run(struct invocation *inv) {
	auto_ending struct ending e = ENDING_NULL;
	auto_origin struct origin origin = { 0 };
	auto_rpc struct rpc r = RPC_NULL;
	auto_free char *message = NULL;
	struct spawn_options options = { .name = inv->name, .socket = inv->socket };
	auto_close int lock = take_lock(inv);
	struct attach a;
	int found, status, fd;

	if (lock < 0)
		return EXIT_FAILURE;
	found = ending_begin(&e, inv);
	if (found < 0 && found != -ENOENT)
		return EXIT_FAILURE;
	if (!found) {
		bool is_known = e.pid > 0 && origin_read(&origin, e.pid);

		status = ending_run(&e, inv);
		if (status)
			return status;
		if (is_known) {
			options.python = origin_python(&origin);
			origin_assume(&origin);
		}
	}

	attach_init(&a, &inv->place, &options);
	a.lock = take_fd(&lock);
	fd = attach_wait(&a, &message);
	if (fd < 0) {
		admin_complain("%s", message ? message : "out of memory");
		return WIRE_EXIT_UNAVAILABLE;
	}
	rpc_adopt(&r, fd);
	return wait_until_ready(inv, &r);
}

const struct command cmd_restart = {
	.name = "restart",
	.arguments = "[--force] [NAME]",
	.help = "end the daemon and start it again as it was started",
	.takes_name = true,
	.takes_force = true,
	.run = restart_run,
};

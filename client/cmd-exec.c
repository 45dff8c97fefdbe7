/* SPDX-License-Identifier: MIT */
/*
 * ipython-mcp exec: a cell, as if typed into the shell.
 *
 * It is a session like any agent's and starts a daemon as an agent's shim does. Standard output and
 * error come back apart and go where they belong, whole when the daemon has saved them; then the
 * value of a last expression in IPython's own text form. Control-C interrupts the cell, not this
 * program: what the cell printed until then is still shown. While it waits for its turn, control-C
 * gives up.
 */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/admin.h"
#include "client/attach.h"
#include "client/show.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/wire.h"

enum {
	EXIT_INTERRUPTED = 128 + SIGINT,
	N_ATTEMPTS = 5,
};

static volatile sig_atomic_t n_interrupts;

static void on_interrupt(int sig) {
	n_interrupts++;
}

/* The code to run; owned by the caller, NULL after a complaint. */
static char *read_code(const struct invocation *inv) {
	auto_buf struct buf b = BUF_NULL;
	char *code;
	size_t len;

	if (strcmp(inv->code, "-"))
		return strdup(inv->code);
	for (;;) {
		char *room = buf_reserve(&b, 65536);
		ssize_t n = room ? read(STDIN_FILENO, room, 65536) : -1;

		if (n < 0) {
			admin_complain("cannot read standard input: %s",
				strerror(room ? errno : ENOMEM));
			return NULL;
		}
		if (!n)
			break;
		b.len += (size_t)n;
	}
	code = buf_take(&b, &len);
	if (code && strlen(code) != len) {
		admin_complain("standard input holds a NUL byte");
		free(code);
		return NULL;
	}
	return code;
}

/* Sends the attach line and waits for the daemon to take it. False when it is gone. */
static bool say_hello(struct rpc *r) {
	auto_free char *cwd = getcwd(NULL, 0);
	json_t *params = json_pack("{sssssbss*}", "profile", "text", "version", PACKAGE_VERSION,
		"acknowledge", 1, "cwd", cwd);

	if (rpc_notify(r, WIRE_ATTACH, params) < 0)
		return false;
	for (;;) {
		auto_json json_t *message = NULL;
		const char *method;

		if (rpc_receive(r, -1, &message) != RPC_MESSAGE)
			return false;
		method = json_string_value(json_object_get(message, "method"));
		if (method && !strcmp(method, WIRE_ATTACHED))
			return true;
	}
}

/*
 * Attaches, starting a daemon if need be. 0 or an exit status after a complaint. A daemon that is
 * just dying may still accept; nothing has been asked of it then, so another one will do.
 */
static int open_session(const struct invocation *inv, struct rpc *r) {
	const struct spawn_options options = { .name = inv->name, .socket = inv->socket };
	struct attach a;

	attach_init(&a, &inv->place, &options);
	for (int i = 0; i < N_ATTEMPTS; i++) {
		auto_free char *message = NULL;
		int fd = attach_wait(&a, &message);

		if (fd < 0) {
			admin_complain("%s", message ? message : "out of memory");
			return WIRE_EXIT_UNAVAILABLE;
		}
		rpc_adopt(r, fd);
		if (say_hello(r))
			return 0;
		rpc_deinit(r);
	}
	admin_complain("the daemon closes each connection; see `ipython-mcp logs %s`", inv->name);
	return WIRE_EXIT_UNAVAILABLE;
}

/* The request's params; NULL when the code is not UTF-8, or memory is short. */
static json_t *call_params(const char *code) {
	json_t *arguments = json_pack("{ss}", "code", code);

	if (!arguments)
		return NULL;
	/* Only somebody who looks is told how it goes. */
	if (!isatty(STDERR_FILENO))
		return json_pack("{ssso}", "name", "execute", "arguments", arguments);
	json_object_set_new(arguments, "progress_interval", json_integer(1));
	return json_pack("{sssos{si}}", "name", "execute", "arguments", arguments, "_meta",
		"progressToken", 1);
}

/* Shows a progress notification; other ones are of no concern. */
static void on_notification(const json_t *message) {
	const json_t *params = json_object_get(message, "params");
	const char *method = json_string_value(json_object_get(message, "method"));
	const char *text = json_string_value(json_object_get(params, "message"));

	if (method && text && !strcmp(method, "notifications/progress"))
		show_progress("%s", text);
}

/*
 * Control-C: the first one interrupts the cell if it runs. False when there is nothing to wait for:
 * it does not run yet, or this is not the first one. Then the call is cancelled.
 */
static bool interrupt(struct rpc *r, unsigned call, json_t **ret_answer) {
	unsigned id;
	bool is_running = false;

	if (n_interrupts == 1 &&
		rpc_request(r, WIRE_INTERRUPT, json_pack("{sb}", "own", 1), &id) == 0) {
		json_t *message = NULL;

		while (rpc_receive(r, 1000, &message) == RPC_MESSAGE) {
			bool is_answer = rpc_is_answer(message, id);

			is_running |= is_answer &&
				json_is_true(json_object_get(json_object_get(message, "result"),
					"interrupted"));
			/* The cell may have ended at this very moment. */
			if (rpc_is_answer(message, call)) {
				*ret_answer = message;
				return true;
			}
			json_decref(message);
			if (is_answer)
				break;
		}
	}
	if (!is_running)
		(void)rpc_notify(r, "notifications/cancelled",
			json_pack("{si}", "requestId", (int)call));
	return is_running;
}

/* Waits for the call's answer; NULL with *ret_status when there will be none. */
static json_t *wait_for_answer(struct rpc *r, unsigned call, int *ret_status) {
	int n_seen = 0;

	for (;;) {
		json_t *message = NULL;

		if (n_interrupts > n_seen) {
			n_seen = n_interrupts;
			if (!interrupt(r, call, &message)) {
				*ret_status = EXIT_INTERRUPTED;
				return NULL;
			}
			if (message)
				return message;
		}
		switch (rpc_receive(r, -1, &message)) {
		case RPC_MESSAGE:
			if (rpc_is_answer(message, call))
				return message;
			on_notification(message);
			json_decref(message);
			break;
		case RPC_GONE:
			show_progress_end();
			admin_complain(
				"the daemon ended while the code ran; its variables are gone");
			*ret_status = WIRE_EXIT_UNAVAILABLE;
			return NULL;
		default:
			break;
		}
	}
}

/* Copies a file that the daemon saved; false when that cannot be, and nothing was written. */
static bool copy_file(const char *path, FILE *to) {
	auto_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	char chunk[65536];
	ssize_t n;

	if (fd < 0)
		return false;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		fwrite(chunk, 1, (size_t)n, to);
	return true;
}

/* Prints one stream of the answer: whole when it was saved. */
static void print_stream(const json_t *result, const char *name, const char *file, FILE *to) {
	const json_t *text = json_object_get(result, name);

	if (!copy_file(json_string_value(json_object_get(result, file)), to) &&
		json_is_string(text))
		fwrite(json_string_value(text), 1, json_string_length(text), to);
}

/* Prints the answer. Returns the exit status. */
static int print_result(const json_t *result) {
	const json_t *text = json_object_get(result, "text"),
		     *images = json_object_get(result, "images"), *image;
	const char *out = json_string_value(json_object_get(result, "stdout"));
	bool is_error = json_is_true(json_object_get(result, "isError"));
	FILE *to = is_error ? stderr : stdout;
	size_t i;

	/* No notice: it tells what changed since a session's last call, and this is its first. */
	print_stream(result, "stdout", "stdoutFile", stdout);
	fflush(stdout);
	print_stream(result, "stderr", "stderrFile", stderr);
	if (json_string_length(text)) {
		/* What was printed last may have left the line open. */
		if (!is_error && out && *out && out[strlen(out) - 1] != '\n')
			putchar('\n');
		fwrite(json_string_value(text), 1, json_string_length(text), to);
		if (json_string_value(text)[json_string_length(text) - 1] != '\n')
			fputc('\n', to);
	}
	json_array_foreach((json_t *)images, i, image)
		printf("[image: %s]\n", json_string_value(image));
	if (fflush(stdout) == EOF) {
		admin_complain("cannot write to standard output: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	return is_error ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int exec_run(struct invocation *inv) {
	struct sigaction action = { .sa_handler = on_interrupt };
	auto_free char *code = read_code(inv);
	auto_rpc struct rpc r = RPC_NULL;
	auto_json json_t *answer = NULL;
	json_t *params;
	const char *error;
	sigset_t interrupt_set, wait_mask;
	unsigned call;
	int status;

	if (!code)
		return EXIT_FAILURE;
	status = open_session(inv, &r);
	if (status)
		return status;
	params = call_params(code);
	if (!params) {
		admin_complain("the code is not valid UTF-8");
		return EXIT_FAILURE;
	}

	/* Blocked but while waiting, so that none is missed between looking and waiting. */
	sigemptyset(&interrupt_set);
	sigaddset(&interrupt_set, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt_set, &wait_mask);
	sigaction(SIGINT, &action, NULL);
	sigdelset(&wait_mask, SIGINT);
	r.wait_mask = &wait_mask;

	if (rpc_request(&r, WIRE_CALL, params, &call) < 0) {
		admin_complain("the daemon closed the connection");
		return WIRE_EXIT_UNAVAILABLE;
	}
	answer = wait_for_answer(&r, call, &status);
	show_progress_end();
	if (!answer)
		return status;
	error = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
	if (error) {
		admin_complain("%s", error);
		return EXIT_FAILURE;
	}
	status = print_result(json_object_get(answer, "result"));
	return status && n_interrupts ? EXIT_INTERRUPTED : status;
}

const struct command cmd_exec = {
	.name = "exec",
	.arguments = "[NAME] CODE|-",
	.help = "run code, or what standard input holds, in the namespace",
	.takes_name = true,
	.takes_code = true,
	.run = exec_run,
};

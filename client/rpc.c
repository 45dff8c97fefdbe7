/* SPDX-License-Identifier: MIT */
/*
 * JSON-RPC for People's Commands
 *
 * A command sends a request and waits: the descriptor is the relay's non-blocking one, the waiting
 * is poll's. What comes meanwhile and is no answer (progress, notifications) is the caller's to
 * look at or to drop.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/attach.h"
#include "client/rpc.h"
#include "common/cleanup.h"

enum {
	MAX_LINE = 64 * 1024 * 1024,
	READ_BYTES = 64 * 1024,
};

void rpc_deinit(struct rpc *r) {
	if (r->fd >= 0)
		close(r->fd);
	frame_deinit(&r->in);
	*r = (struct rpc)RPC_NULL;
}

void rpc_adopt(struct rpc *r, int fd) {
	*r = (struct rpc)RPC_NULL;
	r->fd = fd;
	frame_init(&r->in, MAX_LINE);
}

int rpc_connect(struct rpc *r, const struct rendezvous *place) {
	int fd = rendezvous_connect(place);

	if (fd < 0)
		return fd;
	rpc_adopt(r, fd);
	return 0;
}

/* Waits until the descriptor is ready. 1, 0 after `timeout_ms`, or -1 when a signal came. */
static int wait_for(const struct rpc *r, short events, int timeout_ms) {
	struct pollfd p = { .fd = r->fd, .events = events };
	struct timespec t = { .tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000L };

	return ppoll(&p, 1, timeout_ms < 0 ? NULL : &t, r->wait_mask);
}

static int send_all(const struct rpc *r, const char *data, size_t len) {
	while (len) {
		ssize_t n = send(r->fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -EPIPE;
		if (n < 0) {
			(void)wait_for(r, POLLOUT, -1);
			continue;
		}
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Sends one message; it is taken, and NULL means that memory is short. */
static int send_message(const struct rpc *r, json_t *message) {
	auto_json json_t *given = message;
	auto_free char *text = given ? json_dumps(given, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return -ENOMEM;
	/* The terminating NUL's place holds the newline. */
	text[len] = '\n';
	return send_all(r, text, len + 1);
}

int rpc_notify(struct rpc *r, const char *method, json_t *params) {
	return send_message(r,
		json_pack("{ssssso}", "jsonrpc", "2.0", "method", method, "params", params));
}

int rpc_request(struct rpc *r, const char *method, json_t *params, unsigned *ret_id) {
	*ret_id = ++r->last_id;
	return send_message(r,
		json_pack("{sssissso}", "jsonrpc", "2.0", "id", (int)*ret_id, "method", method,
			"params", params));
}

enum rpc_state rpc_receive(struct rpc *r, int timeout_ms, json_t **ret_message) {
	int64_t deadline = attach_now_ms() + timeout_ms;

	for (;;) {
		int64_t left = deadline - attach_now_ms();
		char *line, *room;
		size_t len;
		ssize_t n;
		int ready;

		switch (frame_next(&r->in, &line, &len)) {
		case FRAME_LINE:
			*ret_message = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
			return *ret_message ? RPC_MESSAGE : RPC_GONE;
		case FRAME_TOO_LONG:
			return RPC_GONE;
		case FRAME_MORE:
			break;
		}
		ready = wait_for(r, POLLIN, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0);
		if (ready < 0)
			return RPC_INTERRUPTED;
		if (!ready)
			return RPC_TIMEOUT;
		room = frame_reserve(&r->in, READ_BYTES);
		n = room ? read(r->fd, room, READ_BYTES) : 0;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return RPC_GONE;
		frame_commit(&r->in, (size_t)n);
	}
}

bool rpc_is_answer(const json_t *message, unsigned id) {
	const json_t *given = json_object_get(message, "id");

	return json_is_integer(given) && json_integer_value(given) == (json_int_t)id &&
		!json_object_get(message, "method");
}

enum rpc_state rpc_call(struct rpc *r, const char *method, json_t *params, int timeout_ms,
	json_t **ret_answer) {
	int64_t deadline = attach_now_ms() + timeout_ms;
	unsigned id;

	if (rpc_request(r, method, params, &id) < 0)
		return RPC_GONE;
	for (;;) {
		int64_t left = deadline - attach_now_ms();
		json_t *message = NULL;
		enum rpc_state state =
			rpc_receive(r, timeout_ms < 0 ? -1 : left > 0 ? (int)left : 0, &message);

		if (state != RPC_MESSAGE)
			return state;
		if (rpc_is_answer(message, id)) {
			*ret_answer = message;
			return RPC_MESSAGE;
		}
		json_decref(message);
	}
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* JSON-RPC over a daemon's socket, for a program that does one thing at a time. */

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "common/frame.h"
#include "common/rendezvous.h"

struct rpc {
	int fd;
	unsigned last_id;
	struct frame in;
	const sigset_t *wait_mask; /* signals blocked while waiting; NULL: as at all times */
};

#define RPC_NULL { .fd = -1 }
#define auto_rpc __attribute__((cleanup(rpc_deinit)))
#define auto_json __attribute__((cleanup(rpc_cleanup_json)))

static inline void rpc_cleanup_json(json_t **json) {
	json_decref(*json);
}

void rpc_deinit(struct rpc *r);

/* Connects without starting a daemon. 0 or rendezvous_connect()'s errno. */
int rpc_connect(struct rpc *r, const struct rendezvous *place);

/* Goes on with a connected descriptor, which is taken. */
void rpc_adopt(struct rpc *r, int fd);

/*
 * Sends a notification or a request. `params` is taken; NULL means that memory was short for it. 0,
 * -ENOMEM, or -EPIPE when the daemon is gone.
 */
int rpc_notify(struct rpc *r, const char *method, json_t *params);
int rpc_request(struct rpc *r, const char *method, json_t *params, unsigned *ret_id);

enum rpc_state {
	RPC_MESSAGE,     /* *ret_message is the caller's */
	RPC_TIMEOUT,
	RPC_INTERRUPTED, /* a signal came while waiting */
	RPC_GONE,        /* the daemon closed the connection, or what it sends is no JSON */
};

/* Waits for the next message; `timeout_ms` -1: for ever. */
enum rpc_state rpc_receive(struct rpc *r, int timeout_ms, json_t **ret_message);

/* True when `message` answers request `id`. */
bool rpc_is_answer(const json_t *message, unsigned id);

/* Sends a request and waits for its answer, which may be an error. */
enum rpc_state rpc_call(struct rpc *r, const char *method, json_t *params, int timeout_ms,
	json_t **ret_answer);

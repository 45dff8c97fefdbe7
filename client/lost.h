/* SPDX-License-Identifier: MIT */
#pragma once

/* What the shim says in the daemon's stead to a request that no daemon will answer. */

#include <stdbool.h>

#include "common/buf.h"
#include "common/jscan.h"

/* Why there is no answer. */
enum lost_cause {
	LOST_DAEMON,   /* the daemon went away while the request was in flight */
	LOST_NO_START, /* there is no daemon and none can be started */
};

struct lost_request {
	struct jspan id; /* raw */
	bool is_call; /* tools/call: answered by a result that a model reads, never by an error */
	bool is_modern;
};

/*
 * Appends the answer, one object without a newline. `profile` is the session's ("full" "compact"
 * "text"; NULL: not known, taken for full); `reason` ends the message for LOST_NO_START.
 */
void lost_write(struct buf *out, const struct lost_request *request, enum lost_cause cause,
	const char *profile, const char *reason);

/*
 * Appends the refusal of a line of more than `limit` bytes, of which `head` is the beginning, as a
 * daemon would word it; a line with its newline.
 */
void lost_write_too_long(struct buf *out, const char *head, size_t len, size_t limit);

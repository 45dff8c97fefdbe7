/* SPDX-License-Identifier: MIT */
#pragma once

/* An answer as the members of a tools/call result, by profile, within MAX_REPLY_BYTES. */

#include "common/buf.h"
#include "daemon/answer.h"
#include "daemon/output.h"
#include "daemon/protocol.h"
#include "daemon/tools.h"

/*
 * Writes `"content":[…],"structuredContent":{…},"isError":…` into `b`. `tool` NULL: a registered one.
 * `out` and `err` are execute's streams, NULL for all others: stdout, stderr, their tails and files and
 * `truncated` are written here. `notice` may be NULL. What does not fit goes in the contract's order.
 * Consumes the contents of `a` as it needs, not `a` itself.
 */
void render_answer(struct daemon *d, struct buf *b, const struct stable_tool *tool,
	const char *name, enum profile profile, const struct revision *revision, struct answer *a,
	const struct output_text *out, const struct output_text *err, const char *notice);

/* SPDX-License-Identifier: MIT */
#pragma once

/* An answer as the members of a tools/call result, by profile, within MAX_REPLY_BYTES. */

#include "common/buf.h"
#include "daemon/answer.h"
#include "daemon/output.h"
#include "daemon/protocol.h"
#include "daemon/tools.h"

/* What a tools/call came to and for whom it is written. */
struct render {
	const struct settings *settings;
	const struct stable_tool *tool; /* NULL: a registered one */
	const char *name;               /* what tools_error_answer() wants, if it comes to that */
	enum profile profile;
	const struct revision *revision;
	struct answer *answer;
	struct output_text *out, *err; /* execute's streams, NULL for all others */
	const char *notice;            /* NULL: none */
	bool reads_json;               /* no text of profile text may be JSON but no object */
};

/*
 * Writes `"content":[…],"structuredContent":{…},"isError":…` into `b`, which is empty. For
 * execute, stdout, stderr, their tails and files and `truncated` are written here. What does not
 * fit into MAX_REPLY_BYTES goes in the contract's order; the answer and the streams are changed for
 * that. The strings stay the caller's.
 */
void render_answer(const struct render *r, struct buf *b);

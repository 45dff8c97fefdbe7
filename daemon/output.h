/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The pipes behind descriptors 1 and 2: read by the loop, cleaned as they stream, counted, kept as
 * a head, a tail and a file. Memory does not depend on how much is printed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "daemon/daemon.h"

/* What one stream of one call came to. Texts are cleaned UTF-8. */
struct output_text {
	struct buf head;
	struct buf tail; /* last part of what was omitted; empty when nothing was */
	uint64_t omitted_chars;
	char *file; /* the whole output, uncleaned; NULL: nothing omitted, or not saved */
};

void output_text_deinit(struct output_text *t);

/*
 * Makes the pipes and puts them on descriptors 1 and 2 (0 becomes /dev/null). The log must already
 * have its own duplicate of standard error, and the directory of saved files be known. 0 or a
 * negative errno.
 */
int output_new(struct daemon *d);
struct output *output_free(struct output *o);

/*
 * A call of `session` begins. With `keeps`, what came between calls leads its output when it is
 * this session's (or its owner is gone); without, what this call writes is discarded.
 */
void output_begin(struct daemon *d, uint64_t session, bool keeps);

/* The running call has ended: drains both pipes and gives what belongs to it. */
void output_end(struct daemon *d, struct output_text *ret_stdout, struct output_text *ret_stderr);

/* The same for a call that is answered while it still runs; what it writes later is dropped. */
void output_snapshot(struct daemon *d, struct output_text *ret_stdout,
	struct output_text *ret_stderr);

/*
 * The last line of output that came since the last call of this function, for progress and status;
 * borrowed until the next turn of the loop, not terminated. False when nothing is fresh.
 */
bool output_last_line(struct daemon *d, const char **ret_line, size_t *ret_len);

/* The same line, whether it is fresh or not, which stays as it is. */
bool output_peek_line(struct daemon *d, const char **ret_line, size_t *ret_len);

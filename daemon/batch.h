/* SPDX-License-Identifier: MIT */
#pragma once

/* Batches of 2025-03-26: an array of messages whose answers leave as an array. */

#include "daemon/protocol.h"

/* Handles a line that is an array, on a connection whose revision has batches. */
void batch_dispatch(struct session *s, struct jspan array);

/* One more answer is to come. */
void batch_expect(struct batch *b);

/*
 * An expected answer has come; `answer` NULL: there will be none. Sends the batch when it was the
 * last.
 */
void batch_settle(struct batch *b, const struct buf *answer);

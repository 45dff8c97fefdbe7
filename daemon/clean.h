/* SPDX-License-Identifier: MIT */
#pragma once

/* Bytes of a stream as the text that a terminal would leave on its screen. */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/collect.h"

/* Zeroed (but for is_raw) at the beginning of a stream. */
struct clean {
	bool is_raw; /* keep control characters; only make it valid UTF-8 */

	/* Where a terminal's parser stands. */
	enum {
		CLEAN_TEXT,
		CLEAN_ESCAPE,       /* after ESC */
		CLEAN_ESCAPE_INTER, /* after ESC and an intermediate: one more ends it */
		CLEAN_CSI,          /* after ESC [ */
		CLEAN_STRING,       /* in a DCS, SOS, PM or APC: until ST */
		CLEAN_OSC,          /* in an OSC: until ST or BEL, at most to the end of the line */
		CLEAN_STRING_ESCAPE, /* ESC in one of the two: perhaps ST */
	} state;
	bool has_cr; /* a \r came: what is written next overwrites the line */

	/* A UTF-8 sequence that is not whole yet. */
	unsigned char pending[4];
	unsigned char n_pending, n_needed;
	unsigned char lower, upper; /* bounds of its next byte */
};

/* Feeds bytes; what remains of them goes to `c`. */
void clean_feed(struct clean *s, struct collect *c, const char *bytes, size_t len);

/* The stream pauses: a cut UTF-8 sequence becomes U+FFFD, a cut control sequence is dropped. */
void clean_end(struct clean *s, struct collect *c);

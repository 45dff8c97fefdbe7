/* SPDX-License-Identifier: MIT */
#pragma once

/* Whole outputs, kept as they were written, for when an answer shows only a part of one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* Where outputs are saved, and which ones are there. */
struct spill_place {
	const char *directory; /* NULL: nothing is saved */
	size_t max_bytes;      /* of one output; 0: nothing is saved */
	size_t keep_bytes;     /* held in memory before a file is begun */
	uint64_t n_begun;      /* numbers the files */
	char *kept[64];        /* a ring; the oldest makes room */
	size_t n_kept;         /* ever */
};

/* One stream of one call. */
struct spill {
	struct buf memory; /* as long as there is no file */
	char *path;
	int fd;
	size_t n_bytes; /* in the file */
	bool has_file;
	bool is_lost;   /* memory or disk was short */
};

void spill_place_deinit(struct spill_place *place);

/* Appends bytes. `name` begins the name of the file. Trouble costs the file, nothing else. */
void spill_add(struct spill *s, struct spill_place *place, const char *name, const void *bytes,
	size_t len);

/* Appends all of `from`, which ends up empty. */
void spill_append(struct spill *s, struct spill_place *place, const char *name, struct spill *from);

/*
 * Ends with a file, whose path is returned (owned by the caller); NULL when it could not be kept.
 */
char *spill_keep(struct spill *s, struct spill_place *place, const char *name);

/* Ends without one. */
void spill_drop(struct spill *s);

/* SPDX-License-Identifier: MIT */
/*
 * Whole Outputs
 *
 * Most outputs are short and shown whole, and no file is ever made for them: the bytes wait in
 * memory until it is clear that something was left out, or until they are too many to hold. A
 * progress bar can write without end and show one line, so what is held is bounded by bytes, not by
 * what is shown.
 *
 * Files stay until the daemon ends or 64 newer ones have come. Loop thread only.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/spill.h"

void spill_place_deinit(struct spill_place *place) {
	for (size_t i = 0; i < ARRAY_LEN(place->kept); i++)
		free(place->kept[i]);
	*place = (struct spill_place){ 0 };
}

void spill_drop(struct spill *s) {
	if (s->has_file) {
		close(s->fd);
		(void)unlink(s->path);
		free(s->path);
	}
	buf_deinit(&s->memory);
	*s = (struct spill){ 0 };
}

static void lose(struct spill *s) {
	log_warning("An output is not saved: %m; ignoring");
	spill_drop(s);
	s->is_lost = true;
}

static void write_bytes(struct spill *s, const struct spill_place *place, const char *bytes,
	size_t len) {
	size_t room = place->max_bytes - s->n_bytes;

	if (len > room)
		len = room;
	while (len) {
		ssize_t n = write(s->fd, bytes, len);

		if (n < 0) {
			lose(s);
			return;
		}
		bytes += n;
		len -= (size_t)n;
		s->n_bytes += (size_t)n;
	}
}

/* From here on in a file. */
static void begin_file(struct spill *s, struct spill_place *place, const char *name) {
	if (asprintf(&s->path, "%s/%s-%llu.txt", place->directory, name,
		    (unsigned long long)++place->n_begun) < 0) {
		lose(s);
		return;
	}
	s->fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->fd < 0) {
		free(s->path);
		lose(s);
		return;
	}
	s->has_file = true;
	write_bytes(s, place, s->memory.data, s->memory.len);
	buf_deinit(&s->memory);
}

void spill_add(struct spill *s, struct spill_place *place, const char *name, const void *bytes,
	size_t len) {
	if (s->is_lost || !place->directory || !place->max_bytes)
		return;
	if (!s->has_file && s->memory.len + len <= place->keep_bytes) {
		buf_add(&s->memory, bytes, len);
		if (s->memory.has_failed)
			lose(s);
		return;
	}
	if (!s->has_file)
		begin_file(s, place, name);
	if (s->has_file)
		write_bytes(s, place, bytes, len);
}

void spill_append(struct spill *s, struct spill_place *place, const char *name,
	struct spill *from) {
	s->is_lost |= from->is_lost;
	if (from->has_file) {
		char bytes[16384];
		off_t at = 0;
		ssize_t n;

		while ((n = pread(from->fd, bytes, sizeof(bytes), at)) > 0) {
			spill_add(s, place, name, bytes, (size_t)n);
			at += n;
		}
		s->is_lost |= n < 0;
	} else {
		spill_add(s, place, name, from->memory.data, from->memory.len);
	}
	spill_drop(from);
}

char *spill_keep(struct spill *s, struct spill_place *place, const char *name) {
	char **slot = &place->kept[place->n_kept % ARRAY_LEN(place->kept)], *path;

	if (!s->has_file && s->memory.len && !s->is_lost)
		begin_file(s, place, name);
	path = s->has_file && !s->is_lost ? strdup(s->path) : NULL;
	if (!path) {
		spill_drop(s);
		return NULL;
	}
	if (*slot)
		(void)unlink(*slot);
	free(*slot);
	*slot = take(s->path);
	place->n_kept++;
	close(s->fd);
	*s = (struct spill){ 0 };
	return path;
}

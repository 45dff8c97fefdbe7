/* SPDX-License-Identifier: MIT */

/*
 * Files of Other Programs
 *
 * Whoever edits another program's settings must be able to say what changed and how to get back. So
 * a file is read whole, its old text is kept beside it, and the new one takes its place by rename:
 * at no moment is half a file there. A symlink (settings kept in a repository) stays one.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/editfile.h"
#include "common/cleanup.h"
#include "common/directories.h"

#define MAX_BYTES	(64 << 20)
#define CONTEXT_LINES	3
#define MAX_SHOWN_LINES 40

void editfile_deinit(struct editfile *f) {
	free(f->path);
	free(f->backup);
	free(f->text);
	*f = (struct editfile)EDITFILE_NULL;
}

/* Reads a whole file; the text gets a NUL behind it. 0 or a negative errno. */
static int read_file(const char *path, char **ret_text, size_t *ret_len, mode_t *ret_mode) {
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	auto_free char *text = NULL;
	size_t len = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EILSEQ;
	if (st.st_size > MAX_BYTES)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (len < (size_t)st.st_size) {
		ssize_t n = read(fd, text + len, (size_t)st.st_size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	if (memchr(text, '\0', len))
		return -EILSEQ;
	text[len] = '\0';
	*ret_text = take(text);
	*ret_len = len;
	*ret_mode = st.st_mode & 07777;
	return 0;
}

int editfile_load(struct editfile *f, const char *path, const char *tag) {
	struct stat st;
	int r;

	f->is_linked = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	f->path = realpath(path, NULL);
	if (!f->path && errno != ENOENT)
		return -errno;
	if (!f->path)
		f->path = strdup(path);
	if (!f->path || asprintf(&f->backup, "%s.before-%s", f->path, tag) < 0) {
		f->backup = NULL;
		return -ENOMEM;
	}
	r = read_file(f->path, &f->text, &f->len, &f->mode);
	f->is_there = r == 0;
	if (r != -ENOENT)
		return r;
	f->mode = 0600;
	f->text = strdup("");
	return f->text ? 0 : -ENOMEM;
}

static int write_all(int fd, const char *text, size_t len) {
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

static int replace_file(const char *path, mode_t mode, const char *text, size_t len) {
	auto_free char *temporary = NULL;
	auto_close int fd = -1;
	int r = directories_make_parents(path);

	if (r < 0)
		return r;
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_all(fd, text, len);
	if (r == 0 && (fchmod(fd, mode) < 0 || rename(temporary, path) < 0))
		r = -errno;
	if (r < 0)
		unlink(temporary);
	return r;
}

int editfile_keep(const struct editfile *f) {
	return f->is_there ? replace_file(f->backup, f->mode, f->text, f->len) : 0;
}

char *editfile_kept(const struct editfile *f, size_t *ret_len) {
	char *text;
	mode_t mode;

	return read_file(f->backup, &text, ret_len, &mode) == 0 ? text : NULL;
}

int editfile_save(const struct editfile *f, const char *text, size_t len) {
	return replace_file(f->path, f->mode, text, len);
}

/* The length of the line at `at`, newline included. */
static size_t line_len(const char *text, size_t len, size_t at) {
	const char *end = memchr(text + at, '\n', len - at);

	return end ? (size_t)(end - text) + 1 - at : len - at;
}

/* Where `n` lines before `at`, the start of a line, begin. */
static size_t lines_before(const char *text, size_t at, unsigned n) {
	while (at > 0 && n-- > 0)
		for (at--; at > 0 && text[at - 1] != '\n'; at--)
			;
	return at;
}

static void show_lines(char mark, const char *text, size_t from, size_t to) {
	unsigned n = 0;

	for (size_t at = from; at < to;) {
		size_t n_bytes = line_len(text, to, at);

		if (++n > MAX_SHOWN_LINES) {
			printf("%c ...\n", mark);
			return;
		}
		printf("%c%.*s", mark, (int)n_bytes, text + at);
		at += n_bytes;
		if (text[at - 1] != '\n')
			putchar('\n');
	}
}

void editfile_show(const struct editfile *f, const char *text, size_t len) {
	size_t head = 0, tail = 0, common = f->len < len ? f->len : len, start, end;

	/* Whole lines that both have in front, then behind. */
	for (size_t at = 0; at < common && f->text[at] == text[at]; at++)
		if (text[at] == '\n')
			head = at + 1;
	for (size_t n = 1; n <= common - head && f->text[f->len - n] == text[len - n]; n++)
		if (n == common - head || text[len - n - 1] == '\n')
			tail = n;
	if (tail && (f->len == tail ? 0 : f->text[f->len - tail - 1] != '\n'))
		tail = 0;

	printf("--- %s\n+++ %s\n", f->path, f->path);
	start = lines_before(text, head, CONTEXT_LINES);
	show_lines(' ', text, start, head);
	show_lines('-', f->text, head, f->len - tail);
	show_lines('+', text, head, len - tail);
	end = len - tail;
	for (unsigned n = 0; n < CONTEXT_LINES && end < len; n++)
		end += line_len(text, len, end);
	show_lines(' ', text, len - tail, end);
}

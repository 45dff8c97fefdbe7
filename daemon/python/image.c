/* SPDX-License-Identifier: MIT */
/*
 * Images
 *
 * Kinds and sizes are read from the headers: an agent's client may refuse a picture that is too
 * large or not of the type it is said to be, and then the whole answer. Saved copies are for
 * clients that show none; their number is bounded, because the directory usually lies in memory.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/answer.h"
#include "daemon/python/image.h"

enum { MAX_FILES = 64 };

enum { PNG, JPEG, GIF, WEBP };

static const struct {
	const char *mime, *extension;
} kinds[] = {
	[PNG] = { "image/png", "png" },
	[JPEG] = { "image/jpeg", "jpg" },
	[GIF] = { "image/gif", "gif" },
	[WEBP] = { "image/webp", "webp" },
};

const char *image_extension(const char *mime) {
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].mime, mime))
			return kinds[i].extension;
	return NULL;
}

const char *image_mime(const char *mime) {
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].mime, mime))
			return kinds[i].mime;
	return NULL;
}

static unsigned big_endian(const unsigned char *p, size_t n) {
	unsigned value = 0;

	while (n--)
		value = value << 8 | *p++;
	return value;
}

static unsigned little_endian(const unsigned char *p, size_t n) {
	unsigned value = 0;

	while (n--)
		value = value << 8 | p[n];
	return value;
}

/* The frame header stands behind any number of segments. */
static bool jpeg_size(
	const unsigned char *p, size_t len, unsigned *ret_width, unsigned *ret_height) {
	size_t at = 2;

	while (at + 9 < len && p[at] == 0xff) {
		unsigned marker = p[at + 1];

		if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
			marker != 0xcc) {
			*ret_height = big_endian(p + at + 5, 2);
			*ret_width = big_endian(p + at + 7, 2);
			return true;
		}
		at += marker == 0xff ? 1 : 2 + big_endian(p + at + 2, 2);
	}
	return false;
}

/* Three forms: lossy, lossless, extended. */
static bool webp_size(
	const unsigned char *p, size_t len, unsigned *ret_width, unsigned *ret_height) {
	if (len < 30)
		return false;
	if (!memcmp(p + 12, "VP8 ", 4)) {
		*ret_width = little_endian(p + 26, 2) & 0x3fff;
		*ret_height = little_endian(p + 28, 2) & 0x3fff;
		return true;
	}
	if (!memcmp(p + 12, "VP8L", 4)) {
		unsigned bits = little_endian(p + 21, 4);

		*ret_width = (bits & 0x3fff) + 1;
		*ret_height = (bits >> 14 & 0x3fff) + 1;
		return true;
	}
	if (!memcmp(p + 12, "VP8X", 4)) {
		*ret_width = little_endian(p + 24, 3) + 1;
		*ret_height = little_endian(p + 27, 3) + 1;
		return true;
	}
	return false;
}

const char *image_kind(const void *data, size_t len) {
	const unsigned char *p = data;

	if (len >= 8 && !memcmp(p, "\x89PNG\r\n\x1a\n", 8))
		return kinds[PNG].mime;
	if (len >= 3 && !memcmp(p, "\xff\xd8\xff", 3))
		return kinds[JPEG].mime;
	if (len >= 6 && (!memcmp(p, "GIF87a", 6) || !memcmp(p, "GIF89a", 6)))
		return kinds[GIF].mime;
	if (len >= 12 && !memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WEBP", 4))
		return kinds[WEBP].mime;
	return NULL;
}

bool image_size(const void *data, size_t len, unsigned *ret_width, unsigned *ret_height) {
	const char *kind = image_kind(data, len);
	const unsigned char *p = data;

	if (kind == kinds[PNG].mime && len >= 24) {
		*ret_width = big_endian(p + 16, 4);
		*ret_height = big_endian(p + 20, 4);
		return true;
	}
	if (kind == kinds[GIF].mime && len >= 10) {
		*ret_width = little_endian(p + 6, 2);
		*ret_height = little_endian(p + 8, 2);
		return true;
	}
	if (kind == kinds[JPEG].mime)
		return jpeg_size(p, len, ret_width, ret_height);
	return kind == kinds[WEBP].mime && webp_size(p, len, ret_width, ret_height);
}

char *image_base64(const void *data, size_t len, size_t *ret_len) {
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;
	char *text = malloc((len + 2) / 3 * 4 + 1);
	char *out = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t group = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
				 (left > 2 ? p[i + 2] : 0);

		*out++ = digits[group >> 18];
		*out++ = digits[group >> 12 & 63];
		*out++ = left > 1 ? digits[group >> 6 & 63] : '=';
		*out++ = left > 2 ? digits[group & 63] : '=';
	}
	*out = '\0';
	*ret_len = (size_t)(out - text);
	return text;
}

static bool write_all(int fd, const char *data, size_t len) {
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/* Opens a new file for the next number that is free; the path is the caller's. */
static int open_next(const char *directory, const char *extension, char **ret_path) {
	static unsigned number;
	int fd = -1;

	/* An earlier daemon of that name may have left some. */
	while (fd < 0) {
		auto_free char *path =
			answer_message("%s/image-%u.%s", directory, ++number, extension);

		fd = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
		if (fd < 0 && (!path || errno != EEXIST))
			return -1;
		if (fd >= 0)
			*ret_path = take(path);
	}
	return fd;
}

char *image_save(const char *directory, const char *extension, const void *data, size_t len) {
	static char *saved[MAX_FILES];
	static unsigned n_saved;
	char **slot = &saved[n_saved % MAX_FILES];
	auto_free char *path = NULL;
	auto_close int fd = open_next(directory, extension, &path);
	char *copy;

	if (fd < 0)
		return NULL;
	if (!write_all(fd, data, len)) {
		unlink(path);
		return NULL;
	}
	n_saved++;
	if (*slot)
		unlink(*slot);
	free(*slot);
	copy = strdup(path);
	*slot = take(path);
	return copy;
}

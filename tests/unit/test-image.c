/* SPDX-License-Identifier: MIT */
/*
 * Images: sizes by their headers, base64, the ring of saved files.
 */

#include <dirent.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/python/image.h"
#include "tests/lib/check.h"

static void check_size(const char *data, size_t len, unsigned width, unsigned height) {
	unsigned w = 0, h = 0;

	CHECK(image_size(data, len, &w, &h));
	CHECK(w == width && h == height);
	/* Cut anywhere, it must not be read beyond its end. */
	for (size_t n = 0; n < len; n++) {
		auto_free char *part = malloc(n ? n : 1);

		CHECK(part);
		memcpy(part, data, n);
		(void)image_size(part, n, &w, &h);
	}
}

#define SIZE(data, w, h) check_size(data, sizeof(data) - 1, w, h)

static void test_image_reads_png(void) {
	SIZE("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0", 640, 480);
}

static void test_image_reads_gif(void) {
	SIZE("GIF89a\x0a\x00\x14\x00", 10, 20);
}

static void test_image_reads_jpeg_behind_other_segments(void) {
	SIZE("\xff\xd8\xff\xe0\x00\x04zz\xff\xff\xdb\x00\x03z\xff\xc2\x00\x0b\x08\x00\x30\x01\x00"
	     "\x01",
		256, 48);
}

static void test_image_reads_webp(void) {
	SIZE("RIFF\x20\0\0\0WEBPVP8 \x10\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xf0\x00", 320, 240);
	SIZE("RIFF\x20\0\0\0WEBPVP8L\x10\0\0\0\x2f\x3f\xc1\x3b\x00\0\0\0\0\0", 320, 240);
	SIZE("RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\x01\x00\xef\x00\x00", 320, 240);
}

static void test_image_knows_no_other_kind(void) {
	unsigned w, h;

	CHECK(!image_size("BM", 2, &w, &h));
	CHECK(!image_size("", 0, &w, &h));
	CHECK(!image_kind("BM", 2));
	CHECK(!image_kind("\x89PNG", 4));
	CHECK_STR(image_kind("GIF87a", 6), "image/gif");
	CHECK_STR(image_kind("\xff\xd8\xff", 3), "image/jpeg");
	CHECK(!image_extension("image/svg+xml"));
	CHECK(!image_mime("application/pdf"));
	CHECK_STR(image_extension("image/jpeg"), "jpg");
}

static void test_image_encodes_base64(void) {
	static const char *const pairs[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "\xff\xfe\xfd", "//79" } };

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		size_t len;
		auto_free char *text = image_base64(pairs[i][0], strlen(pairs[i][0]), &len);

		CHECK_STR(text, pairs[i][1]);
		CHECK(len == strlen(text));
	}
}

static size_t count_files(const char *directory) {
	DIR *d = opendir(directory);
	struct dirent *entry;
	size_t n = 0;

	while (d && (entry = readdir(d)))
		n += entry->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static void remove_files(const char *directory) {
	DIR *d = opendir(directory);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
}

static void test_image_keeps_the_newest_files(void) {
	char directory[] = "/tmp/test-image-XXXXXX";
	auto_free char *first = NULL;
	auto_free char *last = NULL;

	CHECK(mkdtemp(directory));
	first = image_save(directory, "png", "x", 1);
	CHECK(first && access(first, R_OK) == 0);
	for (int i = 0; i < 100; i++) {
		free(last);
		last = image_save(directory, "png", "x", 1);
		CHECK(last && access(last, R_OK) == 0);
	}
	CHECK(access(first, F_OK) < 0);
	CHECK(count_files(directory) == 64);
	CHECK(!image_save("/nonexistent", "png", "x", 1));
	remove_files(directory);
	CHECK(rmdir(directory) == 0);
}

int main(void) {
	RUN(test_image_reads_png);
	RUN(test_image_reads_gif);
	RUN(test_image_reads_jpeg_behind_other_segments);
	RUN(test_image_reads_webp);
	RUN(test_image_knows_no_other_kind);
	RUN(test_image_encodes_base64);
	RUN(test_image_keeps_the_newest_files);
	return check_done();
}

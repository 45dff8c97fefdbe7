/* SPDX-License-Identifier: MIT */
/*
 * Showing
 *
 * Lines are cut only for a terminal; what goes to a pipe or a file is whole.
 */

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/show.h"
#include "common/cleanup.h"
#include "common/utf8.h"

enum { DEFAULT_WIDTH = 80 };

static bool has_progress;

char *show_duration(double seconds, char ret[SHOW_SIZE]) {
	unsigned long long s = seconds > 0 ? (unsigned long long)seconds : 0;

	if (s < 60)
		snprintf(ret, SHOW_SIZE, "%llu s", s);
	else if (s < 3600)
		snprintf(ret, SHOW_SIZE, "%llu min %llu s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(ret, SHOW_SIZE, "%llu h %llu min", s / 3600, s / 60 % 60);
	else
		snprintf(ret, SHOW_SIZE, "%llu d %llu h", s / 86400, s / 3600 % 24);
	return ret;
}

char *show_bytes(double bytes, char ret[SHOW_SIZE]) {
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t i = 0;

	while (bytes >= 1024 && i + 1 < ARRAY_LEN(units)) {
		bytes /= 1024;
		i++;
	}
	snprintf(ret, SHOW_SIZE, "%.*f %s", i ? 1 : 0, bytes, units[i]);
	return ret;
}

static size_t terminal_width(int fd) {
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return DEFAULT_WIDTH;
	return size.ws_col;
}

size_t show_width(void) {
	return isatty(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : SIZE_MAX;
}

/* Writes `text` as show_line() does, without the newline. */
static void put_cut(FILE *f, const char *text, size_t width) {
	size_t len = strlen(text), shown = len;
	bool is_cut = utf8_count(text, len) > width;

	if (is_cut)
		shown = utf8_prefix(text, len, width ? width - 1 : 0);
	for (size_t i = 0; i < shown; i++)
		fputc((unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i], f);
	if (is_cut)
		fputs("…", f);
}

void show_line(const char *text, size_t width) {
	put_cut(stdout, text, width);
	putchar('\n');
}

void show_progress(const char *format, ...) {
	auto_free char *text = NULL;
	va_list args;

	if (!isatty(STDERR_FILENO))
		return;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (!text)
		return;
	fputs("\r\033[K", stderr);
	/* One column less: a full line would wrap, and the next one not replace it. */
	put_cut(stderr, text, terminal_width(STDERR_FILENO) - 1);
	fflush(stderr);
	has_progress = true;
}

void show_progress_end(void) {
	if (has_progress)
		fputs("\r\033[K", stderr);
	has_progress = false;
}

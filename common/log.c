/* SPDX-License-Identifier: MIT */
/*
 * Log
 *
 * One line, one write(2): lines of several threads and of the Python half never mix. The level
 * prefix is systemd's <N>, which the journal turns into a priority; a person at a terminal gets the
 * program's name instead.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

static struct {
	int fd;
	const char *program;
	enum log_level level;
	int is_terminal;
} log_state = { .fd = STDERR_FILENO, .program = "ipython-mcp", .level = LOG_LEVEL_INFO };

static _Thread_local int log_has_left;

void log_leave(void) {
	log_has_left = 1;
}

void log_init(int fd, const char *program, enum log_level level) {
	log_state.fd = fd;
	log_state.program = program;
	log_state.level = level;
	log_state.is_terminal = isatty(fd);
}

void log_write(enum log_level level, const char *format, ...) {
	char line[2048];
	size_t start;
	int len;
	va_list args;

	if (level > log_state.level || log_has_left)
		return;

	len = log_state.is_terminal ? snprintf(line, sizeof(line), "%s: ", log_state.program)
				    : snprintf(line, sizeof(line), "<%d>", (int)level);
	start = (size_t)len;

	va_start(args, format);
	len = vsnprintf(line + start, sizeof(line) - start - 1, format, args);
	va_end(args);
	if (len < 0)
		return;

	/* One byte was kept back above for the newline. */
	len = (int)(start + strlen(line + start));
	for (int i = (int)start; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';

	/* Nobody is left to tell when even the log cannot be written. */
	(void)!write(log_state.fd, line, (size_t)len);
}

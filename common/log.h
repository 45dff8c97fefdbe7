/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The log: one line per event to one descriptor, with systemd's level prefixes unless the
 * descriptor is a terminal. Never code, arguments, results, names from the namespace or values of
 * variables. Any thread may log: a line is one write.
 */

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7
};

/*
 * Writes go to `fd`, which stays the caller's and must outlive all logging. `program` is put before
 * each line on a terminal. Messages above `level` are dropped. Before the call: stderr, INFO.
 */
void log_init(int fd, const char *program, enum log_level level);

/* printf-style; control characters are shown as '?', a long line is cut at 2,000 bytes. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* The calling thread writes no more lines: descriptors mean something else to it from now on. */
void log_leave(void);

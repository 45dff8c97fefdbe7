/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the service manager gave us in the environment. Without libsystemd, or without a manager,
 * all of it is absent and nothing is told to anybody.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Reads the manager's variables and removes them, so that user code's children do not take them for
 * their own. Before any other thread exists.
 */
void systemd_init(void);

/*
 * The listening socket that the manager passed: 1 with *ret_fd; 0 when none was passed; a negative
 * errno when what was passed is no listening Unix stream socket.
 */
int systemd_socket(int *ret_fd);

/* How often the watchdog wants to hear from us at least, in microseconds; 0: never. */
uint64_t systemd_watchdog_us(void);

/* Sends assignments ("READY=1", …), one for each line. Never waits. */
void systemd_notify(const char *state);

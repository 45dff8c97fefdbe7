/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lines both ways between standard input and output and a daemon, and from one daemon to the next.
 */

#include "client/hello.h"
#include "client/spawn.h"

struct relay_options {
	const struct rendezvous *place;
	const struct spawn_options *spawn; /* NULL: never start a daemon */
	struct hello hello;
	const char *failure; /* why there can be no daemon; requests are answered so. NULL: none */
	int failure_exit;    /* exit code then */
};

/* Runs until the client has gone. Returns the program's exit code. */
int relay_run(const struct relay_options *options);

/* Writes a line for people to standard error. */
void relay_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

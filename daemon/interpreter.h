/* SPDX-License-Identifier: MIT */
#pragma once

/* What a Python interpreter says of itself when it is asked. */

#include <stdbool.h>

struct interpreter {
	char *implementation; /* "cpython" */
	char *executable;     /* sys.executable */
	char *flags;          /* sys.abiflags */
	char *libpython;      /* path; empty: there is none */
	unsigned version;     /* as in struct shell_interpreter */
};

#define auto_interpreter __attribute__((cleanup(interpreter_deinit)))
void interpreter_deinit(struct interpreter *i);

/*
 * Writes *ret_message (owned by the caller): what is wrong, and which interpreter would do. Returns
 * -1, so that a refusal is one statement.
 */
int interpreter_refuse(char **ret_message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Runs it and waits for the answer, a minute at most. 0, or -1 and *ret_message. */
int interpreter_ask(const char *path, struct interpreter *ret_interpreter, char **ret_message);

/*
 * An answer from its text, which is taken apart: five lines, in the order of the struct but for the
 * version, a decimal number, which is the second. False when it is none, or memory is short.
 */
bool interpreter_parse(char *text, struct interpreter *ret_interpreter);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Integers of any size in decimal, whatever sys.set_int_max_str_digits() says. */

#include "common/buf.h"
#include "daemon/python/py.h"

/* More decimal digits than this are not written. */
enum { BIGINT_MAX_DIGITS = 100000 };

/*
 * Appends the decimal digits of an int (subclasses included, their methods are not called). Returns
 * 0; 1 when they are too many, and nothing is written; -1 with an exception.
 */
int bigint_write(PyObject *integer, struct buf *b);

/* The int of decimal digits with an optional minus sign. New reference, NULL with an exception. */
PyObject *bigint_read(const char *digits, size_t len);

/* Number of bits of an int's absolute value; -1 with an exception. */
long long bigint_bits(PyObject *integer);

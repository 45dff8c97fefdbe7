/* SPDX-License-Identifier: MIT */
/*
 * Integers of Any Size
 *
 * str() and int() refuse long decimals by a limit that belongs to the user. Here a number is halved
 * by powers of ten until the pieces fit a machine word, and put together in the same way. Python
 * thread.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/python/bigint.h"

enum {
	CHUNK = 18,        /* decimal digits that always fit a long long */
	MAX_POWERS = 14,   /* 10^(CHUNK * 2^13) has more digits than we ever write */
	EASY_DIGITS = 600, /* below the least limit that Python allows, 640 */
	/*
	 * floor(log2(10^BIGINT_MAX_DIGITS)): numbers of that many bits surely fit, of two more
	 * never.
	 */
	MAX_BITS = 332192,
};

long long bigint_bits(PyObject *integer) {
	auto_py *exact = PyNumber_Index(integer); /* a plain int: its own bit_length() */
	auto_py *bits = exact ? PyObject_CallMethod(exact, "bit_length", NULL) : NULL;

	return bits ? PyLong_AsLongLong(bits) : -1;
}

/*
 * Writes n, 0 <= n < powers[k]^2, or n < 10^CHUNK when k is -1. A leading piece drops its zeros,
 * any other is filled up to its width.
 */
static int write_piece(PyObject *n, PyObject **powers, int k, bool is_leading, struct buf *b) {
	auto_py *parts = NULL;
	borrowed PyObject *high, *low;
	int has_high;

	if (k < 0) {
		long long value = PyLong_AsLongLong(n);

		if (value == -1 && PyErr_Occurred())
			return -1;
		if (is_leading)
			buf_addf(b, "%lld", value);
		else
			buf_addf(b, "%0*lld", CHUNK, value);
		return 0;
	}

	parts = PyNumber_Divmod(n, powers[k]);
	if (!parts)
		return -1;
	high = PyTuple_GetItem(parts, 0);
	low = PyTuple_GetItem(parts, 1);
	has_high = PyObject_IsTrue(high);
	if (has_high < 0)
		return -1;
	if (has_high || !is_leading) {
		if (write_piece(high, powers, k - 1, is_leading, b) < 0)
			return -1;
		is_leading = false;
	}
	return write_piece(low, powers, k - 1, is_leading, b);
}

static int write_long(PyObject *magnitude, struct buf *b) {
	PyObject *powers[MAX_POWERS] = { NULL };
	int n = 0, r = -1;

	powers[0] = PyLong_FromLongLong(1000000000000000000LL);
	while (powers[n]) {
		int is_less = PyObject_RichCompareBool(magnitude, powers[n], Py_LT);

		if (is_less != 0 || n == MAX_POWERS - 1) {
			r = is_less < 0 ? -1 : write_piece(magnitude, powers, n - is_less, true, b);
			break;
		}
		powers[n + 1] = PyNumber_Multiply(powers[n], powers[n]);
		n++;
	}
	for (int i = 0; i < MAX_POWERS; i++)
		Py_XDECREF(powers[i]);
	return r;
}

int bigint_write(PyObject *integer, struct buf *b) {
	auto_py *exact = NULL;
	auto_py *magnitude = NULL;
	size_t start = b->len;
	long long value, bits;
	int overflow;

	value = PyLong_AsLongLongAndOverflow(integer, &overflow);
	if (!overflow) {
		if (value == -1 && PyErr_Occurred())
			return -1;
		buf_addf(b, "%lld", value);
		return 0;
	}

	bits = bigint_bits(integer);
	if (bits < 0)
		return -1;
	if (bits > MAX_BITS + 1)
		return 1;
	exact = PyNumber_Index(integer);
	magnitude = exact ? PyNumber_Absolute(exact) : NULL;
	if (!magnitude)
		return -1;
	if (overflow < 0)
		buf_add_char(b, '-');
	if (write_long(magnitude, b) < 0) {
		b->len = start;
		return -1;
	}
	if (b->len - start > BIGINT_MAX_DIGITS + (overflow < 0)) {
		b->len = start;
		return 1;
	}
	return 0;
}

/* Digits without a sign. */
static PyObject *read_digits(const char *digits, size_t len) {
	auto_py *high = NULL;
	auto_py *low = NULL;
	auto_py *ten = NULL;
	auto_py *places = NULL;
	auto_py *power = NULL;
	auto_py *shifted = NULL;

	if (len <= EASY_DIGITS) {
		char text[EASY_DIGITS + 1];

		memcpy(text, digits, len);
		text[len] = '\0';
		return PyLong_FromString(text, NULL, 10);
	}
	high = read_digits(digits, len - len / 2);
	low = high ? read_digits(digits + len - len / 2, len / 2) : NULL;
	ten = PyLong_FromLong(10);
	places = PyLong_FromSize_t(len / 2);
	power = low && ten && places ? PyNumber_Power(ten, places, Py_None) : NULL;
	shifted = power ? PyNumber_Multiply(high, power) : NULL;
	return shifted ? PyNumber_Add(shifted, low) : NULL;
}

PyObject *bigint_read(const char *digits, size_t len) {
	bool is_negative = len && digits[0] == '-';
	auto_py *magnitude = read_digits(digits + is_negative, len - is_negative);

	if (!magnitude)
		return NULL;
	return is_negative ? PyNumber_Negative(magnitude) : take(magnitude);
}

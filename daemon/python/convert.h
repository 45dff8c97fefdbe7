/* SPDX-License-Identifier: MIT */
#pragma once

/* Python values to JSON text and back, with the contract's bounds on depth and size. */

#include "common/buf.h"
#include "daemon/python/py.h"

enum convert_result {
	CONVERT_OK,
	CONVERT_NOT_JSON,    /* no JSON form: NaN, an infinity, a non-string key, another object */
	CONVERT_TOO_LARGE,   /* the text would exceed MAX_REPLY_BYTES; the rest was not looked at */
	CONVERT_INTERRUPTED, /* KeyboardInterrupt is set: the call is being interrupted */
	CONVERT_NO_MEMORY,
};

struct convert_flags {
	bool is_cut;           /* a depth marker, a bounded string or a shortened container */
	bool lost_items;       /* a container lost some */
	bool has_wide_integer; /* beyond +-(2^53 - 1) */
};

/* Keeps references to what conversions need of Python's library. -1 with an exception. */
int convert_init(void);

/*
 * Appends the JSON text of `value` by the contract's table (call_function, "Value -> JSON").
 * Exceptions of user code met on the way count as CONVERT_NOT_JSON and are cleared. Anything but
 * CONVERT_OK leaves `b` as it was. Flags may be NULL; they are only ever set, never cleared.
 */
enum convert_result convert_to_json(PyObject *value, struct buf *b, struct convert_flags *flags);

/*
 * The value of JSON text that jscan_check() passed: integers of any size exact. New reference, NULL
 * with an exception.
 */
PyObject *convert_from_json(const char *text, size_t len);

/*
 * repr(value), for an integer too long to print one that names its bits. New str, NULL with the
 * exception that user code raised.
 */
PyObject *convert_repr_str(PyObject *value);

/*
 * The same as bounded UTF-8, with "repr failed: TYPE" as the fallback when it raises anything.
 * Owned, NULL only when memory is short or the call is interrupted (an exception is set either
 * way). *ret_cut may be NULL.
 */
char *convert_repr(PyObject *value, size_t limit, bool *ret_cut);

/*
 * Appends the str `text` as a JSON string, cut to `limit` code points with … as the last.
 * *ret_cut (may be NULL) tells whether it was. 0, or -1 with an exception.
 */
int convert_add_str(struct buf *b, PyObject *text, size_t limit, bool *ret_cut);

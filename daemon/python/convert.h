/* SPDX-License-Identifier: MIT */
#pragma once

/* Python values to JSON text and back, with the contract's bounds on depth and size. */

#include "common/buf.h"
#include "daemon/python/py.h"

enum convert_result {
	CONVERT_OK,
	CONVERT_NOT_JSON,    /* no JSON form: NaN, an infinity, a non-string key, another object */
	CONVERT_INTERRUPTED, /* KeyboardInterrupt is set: the call is being interrupted */
	CONVERT_NO_MEMORY,
};

struct convert_flags {
	bool is_cut;           /* a depth marker, a bounded string or a shortened container */
	bool lost_items;       /* a container lost some */
	bool has_wide_integer; /* beyond +-(2^53 - 1) */
};

/*
 * Appends the JSON text of `value` by the contract's table (call_function, "Value -> JSON"). Exceptions
 * of user code met on the way count as CONVERT_NOT_JSON and are cleared. Flags may be NULL.
 */
enum convert_result convert_to_json(PyObject *value, struct buf *b, struct convert_flags *flags);

/*
 * The value of JSON text: integers of any size exact, duplicates impossible (checked before). New
 * reference, NULL with ValueError.
 */
PyObject *convert_from_json(const char *text, size_t len);

/*
 * repr(value) as bounded UTF-8 by max_repr_chars, with "repr failed: TYPE" as the fallback when it
 * raises anything. Owned, NULL only when memory is short or the call is interrupted
 * (KeyboardInterrupt set). An integer too long to print names its bits. *ret_cut may be NULL.
 */
char *convert_repr(PyObject *value, size_t limit, bool *ret_cut);

/* str of `text` as JSON string appended to `b`, bounded by `limit`; 0 or -1 with an exception. */
int convert_add_str(struct buf *b, PyObject *text, size_t limit, bool *ret_cut);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A callable's parameters as a registered tool takes them: schema, fingerprint, check and
 * conversion.
 */

#include "daemon/answer.h"
#include "daemon/python/py.h"

struct schema;

/* Keeps references to inspect's and hashlib's functions. -1 with an exception. */
int schema_init(void);

/*
 * Compiles the live signature of `callable`. 0; 1 when it is refused, with
 * unsupported_callable_kind or unsupported_signature in *ret_error; -1 with an exception that is
 * not the callable's fault.
 */
int schema_new(PyObject *callable, struct schema **ret_schema, struct answer_error *ret_error);

/* Accepts NULL, returns NULL. */
struct schema *schema_free(struct schema *s);

/* The JSON Schema as JSON text, and the lower-case hex SHA-256 of its canonical form. Borrowed. */
const char *schema_text(const struct schema *s);
const char *schema_fingerprint(const struct schema *s);

/*
 * False when something that the signature was made of has changed in place, so that only a new
 * schema_new() tells whether the schema is still the same. A fraction of a microsecond. Never
 * raises.
 */
bool schema_is_fresh(const struct schema *s);

/*
 * Checks a call's arguments (a dict of JSON values) and converts them into the annotated types. 0
 * and a new dict; 1 and a complaint in *ret_message that names the place and the rule; -1 with an
 * exception.
 */
int schema_arguments(const struct schema *s, PyObject *arguments, PyObject **ret_keywords,
	char **ret_message);

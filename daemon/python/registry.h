/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The registrations of this daemon, sorted by tool name. No user code runs between two calls of
 * these.
 */

#include <stdint.h>

#include "daemon/python/py.h"
#include "daemon/python/schema.h"

struct registration {
	char *tool_name;
	PyObject *name;        /* str, the backing name; interned, for a fast lookup */
	PyObject *object;      /* what was bound to it at the last check; NULL once stale */
	struct schema *schema; /* of `object`; NULL once stale */
	char *text;            /* of the published schema */
	char *fingerprint;
	char *description;
	bool description_is_cut;
	bool is_stale;
	char *stale_reason; /* NULL when memory was short */
};

/* How many there are, stale ones included. */
size_t registry_size(void);

/* The i-th one by tool name. */
struct registration *registry_row(size_t i);

/* By tool name, by backing name; NULL when there is none. */
struct registration *registry_find(const char *tool_name);
struct registration *registry_find_symbol(PyObject *name);

/* Grows by one when the list that clients see changes. */
uint64_t registry_revision(void);

/*
 * Registers what `name` is bound to now, in the place of an older registration of that tool name.
 * `schema` is taken. NULL with an exception.
 */
struct registration *registry_put(PyObject *name, const char *tool_name, PyObject *object,
	struct schema *schema, PyObject *description);

/*
 * Drops one. Returns whether it was listed; the caller says so once for all that it drops, to
 * registry_count_change().
 */
bool registry_drop(struct registration *r);
void registry_count_change(void);

/* Drops all. */
void registry_clear(void);

/* Checks one, or all, against their live bindings, and makes stale those that no longer hold. */
void registry_check_one(struct registration *r);
void registry_check(void);

/* Whether something changed since the last registry_set_clean(). */
bool registry_is_dirty(void);
void registry_set_clean(void);

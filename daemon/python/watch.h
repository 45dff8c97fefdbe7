/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a signature was made of, and whether it still is: a list of facts about objects that can be
 * checked in a fraction of a microsecond, so that inspect is asked again only when something moved.
 */

#include "daemon/python/py.h"

struct watch_fact;

struct watch {
	struct watch_fact *facts;
	size_t n_facts;
};

#define WATCH_NULL { 0 }

/* Forgets all facts and the references they hold. */
void watch_deinit(struct watch *w);

/*
 * Each notes a fact as it is now. 0, or -1 with an exception; an attribute that does not exist is a
 * fact, too, and so is a key that is not there.
 */

/* `owner` has that attribute. */
int watch_attribute(struct watch *w, PyObject *owner, const char *name);

/* A plain function has its code, defaults and annotations. */
int watch_function(struct watch *w, PyObject *function);

/* The dict holds that object under this key. */
int watch_item(struct watch *w, PyObject *dict, PyObject *key);

/* The dict holds just these keys and objects; anything else than a dict is no fact. */
int watch_content(struct watch *w, PyObject *dict);

/* A list, tuple or dict equals what it was; any other value is no fact. */
int watch_value(struct watch *w, PyObject *value);

/* True while all facts hold. Never raises. */
bool watch_holds(const struct watch *w);

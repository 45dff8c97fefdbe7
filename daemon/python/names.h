/* SPDX-License-Identifier: MIT */
#pragma once

/* Which names are visible, protected, dotted; resolving one without evaluating anything. */

#include "daemon/python/py.h"

/* The configured aliases parsed: once, after the shell is built. -1 with an exception. */
int names_init(void);

/*
 * IPython's own names beside those with an underscore: In Out get_ipython exit quit open. Ends with
 * NULL.
 */
extern const char *const names_of_shell[];

/* Visible: no leading underscore, none of In Out get_ipython exit quit open. */
bool names_is_visible(const char *name);

/* The visible names of the namespace, a sorted list of str. NULL with an exception. */
PyObject *names_visible(void);

/* Protected: a leading underscore, those six, or a configured preload alias. */
bool names_is_protected(const char *name);

/* A preload module and the name it is bound to. */
struct names_alias {
	char *module;
	char *alias;
};

/* The configured aliases, in the order of the setting; constant after names_init(). */
const struct names_alias *names_aliases(size_t *ret_n);

/* True when `name` has text and no blanks around it. */
bool names_is_trimmed(PyObject *name);

/*
 * Resolves a dotted name from the user namespace by attribute access. New reference. NULL without
 * an exception and *ret_code = "name_not_found" when a part is empty, starts with "__" or does not
 * exist; NULL with the exception set and *ret_code = "attribute_access_error" when an attribute
 * raised.
 */
PyObject *names_resolve(PyObject *dotted, const char **ret_code);

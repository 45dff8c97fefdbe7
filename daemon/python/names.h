/* SPDX-License-Identifier: MIT */
#pragma once

/* Which names are visible, protected, dotted; resolving one without evaluating anything. */

#include "daemon/python/py.h"

/* Visible: no leading underscore, none of In Out get_ipython exit quit open. */
bool names_is_visible(const char *name);

/* Protected: a leading underscore, those six, or a configured preload alias. */
bool names_is_protected(const char *name);

/*
 * Resolves a dotted name from the user namespace by attribute access. New reference. NULL without an
 * exception and *ret_code = "name_not_found" when a part is empty, starts with "__" or does not exist;
 * NULL with the exception set and *ret_code = "attribute_access_error" when an attribute raised.
 */
PyObject *names_resolve(const char *dotted, const char **ret_code);

/* The configured aliases (JSON settings) parsed: call once after the shell is built. -1 with exception. */
int names_init(void);

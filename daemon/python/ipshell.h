/* SPDX-License-Identifier: MIT */
#pragma once

/* The one InteractiveShell of the process. */

#include "daemon/python/py.h"

/*
 * Builds the shell: IPython's own configuration is not loaded unless settings name a profile, no
 * history database unless settings ask, no colours, no banner, no atexit output. Preloads and
 * aliases are environment.c's. -1 with *ret_message (owned by the caller).
 */
int ipshell_new(char **ret_message);

/* The shell, borrowed; NULL before ipshell_new(). */
PyObject *ipshell_get(void);

/* Its user namespace, a dict, borrowed. */
PyObject *ipshell_namespace(void);

/* IPython.__version__, borrowed UTF-8. */
const char *ipshell_ipython_version(void);

/* The directory IPython's package lies in, with a slash at its end: frames from there are not user
 * code. */
const char *ipshell_package_directory(void);

/* How many values `Out` keeps; 0: none, by configuration. */
long ipshell_cache_size(void);

/*
 * Puts a C function over each method of `object` that this version of IPython has. `methods` is
 * static and ends with an empty row. -1 with an exception.
 */
int ipshell_shadow(PyObject *object, PyMethodDef *methods);

/*
 * The exception that IPython last wanted to show (new reference), then forgets it; NULL: none.
 * *ret_swallowed: by a magic that then ended well, so that no result tells of it.
 */
PyObject *ipshell_take_shown(bool *ret_swallowed);

/*
 * While quiet, errors of formatters are not printed: the daemon looks at the value, not the user.
 */
void ipshell_set_quiet(bool quiet);

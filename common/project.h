/* SPDX-License-Identifier: MIT */
#pragma once

/* The project around a directory: what `--name auto` and the choice of an interpreter look for. */

/*
 * The nearest directory at or above `directory` that holds .git, pyproject.toml or .venv; NULL when
 * there is none, never "/" or the home directory. Owned by the caller.
 */
char *project_root(const char *directory);

/*
 * The tree that belongs to a client in `directory`: its project root, else the directory itself.
 * NULL for one that is or holds the home directory, where everything else lies, too. Owned by the
 * caller.
 */
char *project_tree(const char *directory);

/*
 * A namespace's name for the project root above `directory`: the root's last component as far as a
 * name may hold it, "-", and eight hex digits of a hash of the whole path. WIRE_DEFAULT_NAME
 * without a project. Owned by the caller, NULL when memory is short.
 */
char *project_name(const char *directory);

/*
 * The interpreter that a client's directory and environment ask for: `option` (--python), else
 * IPYTHON_MCP_PYTHON, else $VIRTUAL_ENV/bin/python, else bin/python of the nearest .venv at or
 * above `directory`. NULL when none of them is there: the one found at build time is meant. Owned
 * by the caller.
 */
char *project_python(const char *option, const char *directory);

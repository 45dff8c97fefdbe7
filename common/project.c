/* SPDX-License-Identifier: MIT */
/*
 * Project
 *
 * Walks from a client's directory to the root of the file system. Only looks for names, never into
 * files.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/project.h"
#include "common/wire.h"

static char *join(const char *directory, const char *name) {
	char *path;

	return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

static bool holds(const char *directory, const char *name) {
	auto_free char *path = join(directory, name);

	return path && access(path, F_OK) == 0;
}

/* Turns a path into its parent's, in place; false at the root. */
static bool to_parent(char *path) {
	char *slash = strrchr(path, '/');

	if (!slash || !path[1])
		return false;
	/* The root keeps its slash. */
	slash[slash == path] = '\0';
	return true;
}

static bool is_home(const char *path) {
	const char *home = getenv("HOME");
	struct stat ours, there;

	return home && stat(home, &ours) == 0 && stat(path, &there) == 0 &&
		ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

char *project_root(const char *directory) {
	static const char *const marks[] = { ".git", "pyproject.toml", ".venv" };
	auto_free char *path = strdup(directory);

	/*
	 * A home directory under version control is no project, and neither is a container's root.
	 */
	for (; path && path[0] == '/' && path[1]; to_parent(path))
		for (size_t i = 0; i < ARRAY_LEN(marks); i++)
			if (holds(path, marks[i]) && !is_home(path))
				return take(path);
	return NULL;
}

char *project_tree(const char *directory) {
	char *root = project_root(directory);
	const char *home = getenv("HOME");
	size_t len = strlen(directory);

	if (root || directory[0] != '/' || !directory[1] || is_home(directory))
		return root;
	if (home && !strncmp(home, directory, len) && home[len] == '/')
		return NULL;
	return strdup(directory);
}

char *project_name(const char *directory) {
	enum { HASH_LEN = 9, MAX_PLAIN = WIRE_MAX_NAME - HASH_LEN };
	auto_free char *root = project_root(directory);
	char plain[MAX_PLAIN + 1];
	uint32_t hash = 2166136261u;
	size_t n = 0;
	char *name;

	if (!root)
		return strdup(WIRE_DEFAULT_NAME);
	for (const char *c = root; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	for (const char *c = strrchr(root, '/') + 1; *c && n < MAX_PLAIN; c++) {
		bool is_alnum = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			(*c >= '0' && *c <= '9');

		if (is_alnum || (n && strchr("._-", *c)))
			plain[n++] = *c;
	}
	plain[n] = '\0';
	return asprintf(&name, "%s-%08x", n ? plain : "project", hash) < 0 ? NULL : name;
}

/* bin/python of an environment, NULL when there is none. */
static char *environment_python(const char *environment) {
	char *python = join(environment, "bin/python");

	if (python && access(python, X_OK) < 0) {
		free(python);
		return NULL;
	}
	return python;
}

char *project_python(const char *option, const char *directory) {
	const char *configured = getenv("IPYTHON_MCP_PYTHON"), *active = getenv("VIRTUAL_ENV");
	auto_free char *path = NULL;
	char *python = NULL;

	/* What was asked for by name is used, or its absence is an error; it is not passed over. */
	if (option && *option)
		return strdup(option);
	if (configured && *configured)
		return strdup(configured);
	if (active && *active)
		python = environment_python(active);
	if (python || !directory)
		return python;

	path = strdup(directory);
	for (; path && path[0] == '/' && path[1]; to_parent(path)) {
		auto_free char *environment = join(path, ".venv");

		python = environment ? environment_python(environment) : NULL;
		if (python)
			return python;
	}
	return NULL;
}

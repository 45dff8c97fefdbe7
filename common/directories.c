/* SPDX-License-Identifier: MIT */
/*
 * Directories
 *
 * What exists already is the caller's to check: a place for a socket asks for more than a place for
 * a configuration file.
 */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/directories.h"

int directories_make_parents(const char *path) {
	auto_free char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

int directories_make(const char *path) {
	int r = directories_make_parents(path);

	if (r < 0)
		return r;
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

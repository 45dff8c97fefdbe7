/* SPDX-License-Identifier: MIT */
/*
 * Saved Files
 *
 * Outputs and images are the user's data: nobody else may read them, and nobody may put a link
 * where they are written. So every directory on the way is ours and closed to others, or it is not
 * used. With IPYTHON_MCP_RUNTIME_DIR everything of a daemon lies below it; otherwise the files go
 * where temporary files go, because the runtime directory is memory.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/files.h"

/* Makes a directory that is ours alone, or finds it so. */
static bool make_private(const char *path) {
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		log_warning(
			"Outputs and images are not saved: cannot make the directory %s: %m", path);
		return false;
	}
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
		(st.st_mode & 077)) {
		log_warning("Outputs and images are not saved: %s must be a directory of yours "
			    "with mode 700; remove it or set TMPDIR",
			path);
		return false;
	}
	return true;
}

static void empty(const char *path) {
	DIR *directory = opendir(path);
	struct dirent *entry;

	if (!directory)
		return;
	while ((entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			(void)unlinkat(dirfd(directory), entry->d_name, 0);
	closedir(directory);
}

/*
 * The path in use. Static, because a Python thread that hangs in user code may still look at it
 * while the process ends.
 */
static char directory_in_use[PATH_MAX];

/* Where all namespaces' directories lie. */
static char *parent_directory(void) {
	const char *runtime = getenv("IPYTHON_MCP_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	char *path;
	int r;

	if (runtime && *runtime)
		r = asprintf(&path, "%s/files", runtime);
	else
		r = asprintf(&path, "%s/ipython-mcp-%u-files", tmp && *tmp == '/' ? tmp : "/tmp",
			(unsigned)geteuid());
	return r < 0 ? NULL : path;
}

/*
 * The name, and for a socket of its own (--socket) something that tells it from others of that
 * name.
 */
static char *own_directory(const struct rendezvous *r, const char *parent) {
	auto_free char *usual = NULL;
	uint32_t hash = 0x811c9dc5u;
	char *path;

	if (asprintf(&usual, "%s/%s.sock", r->directory, r->name) < 0) {
		usual = NULL;
		return NULL;
	}
	if (!strcmp(usual, r->socket))
		return asprintf(&path, "%s/%s", parent, r->name) < 0 ? NULL : path;
	for (const char *c = r->socket; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x01000193u;
	return asprintf(&path, "%s/%s-%08x", parent, r->name, hash) < 0 ? NULL : path;
}

void files_new(struct daemon *d) {
	auto_free char *parent = parent_directory();
	auto_free char *path = parent ? own_directory(&d->rendezvous, parent) : NULL;

	/* Absolute, because answers name it to clients elsewhere. */
	if (!path || !make_private(parent) || !make_private(path) ||
		!realpath(path, directory_in_use))
		return;
	empty(directory_in_use);
	d->files_directory = directory_in_use;
}

void files_free(struct daemon *d) {
	if (!d->files_directory)
		return;
	empty(d->files_directory);
	(void)rmdir(d->files_directory);
	d->files_directory = NULL;
}

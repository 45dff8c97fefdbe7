/* SPDX-License-Identifier: MIT */
/*
 * Removing a Tree
 *
 * By descriptors, so that a link that appears meanwhile is unlinked and never entered.
 */

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/python/tree.h"

/* Deeper trees than any package has: a bound for the stack. */
enum { MAX_DEPTH = 256 };

static bool remove_at(int directory, const char *name, unsigned depth);

/* Empties the directory `fd`, which is taken. */
static bool remove_entries(int fd, unsigned depth) {
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	bool is_empty = true;

	if (!dir) {
		close(fd);
		return false;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			is_empty &= remove_at(dirfd(dir), entry->d_name, depth);
	closedir(dir);
	return is_empty;
}

static bool remove_at(int directory, const char *name, unsigned depth) {
	struct stat st;
	int fd;

	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(directory, name, 0) == 0;
	if (depth == MAX_DEPTH)
		return false;

	/* Packages may hold read-only directories. */
	if ((st.st_mode & S_IRWXU) != S_IRWXU)
		(void)fchmodat(directory, name, S_IRWXU, 0);
	fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && remove_entries(fd, depth + 1) &&
		unlinkat(directory, name, AT_REMOVEDIR) == 0;
}

bool tree_remove(int directory, const char *name) {
	return remove_at(directory, name, 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * Directories of the Settings
 *
 * A link on the way to a directory could be turned elsewhere between two starts, or lead into the
 * tree that the workspace must stay out of, so the way is walked with descriptors and no component
 * may be one. The complaint names the component and, for a link, the path to write instead.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/answer.h"
#include "daemon/paths.h"

/* Why component `name` of `directory`, which ends `path` at `len`, could not be opened. */
static char *explain(const char *path, size_t len, int directory, const char *name, int err) {
	auto_free char *real = NULL;
	struct stat st;

	if (err == ENOENT)
		return answer_message("%.*s does not exist", (int)len, path);
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
		real = realpath(path, NULL);
		return answer_message("%.*s is a symbolic link, which is not followed here%s%s",
			(int)len, path, real ? "; the real path is " : "", real ? real : "");
	}
	if (err == ENOTDIR)
		return answer_message("%.*s is no directory", (int)len, path);
	return answer_message("%.*s cannot be opened: %s", (int)len, path, strerror(err));
}

/* As paths_open(); with `ret_errno`, tells why it failed instead of a complaint when that is
 * ENOENT. */
static int walk(const char *path, unsigned *ret_n_made, char **ret_complaint, int *ret_errno) {
	auto_close int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	*ret_complaint = NULL;
	for (const char *p = path; fd >= 0 && *p;) {
		char name[NAME_MAX + 1];
		size_t len;
		int next, err;

		p += strspn(p, "/");
		len = strcspn(p, "/");
		if (!len)
			break;
		if (len > NAME_MAX) {
			*ret_complaint =
				answer_message("%.*s… has a component longer than %d bytes",
					(int)(p - path), path, NAME_MAX);
			return -1;
		}
		memcpy(name, p, len);
		name[len] = '\0';
		p += len;

		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == ENOENT && ret_n_made) {
			/* Somebody else may make it at the same time; then it is not ours to
			 * remove. */
			if (mkdirat(fd, name, 0700) == 0)
				++*ret_n_made;
			else if (errno != EEXIST) {
				*ret_complaint = answer_message("%.*s cannot be created: %s",
					(int)(p - path), path, strerror(errno));
				return -1;
			}
			next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		if (next < 0) {
			err = errno;
			if (ret_errno && err == ENOENT)
				*ret_errno = err;
			else
				*ret_complaint = explain(path, (size_t)(p - path), fd, name, err);
			return -1;
		}
		close(fd);
		fd = next;
	}
	if (fd < 0)
		*ret_complaint = answer_message("/ cannot be opened: %s", strerror(errno));
	return take_fd(&fd);
}

int paths_open(const char *path, unsigned *ret_n_made, char **ret_complaint) {
	return walk(path, ret_n_made, ret_complaint, NULL);
}

void paths_unmake(const char *path, unsigned n_made) {
	auto_free char *p = strdup(path);

	/* The last components may be missing: making them is what failed. */
	while (p && n_made && *p) {
		if (rmdir(p) == 0)
			n_made--;
		else if (errno != ENOENT)
			return;
		*strrchr(p, '/') = '\0';
	}
}

char *paths_check_workspace(const char *path) {
	char *complaint = NULL;
	int err = 0;
	auto_close int fd = walk(path, NULL, &complaint, &err);

	return complaint;
}

char *paths_check_library(const char *path) {
	char *complaint = NULL;
	auto_close int fd = walk(path, NULL, &complaint, NULL);

	return complaint;
}

int paths_check(const struct settings *s, struct buf *faults) {
	int n = 0;

	if (s->environment_workspace) {
		auto_free char *complaint = paths_check_workspace(s->environment_workspace);

		if (complaint) {
			buf_addf(faults, "IPYTHON_MCP_ENVIRONMENT_WORKSPACE: %s\n", complaint);
			n++;
		}
	}
	for (char **path = s->library_paths; path && *path; path++) {
		auto_free char *complaint = paths_check_library(*path);

		if (complaint) {
			buf_addf(faults, "IPYTHON_MCP_LIBRARY_PATHS: %s\n", complaint);
			n++;
		}
	}
	return n;
}

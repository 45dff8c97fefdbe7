/* SPDX-License-Identifier: MIT */
/*
 * Working Directory
 *
 * Each session has its own, and all share one shell: so it is entered at the start of each call and
 * asked for at its end. The Python thread's directory is its own (daemon/fds.h), the event half
 * never sees it.
 */

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/answer.h"
#include "daemon/python/cwd.h"

static char *start;

void cwd_init(void) {
	start = cwd_tell();
}

static const char *home(void) {
	const char *directory = getenv("HOME");
	struct passwd *user;

	if (directory && directory[0] == '/')
		return directory;
	user = getpwuid(getuid());
	return user && user->pw_dir ? user->pw_dir : "/";
}

void cwd_enter(const char *directory, char **ret_note) {
	const char *asylum = home();
	int error;

	*ret_note = NULL;
	if (!directory)
		directory = start ? start : asylum;
	if (chdir(directory) == 0)
		return;
	error = errno;
	if (chdir(asylum) < 0) {
		asylum = "/";
		if (chdir(asylum) < 0)
			return;
	}
	*ret_note = answer_message("The working directory %s is gone (%s); now in %s.", directory,
		strerror(error), asylum);
}

char *cwd_tell(void) {
	static const char mark[] = " (deleted)";
	char *path = getcwd(NULL, 0);
	char link[PATH_MAX];
	ssize_t n;

	if (path)
		return path;
	/* Deleted: the next call goes there, finds it gone and says so. */
	n = readlink("/proc/thread-self/cwd", link, sizeof(link) - 1);
	if (n <= 0)
		return NULL;
	link[n] = '\0';
	if ((size_t)n > strlen(mark) && !strcmp(link + n - strlen(mark), mark))
		link[(size_t)n - strlen(mark)] = '\0';
	return strdup(link);
}

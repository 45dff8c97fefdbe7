/* SPDX-License-Identifier: MIT */
/*
 * The uv Environment
 *
 * An environment is made beside its place, under a name that begins with a dot (no environment's
 * does), and renamed into it when it is whole: what has the name is complete, whatever happens to
 * this process. Two daemons that make the same one both rename; the kernel lets one win, and the
 * loser verifies the winner's as if it had always been there.
 *
 * While it is made, its directory is locked, by uv as well, which goes on when we are killed. A
 * directory of that form without a lock was left by a daemon that is gone with its uv, and is swept
 * away by the next one that makes an environment of the same name.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "daemon/answer.h"
#include "daemon/paths.h"
#include "daemon/python/metadata.h"
#include "daemon/python/provision.h"
#include "daemon/python/redact.h"
#include "daemon/python/tree.h"
#include "daemon/python/uv.h"

enum {
	MAX_METADATA = 1 << 20,
	SUFFIX = 6, /* random letters of a temporary name */
	N_TRIES = 100,
};

/* An environment that is being made or verified. */
struct place {
	const struct provision *p;
	const char *name;
	unsigned minor;
	unsigned n_made;  /* components of the workspace that we made */
	int workspace;    /* O_PATH */
	char *temporary;  /* name in the workspace, NULL: none */
	int lock;         /* on the temporary directory */
	enum shell_phase phase;
	char *message;
};

/* What became of an attempt. */
enum outcome {
	DONE,
	FAILED,
	TAKEN, /* something has the name: whether it can be used is to be verified */
};

static void enter(struct place *place, enum shell_phase phase) {
	place->phase = phase;
	place->p->on_phase(place->p->ctx, phase);
}

/* Remembers why it failed. The message is taken; NULL means that memory is short. */
static enum outcome fail(struct place *place, char *message) {
	place->message = message;
	return FAILED;
}

static const char *workspace_path(const struct place *place) {
	return place->p->settings->environment_workspace;
}

/* "WORKSPACE/NAME", for messages and for uv. Owned by the caller. */
static char *path_of(const struct place *place, const char *name) {
	return answer_message("%s/%s", workspace_path(place), name);
}

static enum outcome fail_errno(struct place *place, const char *what, const char *name, int err) {
	return fail(place,
		answer_message("%s/%s cannot be %s: %s", workspace_path(place), name, what,
			strerror(err)));
}

/* Opens "lib/python3.X/site-packages" of an environment, none of it a link. -1 with errno. */
static int open_site_packages(int environment, unsigned minor) {
	char python[16];
	const char *const parts[] = { "lib", python, "site-packages" };
	auto_close int fd = dup(environment);

	snprintf(python, sizeof(python), "python3.%u", minor);
	for (size_t i = 0; fd >= 0 && i < ARRAY_LEN(parts); i++) {
		int next = openat(fd, parts[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		close(fd);
		fd = next;
	}
	return take_fd(&fd);
}

/* Reads the metadata file of an environment; NULL with errno when there is none. */
static char *read_metadata(int environment, size_t *ret_len) {
	auto_close int fd =
		openat(environment, METADATA_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_buf struct buf b = BUF_NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_METADATA) {
		errno = EINVAL;
		return NULL;
	}
	for (;;) {
		char *room = buf_reserve(&b, 4096);
		ssize_t n = room && b.len <= MAX_METADATA ? read(fd, room, 4096) : 0;

		if (n < 0)
			return NULL;
		if (!n)
			break;
		b.len += (size_t)n;
	}
	return buf_take(&b, ret_len);
}

/* Verifies the environment that has the name. Leaves it as it is in any case. */
static enum outcome reuse(struct place *place) {
	const struct settings *s = place->p->settings;
	auto_free char *path = path_of(place, place->name), *text = NULL;
	auto_close int environment = -1, packages = -1;
	const char *complaint = NULL;
	size_t len;

	enter(place, SHELL_REUSE_VALIDATION);
	environment = openat(place->workspace, place->name,
		O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (environment < 0)
		return fail(place,
			answer_message("%s is no directory; remove it or choose another "
				       "IPYTHON_MCP_ACTIVE_ENVIRONMENT",
				path ? path : ""));
	text = read_metadata(environment, &len);
	if (!text)
		return fail(place,
			answer_message("%s is not one of our environments: %s is missing or cannot "
				       "be read; remove it or choose another "
				       "IPYTHON_MCP_ACTIVE_ENVIRONMENT",
				path ? path : "", METADATA_FILE));
	if (!metadata_matches(text, len, place->minor, s->environment_requirements, &complaint))
		return fail(place,
			complaint ? answer_message("%s cannot be reused: %s; remove it or choose "
						   "another IPYTHON_MCP_ACTIVE_ENVIRONMENT",
					    path ? path : "", complaint)
				  : NULL);
	packages = open_site_packages(environment, place->minor);
	if (packages < 0)
		return fail(place,
			answer_message("%s cannot be reused: its lib/python3.%u/site-packages is "
				       "missing or reached through a link; remove it",
				path ? path : "", place->minor));
	return DONE;
}

/* Takes the lock of a temporary directory if nobody holds it. Its descriptor, or -1. */
static int lock_directory(int workspace, const char *name) {
	auto_close int fd =
		openat(workspace, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat ours, named;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -1;
	/* It may have been removed or renamed before we had the lock. */
	if (fstat(fd, &ours) < 0 || fstatat(workspace, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		ours.st_ino != named.st_ino || ours.st_dev != named.st_dev)
		return -1;
	return take_fd(&fd);
}

/* ".NAME." and six letters or digits. */
static bool is_temporary(const struct place *place, const char *file) {
	size_t len = strlen(place->name);

	return file[0] == '.' && !strncmp(file + 1, place->name, len) && file[len + 1] == '.' &&
		strlen(file + len + 2) == SUFFIX &&
		strspn(file + len + 2, "0123456789abcdef") == SUFFIX;
}

/* Removes what killed daemons left. Failures are of no concern. */
static void sweep(struct place *place) {
	int fd = openat(place->workspace, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		auto_close int lock = is_temporary(place, entry->d_name)
			? lock_directory(place->workspace, entry->d_name)
			: -1;

		if (lock >= 0)
			(void)tree_remove(place->workspace, entry->d_name);
	}
	closedir(dir);
}

/* Makes and locks the temporary directory. */
static enum outcome make_temporary(struct place *place) {
	for (int i = 0; i < N_TRIES; i++) {
		unsigned random;

		if (getentropy(&random, sizeof(random)) < 0)
			return fail(place,
				answer_message("no random numbers: %s", strerror(errno)));
		free(place->temporary);
		place->temporary =
			answer_message(".%s.%0*x", place->name, SUFFIX, random & 0xffffff);
		if (!place->temporary)
			return fail(place, NULL);
		if (mkdirat(place->workspace, place->temporary, 0700) < 0) {
			int err = errno;

			if (err == EEXIST)
				continue;
			fail_errno(place, "created", place->temporary, err);
			free(take(place->temporary));
			return FAILED;
		}
		/* Not when another daemon swept it away before it had its lock. */
		place->lock = lock_directory(place->workspace, place->temporary);
		if (place->lock >= 0)
			return DONE;
	}
	free(take(place->temporary));
	return fail(place, answer_message("%s holds no free name for a temporary directory",
				   workspace_path(place)));
}

/* Runs one step of uv; `what` names it in messages. */
static enum outcome run_step(struct place *place, const char *what, const char *const *argv,
	const char *input) {
	const struct settings *s = place->p->settings;
	struct uv_step step = {
		.argv = argv,
		.input = input,
		.directory = workspace_path(place),
		.keep_fd = place->lock,
		.timeout_s = s->environment_setup_timeout_s,
		/* A code point has at most four bytes; cut off below: what may be part of a
		 * secret. */
		.max_output = s->max_text_chars * 4 + redact_longest(s),
	};
	auto_buf struct buf output = BUF_NULL;
	auto_free char *words = NULL;
	bool is_cut;
	int status;
	enum uv_result result = uv_run(&step, &output, &is_cut, &status);

	if (result == UV_DONE)
		return DONE;
	if (is_cut && output.len > s->max_text_chars * 4)
		output.len = s->max_text_chars * 4;
	words = buf_take(&output, NULL);
	if (!words)
		return fail(place, NULL);
	switch (result) {
	case UV_TIMED_OUT:
		return fail(place,
			answer_message("%s did not end within %g seconds "
				       "(IPYTHON_MCP_ENVIRONMENT_SETUP_TIMEOUT_SECONDS)\n%s",
				what, step.timeout_s, words));
	case UV_CANCELLED:
		return fail(place, answer_message("%s was ended because the daemon stops", what));
	case UV_NOT_STARTED:
		return fail(place,
			answer_message("%s could not be started: %s", what, strerror(status)));
	default:
		if (WIFSIGNALED(status))
			return fail(place,
				answer_message("%s was ended by signal %d\n%s", what,
					WTERMSIG(status), words));
		return fail(place,
			answer_message("%s failed with status %d\n%s", what, WEXITSTATUS(status),
				words));
	}
}

/* The configured requirements, one a line; NULL when memory is short. */
static char *requirements_lines(const char *requirements, size_t *ret_n) {
	json_t *array = json_loads(requirements, 0, NULL);
	auto_buf struct buf b = BUF_NULL;
	size_t i;
	const json_t *item;

	if (!array)
		return NULL;
	*ret_n = json_array_size(array);
	json_array_foreach(array, i, item)
		buf_addf(&b, "%s\n", json_string_value(item));
	json_decref(array);
	return buf_take(&b, NULL);
}

/* Writes the metadata file into the temporary directory. */
static enum outcome write_metadata(struct place *place) {
	auto_free char *text =
		metadata_write(place->minor, place->p->settings->environment_requirements);
	auto_close int fd = -1;
	size_t len;

	if (!text)
		return fail(place, NULL);
	len = strlen(text);
	fd = openat(place->lock, METADATA_FILE,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	/* On disk before the rename: a file that a crash emptied would make the environment
	 * useless. */
	if (fd < 0 || write(fd, text, len) != (ssize_t)len || fsync(fd) < 0)
		return fail_errno(place, "written", METADATA_FILE, errno);
	return DONE;
}

/* Gives the finished environment its name; never replaces one. */
static enum outcome rename_into_place(struct place *place) {
	int err;

	if (renameat2(place->workspace, place->temporary, place->workspace, place->name,
		    RENAME_NOREPLACE) == 0) {
		free(take(place->temporary));
		return DONE;
	}
	err = errno;
	if (err == EINVAL || err == ENOSYS) {
		/* A file system without that: a plain rename replaces nothing but an empty
		 * directory. */
		err = renameat(place->workspace, place->temporary, place->workspace, place->name)
			? errno
			: 0;
		if (!err) {
			free(take(place->temporary));
			return DONE;
		}
	}
	if (err == EEXIST || err == ENOTEMPTY || err == ENOTDIR)
		return TAKEN;
	return fail_errno(place, "created", place->name, err);
}

static enum outcome create(struct place *place) {
	const struct provision *p = place->p;
	auto_free char *uv = NULL, *path = NULL, *lines = NULL;
	enum outcome outcome;
	size_t n;

	enter(place, SHELL_PROVISIONING);
	uv = uv_find();
	if (!uv)
		return fail(place,
			answer_message(
				"uv, which creates %s/%s, is not on PATH; install it "
				"(pip install uv) or unset IPYTHON_MCP_ENVIRONMENT_WORKSPACE "
				"and IPYTHON_MCP_ACTIVE_ENVIRONMENT",
				workspace_path(place), place->name));
	sweep(place);
	outcome = make_temporary(place);
	if (outcome != DONE)
		return outcome;
	path = path_of(place, place->temporary);
	lines = requirements_lines(p->settings->environment_requirements, &n);
	if (!path || !lines)
		return fail(place, NULL);

	/* Relocatable: the scripts that packages install must work under the final name. */
	outcome = run_step(place, "uv venv",
		(const char *const[]){ uv, "venv", "--no-project", "--python",
			p->interpreter->executable, "--relocatable", "--no-progress", "--color",
			"never", path, NULL },
		NULL);
	if (outcome == DONE && n) {
		enter(place, SHELL_DEPENDENCY_INSTALL);
		outcome = run_step(place, "uv pip install",
			(const char *const[]){ uv, "pip", "install", "--python", path,
				"--no-progress", "--color", "never", "--requirements", "-", NULL },
			lines);
	}
	if (outcome == DONE)
		outcome = write_metadata(place);
	return outcome == DONE ? rename_into_place(place) : outcome;
}

/* Refuses a link in the environment's place. *ret_exists: something is there. */
static enum outcome look(struct place *place, bool *ret_exists) {
	struct stat st;

	*ret_exists = fstatat(place->workspace, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!*ret_exists && errno != ENOENT)
		return fail_errno(place, "examined", place->name, errno);
	if (*ret_exists && S_ISLNK(st.st_mode))
		return fail(place,
			answer_message("%s/%s is a symbolic link, which no environment may be; "
				       "remove it or choose another IPYTHON_MCP_ACTIVE_ENVIRONMENT",
				workspace_path(place), place->name));
	return DONE;
}

static enum outcome run(struct place *place) {
	enum outcome outcome;
	bool exists = false;

	enter(place, SHELL_PATH_VALIDATION);
	place->workspace = paths_open(workspace_path(place), &place->n_made, &place->message);
	if (place->workspace < 0)
		return FAILED;
	outcome = look(place, &exists);
	if (outcome != DONE)
		return outcome;
	outcome = exists ? TAKEN : create(place);
	return outcome == TAKEN ? reuse(place) : outcome;
}

bool provision_run(const struct provision *p, char **ret_site_packages, enum shell_phase *ret_phase,
	char **ret_message) {
	struct place place = {
		.p = p,
		.name = p->settings->active_environment,
		.minor = p->interpreter->version >> 16 & 0xff,
		.workspace = -1,
		.lock = -1,
	};
	enum outcome outcome = run(&place);

	if (place.temporary) {
		(void)tree_remove(place.workspace, place.temporary);
		free(place.temporary);
	}
	if (place.lock >= 0)
		close(place.lock);
	if (place.workspace >= 0)
		close(place.workspace);
	if (outcome == DONE) {
		*ret_site_packages = answer_message("%s/%s/lib/python3.%u/site-packages",
			p->settings->environment_workspace, place.name, place.minor);
		if (*ret_site_packages)
			return true;
	} else {
		paths_unmake(p->settings->environment_workspace, place.n_made);
	}
	*ret_phase = place.phase;
	*ret_message = place.message;
	return false;
}

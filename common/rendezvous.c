/* SPDX-License-Identifier: MIT */
/*
 * Rendezvous
 *
 * The path must come out the same for a client in a login session and for one to which an agent
 * gave little more than HOME and PATH. So what the kernel knows (our uid, whose /run/user/UID is)
 * comes before what the environment says.
 *
 * Whoever can write to the directory can put a socket of their own there. So it must be ours alone,
 * and is looked at with lstat(): /tmp/ipython-mcp-UID may have been made by anybody. Even so both
 * ends ask the kernel who the peer is before a byte is exchanged.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/directories.h"
#include "common/err.h"
#include "common/rendezvous.h"
#include "common/wire.h"

#define SUFFIX ".sock"

enum { LOCK_RETRY_MS = 5 };

void rendezvous_deinit(struct rendezvous *r) {
	free(r->directory);
	free(r->name);
	free(r->socket);
	free(r->lock);
	free(r->start);
	free(r->log);
	*r = (struct rendezvous)RENDEZVOUS_NULL;
}

/* A printf to a new string, NULL when memory is short. */
static char *format(const char *template, ...) __attribute__((format(printf, 1, 2)));

static char *format(const char *template, ...) {
	va_list args;
	char *text;
	int len;

	va_start(args, template);
	len = vasprintf(&text, template, args);
	va_end(args);
	return len < 0 ? NULL : text;
}

static bool is_name(const char *name, size_t len) {
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789._-";

	return len > 0 && len <= WIRE_MAX_NAME && !strchr("._-", name[0]) &&
		strspn(name, set) >= len;
}

bool rendezvous_check_name(const char *name, char **ret_message) {
	if (is_name(name, strlen(name)))
		return true;
	*ret_message = format("\"%.80s\" is no name for a namespace: it is a letter or digit, then "
			      "letters, digits, '.', '_' or '-', %d at most",
		name, WIRE_MAX_NAME);
	return false;
}

/* Whether `path` is a directory of ours that nobody else can write to. */
static bool is_ours(const char *path) {
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
		!(st.st_mode & 022);
}

/* Where sockets are unless a path is named; NULL when memory is short. */
static char *default_directory(void) {
	const char *override = getenv("IPYTHON_MCP_RUNTIME_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");
	unsigned uid = geteuid();
	char run[32];

	if (override && *override)
		return strdup(override);
	snprintf(run, sizeof(run), "/run/user/%u", uid);
	if (is_ours(run))
		return format("%s/ipython-mcp", run);
	/* After su(1) it may still be the other user's. */
	if (xdg && *xdg == '/' && is_ours(xdg))
		return format("%s/ipython-mcp", xdg);
	return format("/tmp/ipython-mcp-%u", uid);
}

/*
 * Whether nobody else can put a socket in the place of ours. A directory that a socket path names
 * may be shared if it protects its entries, as /tmp does.
 */
static bool is_safe(const struct stat *st, bool is_named) {
	if (!S_ISDIR(st->st_mode))
		return false;
	if (is_named)
		return (st->st_uid == geteuid() || st->st_uid == 0) &&
			(!(st->st_mode & 022) || (st->st_mode & S_ISVTX));
	return st->st_uid == geteuid() && !(st->st_mode & 077);
}

/* Looks at the directory and makes it when it is missing and `create`. */
static int check_directory(const char *path, bool is_named, bool create, char **ret_message) {
	int flags = is_named ? 0 : AT_SYMLINK_NOFOLLOW, r = 0;
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, flags) < 0) {
		r = -errno;
		if (r == -ENOENT && !create)
			return 0;
		if (r == -ENOENT)
			r = directories_make(path);
		if (r == 0 && fstatat(AT_FDCWD, path, &st, flags) < 0)
			r = -errno;
		if (r < 0) {
			*ret_message = format("cannot make the directory %s: %s; make it, or set "
					      "IPYTHON_MCP_RUNTIME_DIR to another one of yours",
				path, strerror(-r));
			return err_new(r);
		}
	}
	if (is_safe(&st, is_named))
		return 0;

	if (S_ISLNK(st.st_mode))
		*ret_message = format("%s is a symbolic link and must be a directory: remove it, "
				      "or set IPYTHON_MCP_RUNTIME_DIR to another one of yours",
			path);
	else if (!S_ISDIR(st.st_mode))
		*ret_message = format("%s is in the way, it must be a directory: remove it, or set "
				      "IPYTHON_MCP_RUNTIME_DIR to another one of yours",
			path);
	else if (st.st_uid != geteuid())
		*ret_message = format("%s belongs to user %u and not to you (%u): set "
				      "IPYTHON_MCP_RUNTIME_DIR to a directory of yours",
			path, (unsigned)st.st_uid, (unsigned)geteuid());
	else
		*ret_message = format("%s is open to other users (mode %03o, must be 700): "
				      "chmod 700 '%s'",
			path, (unsigned)st.st_mode & 0777, path);
	return err_new(S_ISDIR(st.st_mode) ? -EPERM : -ENOTDIR);
}

/* An absolute form of a socket's path: a daemon may not share our directory. */
static char *absolute(const char *path) {
	auto_free char *cwd = NULL;

	if (*path == '/')
		return strdup(path);
	cwd = getcwd(NULL, 0);
	return cwd ? format("%s/%s", cwd, path) : NULL;
}

static int fill(struct rendezvous *r, const char *name, const char *socket_path) {
	r->name = strdup(name);
	if (socket_path) {
		r->socket = absolute(socket_path);
		if (!r->socket)
			return -ENOMEM;
		/* The root directory keeps its slash. */
		size_t len = (size_t)(strrchr(r->socket, '/') - r->socket);

		r->directory = strndup(r->socket, len ? len : 1);
		r->lock = format("%s.lock", r->socket);
		r->start = format("%s.start", r->socket);
		r->log = format("%s.log", r->socket);
	} else {
		r->directory = default_directory();
		if (!r->directory)
			return -ENOMEM;
		r->socket = format("%s/%s" SUFFIX, r->directory, name);
		r->lock = format("%s/%s.lock", r->directory, name);
		r->start = format("%s/%s.start", r->directory, name);
		r->log = format("%s/%s.log", r->directory, name);
	}
	return r->name && r->directory && r->socket && r->lock && r->start && r->log ? 0 : -ENOMEM;
}

int rendezvous_init(struct rendezvous *r, const char *name, const char *socket_path, bool create,
	char **ret_message) {
	auto_rendezvous struct rendezvous new = RENDEZVOUS_NULL;
	const size_t max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	int e;

	if (!name)
		name = WIRE_DEFAULT_NAME;
	if (socket_path && !*socket_path)
		socket_path = NULL;
	if (!rendezvous_check_name(name, ret_message))
		return err_new(-EINVAL);
	e = fill(&new, name, socket_path);
	if (e < 0) {
		*ret_message = strdup("out of memory");
		return err_new(e);
	}
	if (*new.directory != '/') {
		*ret_message = format("IPYTHON_MCP_RUNTIME_DIR must be an absolute path, not "
				      "\"%s\"",
			new.directory);
		return err_new(-EINVAL);
	}
	if (strlen(new.socket) > max) {
		*ret_message = format("the socket's path %s has %zu bytes, the system takes %zu: "
				      "choose a shorter one with IPYTHON_MCP_RUNTIME_DIR or "
				      "--socket",
			new.socket, strlen(new.socket), max);
		return err_new(-ENAMETOOLONG);
	}
	e = check_directory(new.directory, socket_path, create, ret_message);
	if (e < 0)
		return e;
	*r = new;
	new = (struct rendezvous)RENDEZVOUS_NULL;
	return 0;
}

static void fill_address(const struct rendezvous *r, struct sockaddr_un *ret_address) {
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret_address->sun_path, r->socket, strlen(r->socket) + 1);
}

int rendezvous_connect(const struct rendezvous *r) {
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	pid_t pid;
	uid_t uid;

	if (fd < 0)
		return err_new(-errno);
	fill_address(r, &address);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == EACCES ? -EPERM : -errno;
	if (!rendezvous_peer(fd, &pid, &uid) || uid != geteuid())
		return err_new(-EPERM);
	return take_fd(&fd);
}

/*
 * Whether `path` still names the file behind `fd`: the directory may have been cleaned meanwhile.
 */
static bool is_same_file(int fd, const char *path) {
	struct stat ours, there;

	return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
		ours.st_dev == there.st_dev;
}

/* Takes a lock file without waiting. */
static int lock_file(const char *path) {
	for (;;) {
		auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return err_new(-errno);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : err_new(-errno);
		if (is_same_file(fd, path))
			return take_fd(&fd);
	}
}

int rendezvous_lock(const struct rendezvous *r, int timeout_ms) {
	for (;;) {
		int fd = lock_file(r->lock);

		if (fd != -EAGAIN || timeout_ms <= 0)
			return fd;
		nanosleep(&(struct timespec){ .tv_nsec = LOCK_RETRY_MS * 1000000 }, NULL);
		timeout_ms -= LOCK_RETRY_MS;
	}
}

int rendezvous_lock_start(const struct rendezvous *r) {
	return lock_file(r->start);
}

/* Removes the socket of a daemon that is gone. Only when nobody listens there. */
static int remove_stale(const struct rendezvous *r) {
	struct stat st;
	int fd;

	if (lstat(r->socket, &st) < 0)
		return errno == ENOENT ? 0 : err_new(-errno);
	if (!S_ISSOCK(st.st_mode))
		return err_new(-ENOTSOCK);
	if (st.st_uid != geteuid())
		return err_new(-EPERM);
	fd = rendezvous_connect(r);
	if (fd >= 0)
		close(fd);
	if (fd != -ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(r->socket) < 0 && errno != ENOENT ? err_new(-errno) : 0;
}

int rendezvous_listen(const struct rendezvous *r) {
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	int e;

	if (fd < 0)
		return err_new(-errno);
	/* The file takes its mode from the socket, so it never has another, whatever the umask. */
	if (fchmod(fd, 0600) < 0)
		return err_new(-errno);
	fill_address(r, &address);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno != EADDRINUSE)
			return err_new(-errno);
		e = remove_stale(r);
		if (e < 0)
			return e;
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
			return err_new(-errno);
	}
	if (listen(fd, SOMAXCONN) < 0)
		return err_new(-errno);
	return take_fd(&fd);
}

bool rendezvous_peer(int fd, pid_t *ret_pid, uid_t *ret_uid) {
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || len != sizeof(cred))
		return false;
	*ret_pid = cred.pid;
	*ret_uid = cred.uid;
	return true;
}

static int is_socket_entry(const struct dirent *entry) {
	size_t len = strlen(entry->d_name);

	return len > strlen(SUFFIX) && !strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX) &&
		is_name(entry->d_name, len - strlen(SUFFIX));
}

char **rendezvous_names(const struct rendezvous *r) {
	struct dirent **entries = NULL;
	int n = scandir(r->directory, &entries, is_socket_entry, alphasort);
	char **names;

	/* A directory that is not there holds no sockets. */
	if (n < 0)
		return errno == ENOMEM ? NULL : calloc(1, sizeof(*names));
	names = calloc((size_t)n + 1, sizeof(*names));
	for (int i = 0; i < n; i++) {
		if (names)
			names[i] = strndup(entries[i]->d_name,
				strlen(entries[i]->d_name) - strlen(SUFFIX));
		free(entries[i]);
	}
	free(entries);
	for (int i = 0; names && i < n; i++) {
		if (names[i])
			continue;
		for (int k = 0; k < n; k++)
			free(names[k]);
		free(names);
		return NULL;
	}
	return names;
}

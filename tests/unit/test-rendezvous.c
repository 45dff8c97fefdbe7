/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/rendezvous.h"
#include "tests/lib/check.h"

/* This run's own directory, removed at the end. */
static char top[] = "/tmp/rendezvous-XXXXXX";

/* A path below it; valid until the next call but one. */
static const char *in_top(const char *name) {
	static char paths[2][256];
	static int which;

	which = !which;
	snprintf(paths[which], sizeof(paths[which]), "%s/%s", top, name);
	return paths[which];
}

/* rendezvous_init() in a fresh directory of that name, asked for through the environment. */
static int init_in(struct rendezvous *r, const char *directory, const char *name, bool create) {
	auto_free char *message = NULL;
	int e;

	setenv("IPYTHON_MCP_RUNTIME_DIR", in_top(directory), 1);
	e = rendezvous_init(r, name, NULL, create, &message);
	return e < 0 && !message ? -ENOTSUP : e; /* every failure has a message */
}

static void test_rendezvous_makes_its_directory(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;
	struct stat st;

	umask(0);
	CHECK(init_in(&r, "new/deep", NULL, true) == 0);
	CHECK(stat(in_top("new/deep"), &st) == 0 && (st.st_mode & 0777) == 0700);
	CHECK_STR(r.directory, in_top("new/deep"));
	CHECK_STR(r.name, "default");
	CHECK_STR(r.socket, in_top("new/deep/default.sock"));
	umask(022);
}

static void test_rendezvous_looks_without_making(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;

	CHECK(init_in(&r, "absent", "x", false) == 0);
	CHECK(access(in_top("absent"), F_OK) < 0);
	CHECK(rendezvous_connect(&r) == -ENOENT);
}

static void test_rendezvous_refuses_unsafe_directories(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;

	CHECK(mkdir(in_top("open"), 0755) == 0);
	CHECK(init_in(&r, "open", NULL, true) == -EPERM);
	CHECK(mkdir(in_top("shared"), 0700) == 0 && chmod(in_top("shared"), 0770) == 0);
	CHECK(init_in(&r, "shared", NULL, true) == -EPERM);
	CHECK(mkdir(in_top("real"), 0700) == 0);
	CHECK(symlink("real", in_top("link")) == 0);
	CHECK(init_in(&r, "link", NULL, true) == -ENOTDIR);
	CHECK(close(open(in_top("file"), O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(init_in(&r, "file", NULL, true) == -ENOTDIR);
	CHECK(init_in(&r, "file/below", NULL, true) < 0);
	CHECK(!r.socket);
	if (geteuid() == 0) {
		CHECK(mkdir(in_top("foreign"), 0700) == 0 &&
			chown(in_top("foreign"), 12345, 0) == 0);
		CHECK(init_in(&r, "foreign", NULL, true) == -EPERM);
	}
}

static void test_rendezvous_checks_names(void) {
	static const char *const good[] = { "a", "default", "My.project-1_x", "0",
		"0123456789012345678901234567890123456789012345678901234567890123" };
	static const char *const bad[] = { "", ".", "..", "-a", "_a", ".a", "a/b", "a b",
		"caf\xc3\xa9", "a\n",
		"01234567890123456789012345678901234567890123456789012345678901234" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		auto_free char *message = NULL;

		CHECK(rendezvous_check_name(good[i], &message) && !message);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		auto_free char *message = NULL;

		CHECK(!rendezvous_check_name(bad[i], &message) && message);
	}
}

static void test_rendezvous_never_cuts_a_path(void) {
	/* The socket's whole path in bytes, and whether the system takes it. */
	static const struct {
		size_t len;
		bool fits;
	} cases[] = { { 107, true }, { 108, false }, { 150, false } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;
		char directory[200];
		size_t pad = cases[i].len - strlen(top) - strlen("//default.sock");

		memset(directory, 'd', pad);
		directory[pad] = '\0';
		CHECK((init_in(&r, directory, NULL, true) == 0) == cases[i].fits);
		if (cases[i].fits) {
			auto_close int fd = rendezvous_listen(&r);
			auto_close int client = rendezvous_connect(&r);

			CHECK(strlen(r.socket) == cases[i].len);
			CHECK(fd >= 0 && client >= 0);
		}
	}
}

static void test_rendezvous_takes_a_path(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;
	auto_free char *message = NULL;
	auto_close int fd = -1;

	CHECK(rendezvous_init(&r, NULL, in_top("my.socket"), true, &message) == 0);
	CHECK_STR(r.socket, in_top("my.socket"));
	CHECK_STR(r.directory, top);
	fd = rendezvous_listen(&r);
	CHECK(fd >= 0);
	rendezvous_deinit(&r);
	/* A directory that everybody may write to but that keeps entries apart will do. */
	CHECK(rendezvous_init(&r, NULL, "/tmp/s.sock", false, &message) == 0);
	CHECK_STR(r.directory, "/tmp");
}

static void test_rendezvous_connects_two_ends(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;
	auto_close int fd = -1, client = -1, server = -1;
	struct stat st;
	pid_t pid = 0;
	uid_t uid = 12345;

	CHECK(init_in(&r, "pair", "x", true) == 0);
	CHECK(rendezvous_connect(&r) == -ENOENT);
	umask(0);
	fd = rendezvous_listen(&r);
	umask(022);
	CHECK(fd >= 0);
	CHECK(lstat(r.socket, &st) == 0 && (st.st_mode & 0777) == 0600);
	client = rendezvous_connect(&r);
	CHECK(client >= 0);
	CHECK(fcntl(client, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(client, F_GETFD) & FD_CLOEXEC);
	server = accept(fd, NULL, NULL);
	CHECK(server >= 0);
	CHECK(rendezvous_peer(server, &pid, &uid) && pid == getpid() && uid == geteuid());
}

static void test_rendezvous_replaces_only_stale_sockets(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;
	int fd;

	CHECK(init_in(&r, "stale", "x", true) == 0);
	fd = rendezvous_listen(&r);
	CHECK(fd >= 0);
	CHECK(rendezvous_listen(&r) == -EADDRINUSE);
	close(rendezvous_connect(&r));
	close(fd);
	CHECK(rendezvous_connect(&r) == -ECONNREFUSED);
	fd = rendezvous_listen(&r);
	CHECK(fd >= 0);
	close(fd);
	CHECK(unlink(r.socket) == 0);

	CHECK(close(open(r.socket, O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(rendezvous_listen(&r) == -ENOTSOCK);
	CHECK(access(r.socket, F_OK) == 0);
	CHECK(unlink(r.socket) == 0);
	CHECK(symlink("/nowhere", r.socket) == 0);
	CHECK(rendezvous_listen(&r) == -ENOTSOCK);
}

static void test_rendezvous_tells_a_full_backlog_from_a_dead_socket(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int clients[16], n = 0, e = 0;

	CHECK(init_in(&r, "full", "x", true) == 0);
	strcpy(address.sun_path, r.socket);
	CHECK(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0);
	while (n < 16 && (e = rendezvous_connect(&r)) >= 0)
		clients[n++] = e;
	CHECK(e == -EAGAIN);
	CHECK(rendezvous_listen(&r) == -EADDRINUSE);
	while (n)
		close(clients[--n]);
}

static void test_rendezvous_refuses_another_users_listener(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;
	int ready[2], status;
	char byte;
	pid_t child;

	/* Only root can be somebody else for a moment. */
	if (geteuid() != 0)
		return;
	CHECK(init_in(&r, "other", "x", true) == 0);
	CHECK(pipe(ready) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (setgid(12345) < 0)
			_exit(1);
		/* Its directory is ours, so it binds before it lets go of being us. */
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		struct sockaddr_un address = { .sun_family = AF_UNIX };

		strcpy(address.sun_path, r.socket);
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
			setuid(12345) < 0 || listen(fd, 5) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(rendezvous_connect(&r) == -EPERM);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	close(ready[0]);
}

static void test_rendezvous_locks(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;
	int first, second;

	CHECK(init_in(&r, "lock", "x", true) == 0);
	first = rendezvous_lock(&r, 0);
	CHECK(first >= 0);
	CHECK(rendezvous_lock(&r, 0) == -EAGAIN);
	CHECK(rendezvous_lock(&r, 20) == -EAGAIN);
	/* The other lock is another one. */
	second = rendezvous_lock_start(&r);
	CHECK(second >= 0);
	CHECK(rendezvous_lock_start(&r) == -EAGAIN);
	close(second);
	close(first);
	first = rendezvous_lock(&r, 0);
	CHECK(first >= 0);

	/* A lock on a file that is no longer there protects nothing. */
	CHECK(unlink(r.lock) == 0);
	second = rendezvous_lock(&r, 0);
	CHECK(second >= 0);
	close(first);
	close(second);
	CHECK(unlink(r.lock) == 0 && symlink("elsewhere", r.lock) == 0);
	CHECK(rendezvous_lock(&r, 0) == -ELOOP);
}

static void test_rendezvous_lists_names(void) {
	auto_rendezvous struct rendezvous r = RENDEZVOUS_NULL;
	char **names;
	size_t n = 0;

	CHECK(init_in(&r, "names", NULL, false) == 0);
	names = rendezvous_names(&r);
	CHECK(names && !names[0]);
	free(names);
	rendezvous_deinit(&r);

	CHECK(init_in(&r, "names", NULL, true) == 0);
	CHECK(close(open(in_top("names/b.sock"), O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(close(open(in_top("names/a.sock"), O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(close(open(in_top("names/a.lock"), O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(close(open(in_top("names/.sock"), O_CREAT | O_WRONLY, 0600)) == 0);
	names = rendezvous_names(&r);
	CHECK(names && names[0] && names[1] && !names[2]);
	CHECK_STR(names[0], "a");
	CHECK_STR(names[1], "b");
	for (; names[n]; n++)
		free(names[n]);
	free(names);
}

static void test_rendezvous_ignores_what_agents_strip(void) {
	auto_rendezvous struct rendezvous with = RENDEZVOUS_NULL, without = RENDEZVOUS_NULL;
	auto_free char *message = NULL;
	char run[64];
	struct stat st;

	/*
	 * Where /run/user/UID is ours, XDG_RUNTIME_DIR makes no difference; elsewhere it decides.
	 */
	unsetenv("IPYTHON_MCP_RUNTIME_DIR");
	snprintf(run, sizeof(run), "/run/user/%u", (unsigned)geteuid());
	unsetenv("XDG_RUNTIME_DIR");
	CHECK(rendezvous_init(&without, NULL, NULL, false, &message) == 0);
	CHECK(chmod(top, 0700) == 0);
	setenv("XDG_RUNTIME_DIR", top, 1);
	CHECK(rendezvous_init(&with, NULL, NULL, false, &message) == 0);
	if (lstat(run, &st) == 0 && st.st_uid == geteuid())
		CHECK_STR(with.socket, without.socket);
	else
		CHECK_STR(with.directory, in_top("ipython-mcp"));
	unsetenv("XDG_RUNTIME_DIR");
}

int main(void) {
	char command[128];

	if (!mkdtemp(top))
		return 99;
	RUN(test_rendezvous_makes_its_directory);
	RUN(test_rendezvous_looks_without_making);
	RUN(test_rendezvous_refuses_unsafe_directories);
	RUN(test_rendezvous_checks_names);
	RUN(test_rendezvous_never_cuts_a_path);
	RUN(test_rendezvous_takes_a_path);
	RUN(test_rendezvous_connects_two_ends);
	RUN(test_rendezvous_replaces_only_stale_sockets);
	RUN(test_rendezvous_tells_a_full_backlog_from_a_dead_socket);
	RUN(test_rendezvous_refuses_another_users_listener);
	RUN(test_rendezvous_locks);
	RUN(test_rendezvous_lists_names);
	RUN(test_rendezvous_ignores_what_agents_strip);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	if (system(command) != 0)
		printf("# %s was left behind\n", top);
	return check_done();
}

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where a daemon and its clients meet: the runtime directory, the socket, the lock beside it, and
 * the checks that nobody else stands there. Daemon and clients use the same code, so that they
 * agree.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct rendezvous {
	char *directory; /* 0700, ours, no symlink */
	char *name;      /* of the namespace */
	char *socket;    /* path of the listening socket, fits sun_path */
	char *lock;      /* path of the lock file beside it: who binds */
	char *start;     /* path of another one: who starts a daemon */
	char *log;       /* path of the log of a daemon that a client started */
};

#define RENDEZVOUS_NULL { 0 }
#define auto_rendezvous __attribute__((cleanup(rendezvous_deinit)))

void rendezvous_deinit(struct rendezvous *r);

/*
 * Fills *r (strings owned by it). `name` NULL means the default; `socket_path` (--socket or
 * IPYTHON_MCP_SOCKET, NULL when neither) overrides the place. Order without it:
 * IPYTHON_MCP_RUNTIME_DIR, /run/user/UID/ipython-mcp whatever the environment says when
 * /run/user/UID is ours, $XDG_RUNTIME_DIR/ipython-mcp, /tmp/ipython-mcp-UID. With `create`, missing
 * directories are made (0700). Returns 0; on failure a negative errno and *ret_message (owned by
 * the caller), which names the path, the rule and the way out.
 */
int rendezvous_init(struct rendezvous *r, const char *name, const char *socket_path, bool create,
	char **ret_message);

/* False with a message (owned by the caller) when `name` is no valid namespace name. */
bool rendezvous_check_name(const char *name, char **ret_message);

/*
 * Connects to the socket and checks that the peer has our uid. Never waits. Returns a non-blocking,
 * close-on-exec descriptor, or a negative errno: -ENOENT and -ECONNREFUSED mean that nobody
 * listens, -EAGAIN that somebody does but accepts nobody just now, -EPERM that the listener or the
 * socket file belongs to another user.
 */
int rendezvous_connect(const struct rendezvous *r);

/*
 * Two locks, so that nobody waits for a lock while holding what its holder waits for. A client
 * takes the start lock, starts a daemon, and holds it until the daemon listens; the daemon takes
 * the bind lock (r->lock) for the moment of rendezvous_listen(). A daemon never takes the start
 * lock and a client never the bind lock.
 *
 * rendezvous_lock() takes the bind lock, waiting at most `timeout_ms` (0: not at all);
 * rendezvous_lock_start() the start lock, without waiting. Both return its descriptor, closing
 * which releases it, or -EAGAIN when it stays taken, or another negative errno.
 */
int rendezvous_lock(const struct rendezvous *r, int timeout_ms);
int rendezvous_lock_start(const struct rendezvous *r);

/*
 * Binds and listens with mode 0600 from the first moment, replacing a stale socket, never a live
 * one (-EADDRINUSE), nor a file that is no socket (-ENOTSOCK) or another user's (-EPERM). The
 * caller holds the bind lock. Returns the listening descriptor, non-blocking and close-on-exec, or
 * a negative errno.
 */
int rendezvous_listen(const struct rendezvous *r);

/* Process id and uid of a connected peer; false when the kernel does not tell. */
bool rendezvous_peer(int fd, pid_t *ret_pid, uid_t *ret_uid);

/*
 * Names of all sockets in the runtime directory, sorted, for `ipython-mcp list`. Returns a
 * NULL-terminated array that the caller frees with its strings, NULL when memory is short.
 */
char **rendezvous_names(const struct rendezvous *r);

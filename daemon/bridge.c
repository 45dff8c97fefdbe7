/* SPDX-License-Identifier: MIT */
/*
 * Bridge
 *
 * The Python thread begins here, and what it says comes back here. Python's threads put their news
 * into a mailbox under a lock and ring an eventfd; the loop empties the box and tells the parts
 * concerned. The box has one place for each kind of news, so nothing is allocated on the way and
 * nothing can be lost: one call runs at a time, hence one reply at most; of two catalogs, or two
 * phases, the newer says it all.
 *
 * Delivery order is fixed: what a call changed (catalog) before what it came to (reply).
 *
 * The Python thread has descriptors of its own (fds.c), with a copy of the eventfd among them, far
 * above those that user code meets. User code may close it all the same, with os.closerange() for
 * one; then the bell is fetched again from the event half's table through a pidfd of our own
 * process.
 *
 * No lock is held while Python's half is called, and none of its callbacks blocks.
 */

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "daemon/bridge.h"
#include "daemon/callq.h"
#include "daemon/catalog.h"
#include "daemon/fds.h"
#include "daemon/loader.h"
#include "daemon/notify.h"

/* Python recurses in C; the main thread of a Python program has 8 MiB, frameworks want more. */
#define STACK_BYTES ((size_t)16 << 20)

/* Above what user code gets when it opens files. The default limit is 1024. */
static const int bell_numbers[] = { 1000, 500, 200, 50, 3 };

/* Undelivered news. */
struct mailbox {
	bool has_phase, is_loaded, is_ready, has_failed, has_ended;
	enum shell_phase phase;
	char python_version[64], ipython_version[64];
	enum shell_phase failed_phase;
	char *failure;
	struct shell_catalog *catalog;
	struct shell_reply *reply;
};

struct bridge {
	struct daemon *daemon;
	struct event *wake_event;
	int bell; /* the eventfd in the event half's table */

	/* Loop thread. */
	const struct shell_ops *ops; /* set once the Python half is ready */
	bool has_thread, has_ended;
	void (*on_end)(struct daemon *d);
	pthread_t thread;

	/* The Python thread's copy of the eventfd; any of its threads may fetch a new one. */
	atomic_int python_bell;

	/* Written by the Python thread before it says so, constant afterwards. */
	struct shell_interpreter interpreter;
	struct shell_host host;

	pthread_mutex_t lock; /* guards all below */
	struct mailbox box;
	bool is_rung;                       /* the box has been announced and not yet emptied */
	const struct shell_ops *loaded_ops; /* as soon as run() may be entered */
	bool is_stopping;
};

/* The eventfd again, after user code closed our copy of it. -1 when the kernel does not give it. */
static int bell_fetch(struct bridge *b) {
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	auto_close int fd = -1;
	int high = -1;

	if (pidfd >= 0)
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, b->bell, 0);
	for (size_t i = 0; fd >= 0 && high < 0 && i < ARRAY_LEN(bell_numbers); i++)
		high = fcntl(fd, F_DUPFD_CLOEXEC, bell_numbers[i]);
	return high;
}

/* Wakes the loop. Any of Python's threads. */
static void bell_ring(struct bridge *b) {
	static const uint64_t one = 1;
	int fd = atomic_load(&b->python_bell);

	if (write(fd, &one, sizeof(one)) == sizeof(one))
		return;
	fd = bell_fetch(b);
	if (fd < 0 || write(fd, &one, sizeof(one)) != sizeof(one)) {
		log_error("The Python half cannot wake the event loop: %m");
		return;
	}
	atomic_store(&b->python_bell, fd);
}

/* Brackets a change of the box; the second announces it unless that was done already. */
static struct mailbox *box_open(struct bridge *b) {
	pthread_mutex_lock(&b->lock);
	return &b->box;
}

static void box_close(struct bridge *b) {
	bool was_rung = b->is_rung;

	b->is_rung = true;
	pthread_mutex_unlock(&b->lock);
	if (!was_rung)
		bell_ring(b);
}

/*
 * struct shell_host: called by the Python half.
 */

static void host_phase(void *ctx, enum shell_phase phase) {
	struct mailbox *box = box_open(ctx);

	box->phase = phase;
	box->has_phase = true;
	box_close(ctx);
}

static void host_ready(void *ctx, const char *python_version, const char *ipython_version) {
	struct mailbox *box = box_open(ctx);

	snprintf(box->python_version, sizeof(box->python_version), "%s", python_version);
	snprintf(box->ipython_version, sizeof(box->ipython_version), "%s", ipython_version);
	box->is_ready = true;
	box_close(ctx);
}

static void host_failed(void *ctx, enum shell_phase phase, char *message) {
	struct mailbox *box = box_open(ctx);

	free(box->failure);
	box->failure = message;
	box->failed_phase = phase;
	box->has_failed = true;
	box_close(ctx);
}

static void host_reply(void *ctx, struct shell_reply *reply) {
	struct mailbox *box = box_open(ctx);

	box->reply = reply;
	box_close(ctx);
}

static void host_catalog(void *ctx, struct shell_catalog *catalog) {
	struct mailbox *box = box_open(ctx);

	shell_catalog_free(box->catalog);
	box->catalog = catalog;
	box_close(ctx);
}

/*
 * The Python thread, from its first instruction to its last.
 */

static void python_run(struct bridge *b) {
	struct daemon *d = b->daemon;
	const struct shell_ops *ops;
	char *message = NULL;
	bool is_stopping;

	if (loader_open(d->settings.python, d->rendezvous.directory, &ops, &b->interpreter,
		    &message) < 0) {
		host_failed(b, SHELL_CONFIGURATION, message);
		return;
	}
	box_open(b)->is_loaded = true;
	b->loaded_ops = ops;
	is_stopping = b->is_stopping;
	box_close(b);
	if (!is_stopping)
		ops->run(&d->settings, &b->interpreter, d->files_directory, &b->host);
}

static void *python_main(void *arg) {
	struct bridge *b = arg;
	struct mailbox *box;
	sigset_t none;

	/*
	 * Children inherit this thread's signal mask. SIGINT, blocked everywhere else, is how a
	 * running call is interrupted.
	 */
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	if (!fds_separate(b->bell))
		log_info("The kernel refuses the Python thread descriptors of its own; they are "
			 "shared");
	python_run(b);

	box = box_open(b);
	box->has_ended = true;
	box_close(b);
	return NULL;
}

/*
 * The loop thread.
 */

static void deliver(struct bridge *b, struct mailbox *box) {
	struct daemon *d = b->daemon;

	if (box->has_phase)
		daemon_on_phase(d, box->phase);
	if (box->is_loaded) {
		free(d->python_executable);
		d->python_executable = strdup(b->interpreter.executable);
	}
	if (box->is_ready)
		daemon_on_ready(d, box->python_version, box->ipython_version);
	if (box->has_failed)
		daemon_on_failed(d, box->failed_phase, box->failure);
	if (box->catalog && catalog_publish(d, box->catalog))
		notify_tools_changed(d);
	if (box->reply)
		callq_on_reply(d, box->reply);
	if (box->has_ended) {
		pthread_join(b->thread, NULL);
		b->has_ended = true;
		log_debug("The Python thread has ended");
	}
}

static void bridge_on_wakeup(evutil_socket_t fd, short what, void *arg) {
	struct bridge *b = arg;
	struct mailbox box;
	uint64_t count;

	(void)!read(b->bell, &count, sizeof(count));
	pthread_mutex_lock(&b->lock);
	box = b->box;
	b->box = (struct mailbox){ 0 };
	b->is_rung = false;
	b->ops = b->loaded_ops;
	pthread_mutex_unlock(&b->lock);

	deliver(b, &box);
	if (b->has_ended && b->on_end) {
		void (*on_end)(struct daemon *d) = take(b->on_end);

		/* Last: it may free the bridge. */
		on_end(b->daemon);
	}
}

/* The eventfd, at a number where user code's copy of it is out of the way. */
static int bell_new(void) {
	auto_close int low = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int fd = -1;

	if (low < 0)
		return err_new(-errno);
	for (size_t i = 0; fd < 0 && i < ARRAY_LEN(bell_numbers); i++)
		fd = fcntl(low, F_DUPFD_CLOEXEC, bell_numbers[i]);
	return fd < 0 ? err_new(-errno) : fd;
}

static int start_thread(struct bridge *b) {
	pthread_attr_t attributes;
	sigset_t interrupt;
	int r;

	/* Here and, by inheritance, on every thread of the event half. */
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(SIG_BLOCK, &interrupt, NULL);

	r = pthread_attr_init(&attributes);
	if (r)
		return err_new(-r);
	r = pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (!r)
		r = pthread_create(&b->thread, &attributes, python_main, b);
	pthread_attr_destroy(&attributes);
	if (r)
		return err_new(-r);
	b->has_thread = true;
	pthread_setname_np(b->thread, "python");
	return 0;
}

int bridge_start(struct daemon *d, const char *faults) {
	struct bridge *b = calloc(1, sizeof(*b));
	int r = -ENOMEM;

	if (!b)
		return err_new(-ENOMEM);
	pthread_mutex_init(&b->lock, NULL);
	b->daemon = d;
	b->host = (struct shell_host){ .ctx = b, .phase = host_phase, .ready = host_ready,
		.failed = host_failed, .reply = host_reply, .catalog = host_catalog };
	b->bell = bell_new();
	if (b->bell < 0) {
		r = b->bell;
		goto fail;
	}
	atomic_init(&b->python_bell, b->bell);
	fds_add(b->bell);
	b->wake_event = event_new(d->base, b->bell, EV_READ | EV_PERSIST, bridge_on_wakeup, b);
	if (!b->wake_event || event_add(b->wake_event, NULL) < 0)
		goto fail;

	d->bridge = b;
	if (!faults) {
		r = start_thread(b);
	} else {
		/* Nothing of Python is touched with settings that are not what the user meant. */
		b->has_ended = true;
		host_failed(b, SHELL_CONFIGURATION, strdup(faults));
		r = 0;
	}
	if (r < 0)
		goto fail;
	return 0;

fail:
	b->has_ended = true;
	d->bridge = bridge_free(b);
	return r;
}

void bridge_submit(struct daemon *d, struct shell_call *call) {
	log_debug("Call %llu goes to the Python half", (unsigned long long)call->id);
	d->bridge->ops->submit(call);
}

bool bridge_interrupt(struct daemon *d, uint64_t call, enum shell_reason reason, unsigned again) {
	log_debug("Call %llu is interrupted, time %u", (unsigned long long)call, again + 1);
	return d->bridge->ops && d->bridge->ops->interrupt(call, reason, again);
}

void bridge_signal(struct daemon *d, int number) {
	struct bridge *b = d->bridge;

	if (b && b->has_thread && !b->has_ended)
		pthread_kill(b->thread, number);
}

void bridge_stop(struct daemon *d, void (*on_end)(struct daemon *d)) {
	struct bridge *b = d->bridge;
	const struct shell_ops *ops;

	b->on_end = on_end;
	pthread_mutex_lock(&b->lock);
	b->is_stopping = true;
	ops = b->loaded_ops;
	pthread_mutex_unlock(&b->lock);
	if (b->has_ended)
		event_active(b->wake_event, EV_READ, 0);
	else if (ops)
		ops->stop();
}

struct bridge *bridge_free(struct bridge *b) {
	if (!b)
		return NULL;
	if (b->wake_event)
		event_free(b->wake_event);
	/* A thread that hangs in user code still uses the rest; the process is about to end. */
	if (b->has_thread && !b->has_ended)
		return NULL;
	if (b->bell >= 0) {
		fds_remove(b->bell);
		close(b->bell);
	}
	free(b->box.failure);
	shell_catalog_free(b->box.catalog);
	shell_reply_free(b->box.reply);
	free(b->interpreter.executable);
	free(b->interpreter.libpython);
	pthread_mutex_destroy(&b->lock);
	free(b);
	return NULL;
}

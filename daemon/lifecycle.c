/* SPDX-License-Identifier: MIT */
/*
 * Lifecycle
 *
 * Signals. Python and the event half are one process, and what a signal does is the process's. The
 * loop thread blocks all signals but SIGTERM and SIGHUP: alarms, children's ends and the like are
 * user code's, and must interrupt the Python thread as in a script. SIGTERM ends the daemon. SIGHUP
 * does nothing, but it has a handler: a session leader that opens a pty by name gets it as its
 * controlling terminal, and would be killed by its end. SIGPIPE and SIGXFSZ, which Python ignores,
 * have handlers that do nothing, because what is ignored stays ignored in the children that user
 * code starts.
 *
 * User code may install handlers of its own. Ours are put back, and theirs are called as well, but
 * on the Python thread: Python's C handler writes to a descriptor, and descriptors mean something
 * else over here. A signal that arrives over there is passed to this thread in the same way. In a
 * forked child of user code our handler steps aside.
 *
 * The service manager is told of readiness, of what goes on (one line, at leisure), and through the
 * watchdog that the loop turns. All on the loop thread but for the handler itself.
 */

#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "daemon/bridge.h"
#include "daemon/callq.h"
#include "daemon/fds.h"
#include "daemon/lifecycle.h"
#include "daemon/session.h"
#include "daemon/systemd.h"

enum {
	STATUS_DELAY_S = 1,     /* a busy daemon tells the manager this often at most */
	STATUS_RUNNING_S = 10,  /* … and while a call runs, this often */
	N_SIGNALS = 4,
};

/* A signal whose disposition is ours. */
struct kept_signal {
	int number;
	bool is_noted;           /* the loop hears of it */
	struct sigaction theirs; /* user code's; sa_handler is SIG_DFL when there is none */
	atomic_bool has_come;    /* noted, not yet seen by the loop */
	atomic_bool is_passed_on; /* sent to this thread or to Python's by the other one */
};

/* Read by the handler, on any thread, at any time. */
static struct {
	struct kept_signal kept[N_SIGNALS];
	pthread_t loop;
	pid_t pid;
	int wake; /* eventfd, of the loop thread's table */
} signals = {
	.kept = {
		{ .number = SIGTERM, .is_noted = true },
		{ .number = SIGHUP, .is_noted = true },
		{ .number = SIGPIPE },
		{ .number = SIGXFSZ },
	},
	.wake = -1,
};

struct lifecycle {
	struct daemon *daemon;
	struct event *wake, *watchdog, *status;
	struct timeval watchdog_interval;
	bool is_ready; /* READY=1 was sent */
	char *last_status;
};

/* --- Signals --- */

static struct kept_signal *kept_signal(int number) {
	for (size_t i = 0; i < N_SIGNALS; i++)
		if (signals.kept[i].number == number)
			return &signals.kept[i];
	return NULL;
}

static bool is_function(const struct sigaction *action) {
	return (action->sa_flags & SA_SIGINFO) ||
		(action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static void call_theirs(
	const struct sigaction *theirs, int number, siginfo_t *info, void *context) {
	if (theirs->sa_flags & SA_SIGINFO)
		theirs->sa_sigaction(number, info, context);
	else if (is_function(theirs))
		theirs->sa_handler(number);
}

static void signal_handler(int number, siginfo_t *info, void *context) {
	struct kept_signal *k = kept_signal(number);
	static const uint64_t one = 1;
	int saved = errno;

	if (getpid() != signals.pid) {
		/*
		 * A forked child: it is what user code made of it, and gets the signal once more.
		 */
		sigaction(number, &k->theirs, NULL);
		raise(number);
	} else if (!k->is_noted) {
		call_theirs(&k->theirs, number, info, context);
	} else if (pthread_equal(pthread_self(), signals.loop)) {
		atomic_store(&k->has_come, true);
		(void)!write(signals.wake, &one, sizeof(one));
	} else {
		call_theirs(&k->theirs, number, info, context);
		if (!atomic_exchange(&k->is_passed_on, false)) {
			atomic_store(&k->is_passed_on, true);
			pthread_kill(signals.loop, number);
		}
	}
	errno = saved;
}

static int install_handler(struct kept_signal *k, struct sigaction *ret_old) {
	struct sigaction ours = { .sa_sigaction = signal_handler,
		.sa_flags = SA_SIGINFO | SA_RESTART };

	sigemptyset(&ours.sa_mask);
	return sigaction(k->number, &ours, ret_old) < 0 ? err_new(-errno) : 0;
}

void lifecycle_rearm_signals(struct daemon *d) {
	for (size_t i = 0; i < N_SIGNALS; i++) {
		struct kept_signal *k = &signals.kept[i];
		struct sigaction now;

		if (sigaction(k->number, NULL, &now) < 0 ||
			((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == signal_handler))
			continue;
		/* First theirs, then ours: the handler reads it from the moment it is back. */
		k->theirs = now;
		install_handler(k, NULL);
	}
}

static void on_signal(struct daemon *d, struct kept_signal *k) {
	/* It came here first: then theirs is still to be called. */
	if (!atomic_exchange(&k->is_passed_on, false) && is_function(&k->theirs)) {
		atomic_store(&k->is_passed_on, true);
		bridge_signal(d, k->number);
	}
	if (k->number == SIGTERM) {
		log_notice("SIGTERM: stopping");
		daemon_stop(d, d->state == DAEMON_STOPPING);
	} else {
		log_debug("signal %d, ignoring", k->number);
	}
}

static void lifecycle_on_wake(evutil_socket_t fd, short what, void *ctx) {
	struct lifecycle *l = ctx;
	uint64_t count;

	(void)!read(signals.wake, &count, sizeof(count));
	for (size_t i = 0; i < N_SIGNALS; i++)
		if (atomic_exchange(&signals.kept[i].has_come, false))
			on_signal(l->daemon, &signals.kept[i]);
}

/* What our parent left ignored would be ignored in user code's children as well. */
static void heed_signals(void) {
	struct sigaction now;

	for (int number = 1; number < NSIG; number++)
		if (sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			signal(number, SIG_DFL);
}

/*
 * On the loop thread only what it handles, and what the kernel sends for a fault of the thread
 * itself.
 */
static void block_signals(void) {
	static const int open[] = { SIGTERM, SIGHUP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT,
		SIGTRAP, SIGSYS, SIGQUIT };
	sigset_t blocked;

	sigfillset(&blocked);
	for (size_t i = 0; i < ARRAY_LEN(open); i++)
		sigdelset(&blocked, open[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

static int signals_new(struct lifecycle *l) {
	int r;

	signals.loop = pthread_self();
	signals.pid = getpid();
	signals.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (signals.wake < 0)
		return err_new(-errno);
	fds_add(signals.wake);
	l->wake = event_new(
		l->daemon->base, signals.wake, EV_READ | EV_PERSIST, lifecycle_on_wake, l);
	if (!l->wake || event_add(l->wake, NULL) < 0)
		return err_new(-ENOMEM);

	heed_signals();
	for (size_t i = 0; i < N_SIGNALS; i++) {
		r = install_handler(&signals.kept[i], NULL);
		if (r < 0)
			return r;
	}
	block_signals();
	return 0;
}

/* --- The service manager --- */

static void add_running(struct buf *b, const struct callq_status *q) {
	buf_addf(b, "%s of session %llu runs for %llu s", q->tool, (unsigned long long)q->session,
		(unsigned long long)q->running_s);
	if (q->is_overdue)
		buf_addf(b, ", does not stop (interrupted %u times)", q->n_interrupts);
	if (q->n_waiting)
		buf_addf(b, ", %zu waiting", q->n_waiting);
}

/* The first line of a failure: the rest is for those who ask. */
static void add_failure(struct buf *b, const struct daemon *d) {
	const char *message = d->failure ? d->failure : "out of memory";

	buf_addf(b, "failed to start (%s): ", shell_phase_name(d->phase));
	buf_add(b, message, strcspn(message, "\n"));
}

char *lifecycle_status_line(struct daemon *d) {
	auto_buf struct buf b = BUF_NULL;
	size_t n_sessions = sessions_count(d->sessions);
	struct callq_status q;

	callq_status(d, &q);
	switch (d->state) {
	case DAEMON_STARTING:
		buf_addf(&b, "starting: %s", shell_phase_name(d->phase));
		if (q.n_waiting)
			buf_addf(&b, ", %zu waiting", q.n_waiting);
		break;
	case DAEMON_FAILED:
		add_failure(&b, d);
		break;
	case DAEMON_READY:
	case DAEMON_STOPPING:
		if (d->state == DAEMON_STOPPING)
			buf_add_str(&b, "stopping: ");
		if (q.is_running)
			add_running(&b, &q);
		else
			buf_add_str(&b, "idle");
		break;
	}
	buf_addf(&b, "; %zu session%s", n_sessions, n_sessions == 1 ? "" : "s");
	return buf_take(&b, NULL);
}

static void send_status(struct lifecycle *l, const char *first) {
	auto_free char *status = lifecycle_status_line(l->daemon);
	auto_buf struct buf b = BUF_NULL;
	auto_free char *text = NULL;

	if (!status || (!*first && l->last_status && !strcmp(status, l->last_status)))
		return;
	buf_addf(&b, "%sSTATUS=%s", first, status);
	text = buf_take(&b, NULL);
	if (text)
		systemd_notify(text);
	free(l->last_status);
	l->last_status = take(status);
}

static void status_after(struct lifecycle *l, int seconds) {
	struct timeval delay = { .tv_sec = seconds };

	if (!evtimer_pending(l->status, NULL))
		evtimer_add(l->status, &delay);
}

static void lifecycle_on_status(evutil_socket_t fd, short what, void *ctx) {
	struct lifecycle *l = ctx;
	struct callq_status q;

	send_status(l, "");
	callq_status(l->daemon, &q);
	if (q.is_running)
		status_after(l, STATUS_RUNNING_S);
}

void lifecycle_update(struct daemon *d) {
	struct lifecycle *l = d->lifecycle;

	if (!l->is_ready && (d->state == DAEMON_READY || d->state == DAEMON_FAILED)) {
		l->is_ready = true;
		send_status(l, "READY=1\n");
	} else {
		/* Not for each of a thousand calls a second. */
		status_after(l, STATUS_DELAY_S);
	}
}

void lifecycle_stopping(struct daemon *d) {
	send_status(d->lifecycle, "STOPPING=1\n");
}

static void lifecycle_on_watchdog(evutil_socket_t fd, short what, void *ctx) {
	systemd_notify("WATCHDOG=1");
}

static int watchdog_new(struct lifecycle *l) {
	uint64_t us = systemd_watchdog_us() / 2;

	if (!us)
		return 0;
	l->watchdog_interval = (struct timeval){ .tv_sec = (time_t)(us / 1000000),
		.tv_usec = (suseconds_t)(us % 1000000) };
	l->watchdog = event_new(l->daemon->base, -1, EV_PERSIST, lifecycle_on_watchdog, l);
	if (!l->watchdog || event_add(l->watchdog, &l->watchdog_interval) < 0)
		return err_new(-ENOMEM);
	systemd_notify("WATCHDOG=1");
	return 0;
}

int lifecycle_new(struct daemon *d) {
	struct lifecycle *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_new(-ENOMEM);
	d->lifecycle = l;
	l->daemon = d;
	l->status = evtimer_new(d->base, lifecycle_on_status, l);
	if (!l->status)
		return err_new(-ENOMEM);
	r = signals_new(l);
	return r < 0 ? r : watchdog_new(l);
}

struct lifecycle *lifecycle_free(struct lifecycle *l) {
	if (!l)
		return NULL;
	if (l->wake)
		event_free(l->wake);
	if (l->watchdog)
		event_free(l->watchdog);
	if (l->status)
		event_free(l->status);
	free(l->last_status);
	free(l);
	return NULL;
}

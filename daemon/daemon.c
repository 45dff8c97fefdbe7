/* SPDX-License-Identifier: MIT */
/*
 * Daemon
 *
 * Puts the parts of the event half together, in this order, for these reasons: the socket comes
 * first, because a second daemon must end before it touches anything; signals before there is
 * another thread, which inherits the mask; Python last, because its thread may speak to all the
 * others at once. They are taken apart in the opposite order. In between everything happens in
 * callbacks of the loop.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/fingerprint.h"
#include "common/log.h"
#include "daemon/answer.h"
#include "daemon/bridge.h"
#include "daemon/callq.h"
#include "daemon/catalog.h"
#include "daemon/daemon.h"
#include "daemon/endpoint.h"
#include "daemon/fds.h"
#include "daemon/files.h"
#include "daemon/guard.h"
#include "daemon/lifecycle.h"
#include "daemon/listener.h"
#include "daemon/output.h"
#include "daemon/session.h"
#include "daemon/stop.h"
#include "daemon/systemd.h"

double daemon_uptime(const struct daemon *d) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - d->started.tv_sec) +
	       (double)(now.tv_nsec - d->started.tv_nsec) / 1e9;
}

static void on_state(struct daemon *d) {
	lifecycle_update(d);
	callq_on_state(d);
}

void daemon_on_phase(struct daemon *d, enum shell_phase phase) {
	d->phase = phase;
	log_debug("start: %s", shell_phase_name(phase));
	lifecycle_update(d);
}

void daemon_on_ready(struct daemon *d, const char *python_version, const char *ipython_version) {
	d->python_version = strdup(python_version);
	d->ipython_version = strdup(ipython_version);
	log_info("ready after %.2f s: Python %s, IPython %s", daemon_uptime(d), python_version,
		ipython_version);
	/* It may have become ready while it was being stopped. */
	if (d->state == DAEMON_STARTING)
		d->state = DAEMON_READY;
	on_state(d);
}

void daemon_on_failed(struct daemon *d, enum shell_phase phase, char *message) {
	free(d->failure);
	d->failure = message;
	d->phase = phase;
	log_error("start failed (%s): %s", shell_phase_name(phase),
		message ? message : "out of memory");
	if (d->state == DAEMON_STARTING)
		d->state = DAEMON_FAILED;
	on_state(d);
}

static void on_libevent_log(int severity, const char *message) {
	log_write(severity >= EVENT_LOG_WARN ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "libevent: %s",
		message);
}

/* The parts that need nothing but memory and the base. */
static int make_parts(struct daemon *d) {
	auto_buf struct buf b = BUF_NULL;
	int r;

	/* Now, while nobody else changes the environment. */
	fingerprint_write(&b, environ);
	d->fingerprint = buf_take(&b, NULL);
	event_set_log_callback(on_libevent_log);
	d->base = event_base_new();
	if (!d->fingerprint || !d->base)
		return err_new(-ENOMEM);
	r = stop_new(d);
	if (r < 0)
		return r;
	d->sessions = sessions_new(d);
	d->callq = callq_new(d);
	d->catalog = catalog_new(d);
	return d->sessions && d->callq && d->catalog ? 0 : err_new(-ENOMEM);
}

static int start_parts(struct daemon *d, int *fd, bool is_inherited, const char *faults) {
	int r;

	r = make_parts(d);
	if (r < 0)
		return r;
	r = lifecycle_new(d);
	if (r < 0)
		return r;
	files_new(d);
	r = output_new(d);
	if (r < 0)
		return r;
	r = listener_new(d, *fd, is_inherited);
	if (r < 0)
		return r;
	take_fd(fd);
	if (!is_inherited)
		guard_new(d);
	return bridge_start(d, faults);
}

int daemon_start(struct daemon *d, const char *faults, char **ret_message) {
	auto_close int fd = -1;
	bool is_inherited;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &d->started);
	systemd_init();
	r = fds_init();
	if (r >= 0) {
		r = endpoint_open(&d->rendezvous, &fd, &is_inherited, ret_message);
		if (r < 0)
			return r;
		r = start_parts(d, &fd, is_inherited, faults);
	}
	if (r < 0)
		*ret_message = answer_message("cannot start: %s", strerror(-r));
	else
		log_info("namespace %s at %s, process %d", d->rendezvous.name, d->rendezvous.socket,
			(int)getpid());
	return r;
}

int daemon_run(struct daemon *d) {
	if (event_base_dispatch(d->base) >= 0)
		return 0;
	/* Seen where descriptors are shared and user code closes all there are. */
	log_error("the event loop has lost its descriptors, ending");
	return err_new(-EBADF);
}

bool daemon_end(struct daemon *d) {
	bool has_ended = !d->bridge || stop_has_ended_python(d);

	d->guard = guard_free(d->guard);
	d->listener = listener_free(d->listener);
	d->sessions = sessions_free(d->sessions);
	d->callq = callq_free(d->callq);
	d->bridge = bridge_free(d->bridge);
	d->output = output_free(d->output);
	d->catalog = catalog_free(d->catalog);
	d->lifecycle = lifecycle_free(d->lifecycle);
	d->stop = stop_free(d->stop);
	files_free(d);
	if (d->base)
		event_base_free(d->base);
	free(d->fingerprint);
	free(d->failure);
	free(d->python_version);
	free(d->ipython_version);
	free(d->python_executable);
	/* A Python thread that was given up still reads these. */
	if (has_ended) {
		config_deinit(&d->settings);
		rendezvous_deinit(&d->rendezvous);
	}
	return has_ended;
}

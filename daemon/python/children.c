/* SPDX-License-Identifier: MIT */
/*
 * Children of Shell Commands
 *
 * glibc's system() ignores SIGINT while it waits, and IPython swallows the interrupt of `!command`
 * and leaves the children of `x = !command` behind. So the child of the command that runs is found
 * in /proc: who was not there when the command was noted. A terminal would signal the whole
 * foreground group; here all descendants get it. Those that outlive their parent are remembered
 * with the time of their start, because by then nothing else leads to them; they have a second,
 * which may be longer than their call. Notes come from the Python half's threads, signals from the
 * event half's: all state is under one lock.
 */

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/python/children.h"

enum { MAX_PIDS = 4096, GRACE_S = 1 };

struct process {
	pid_t pid;
	unsigned long long started; /* clock ticks since boot: pids are used again */
};

struct processes {
	struct process *items;
	size_t n;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the lock. */
static struct processes before;  /* children when the command was noted */
static struct processes tracked; /* of the command, so far */
static struct processes doomed;  /* of commands whose calls have ended */
static struct timespec deadline; /* CLOCK_MONOTONIC; of the doomed */
static bool has_command;
static atomic_bool has_doomed;

static bool contains(const struct processes *p, pid_t pid) {
	for (size_t i = 0; i < p->n; i++)
		if (p->items[i].pid == pid)
			return true;
	return false;
}

/* A file of /proc as a string in `text`; false when it is gone. */
static bool read_text(const char *path, char *text, size_t size) {
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && len < size - 1) {
		n = read(fd, text + len, size - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	text[len] = '\0';
	return fd >= 0 && n >= 0;
}

/* When the process started; 0 when it is gone. */
static unsigned long long start_time(pid_t pid) {
	char path[64], text[1024];
	const char *p;
	int field = 2;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!read_text(path, text, sizeof(text)))
		return 0;
	/* The name in parentheses may hold anything; fields are counted from behind it. */
	p = strrchr(text, ')');
	while (p && field < 22) {
		p = strchr(p + 1, ' ');
		field++;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

static void add(struct processes *p, pid_t pid) {
	struct process *items;

	if (p->n == MAX_PIDS || contains(p, pid))
		return;
	items = realloc(p->items, (p->n + 1) * sizeof(*items));
	if (!items)
		return;
	p->items = items;
	p->items[p->n++] = (struct process){ .pid = pid, .started = start_time(pid) };
}

/* Adds the children of process `pid`: each of its threads may have started some. */
static void add_children(struct processes *p, pid_t pid) {
	char path[300], text[8192];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		char *at = text, *end;
		long child;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, entry->d_name);
		if (!read_text(path, text, sizeof(text)))
			continue;
		while ((child = strtol(at, &end, 10)) > 0 && end != at) {
			add(p, (pid_t)child);
			at = end;
		}
	}
	if (tasks)
		closedir(tasks);
}

static void clear(struct processes *p) {
	free(p->items);
	*p = (struct processes){ 0 };
}

static void forget(void) {
	has_command = false;
	clear(&before);
	clear(&tracked);
}

void children_forget(void) {
	pthread_mutex_lock(&lock);
	forget();
	pthread_mutex_unlock(&lock);
}

void children_note_command(void) {
	pthread_mutex_lock(&lock);
	forget();
	add_children(&before, getpid());
	has_command = true;
	pthread_mutex_unlock(&lock);
}

void children_note_own(void) {
	pthread_mutex_lock(&lock);
	has_command = false;
	pthread_mutex_unlock(&lock);
}

static bool is_alive(const struct process *p) {
	return p->started && start_time(p->pid) == p->started;
}

static void signal_all(const struct processes *p, int signal) {
	for (size_t i = 0; i < p->n; i++)
		if (is_alive(&p->items[i]))
			kill(p->items[i].pid, signal);
}

void children_doom(void) {
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < tracked.n; i++)
		if (is_alive(&tracked.items[i]))
			add(&doomed, tracked.items[i].pid);
	/* With what they have started since. */
	for (size_t i = 0; i < doomed.n; i++)
		add_children(&doomed, doomed.items[i].pid);
	if (doomed.n && !has_doomed) {
		clock_gettime(CLOCK_MONOTONIC, &deadline);
		deadline.tv_sec += GRACE_S;
		has_doomed = true;
	}
	pthread_mutex_unlock(&lock);
}

bool children_reap(void) {
	struct timespec now;

	if (!has_doomed)
		return false;
	pthread_mutex_lock(&lock);
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec > deadline.tv_sec ||
		(now.tv_sec == deadline.tv_sec && now.tv_nsec >= deadline.tv_nsec)) {
		signal_all(&doomed, SIGKILL);
		clear(&doomed);
		has_doomed = false;
	}
	pthread_mutex_unlock(&lock);
	return has_doomed;
}

void children_signal(int signal) {
	struct processes now = { 0 };

	pthread_mutex_lock(&lock);
	if (has_command) {
		add_children(&now, getpid());
		for (size_t i = 0; i < now.n; i++)
			if (!contains(&before, now.items[i].pid))
				add(&tracked, now.items[i].pid);
	}
	/* The list grows while it is walked: children of children. */
	for (size_t i = 0; i < tracked.n; i++)
		add_children(&tracked, tracked.items[i].pid);
	signal_all(&tracked, signal);
	pthread_mutex_unlock(&lock);
	clear(&now);
}

/* SPDX-License-Identifier: MIT */
/*
 * Stopwatch
 *
 * Drives a program that speaks lines on its standard streams and says how long it takes to answer,
 * in microseconds: "median minimum maximum". C, so that the driver's own share is the same few
 * microseconds for all that are compared.
 *
 *	stopwatch start N LINE -- COMMAND…
 *		N times: spawn, send LINE, until the first line back
 *	stopwatch trip N SETUP LINE -- COMMAND…
 *		spawn, send the lines of file SETUP, one answer for each line with an "id"; then
 *		LINE to its answer, N times
 *
 * Lines without an "id" that come back (notifications) are passed over in `trip`.
 */

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct program {
	pid_t pid;
	int fd; /* a socketpair, as most agents use */
	char bytes[1 << 20];
	size_t len;
};

static double now_us(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what) {
	perror(what);
	exit(1);
}

static void program_start(struct program *p, char **command) {
	posix_spawn_file_actions_t actions;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
	posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
	if (posix_spawnp(&p->pid, command[0], &actions, NULL, command, environ))
		die(command[0]);
	posix_spawn_file_actions_destroy(&actions);
	close(pair[1]);
	p->fd = pair[0];
	p->len = 0;
}

static void program_end(struct program *p) {
	close(p->fd);
	waitpid(p->pid, NULL, 0);
}

static void program_send(struct program *p, const char *line) {
	size_t len = strlen(line);

	if (write(p->fd, line, len) != (ssize_t)len)
		die("write");
}

/* Reads up to and including the next line that has an id (any line with `any`). */
static void program_wait(struct program *p, bool any) {
	for (;;) {
		char *end = memchr(p->bytes, '\n', p->len);
		ssize_t got;

		if (end) {
			bool counts;

			*end = '\0';
			counts = any || strstr(p->bytes, "\"id\":");
			p->len -= (size_t)(end + 1 - p->bytes);
			memmove(p->bytes, end + 1, p->len);
			if (counts)
				return;
			continue;
		}
		if (p->len == sizeof(p->bytes))
			die("answer too long");
		got = read(p->fd, p->bytes + p->len, sizeof(p->bytes) - p->len);
		if (got <= 0)
			die("the program ended");
		p->len += (size_t)got;
	}
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(double *us, size_t n) {
	qsort(us, n, sizeof(*us), compare);
	printf("%.1f %.1f %.1f\n", us[n / 2], us[0], us[n - 1]);
}

static char *with_newline(const char *line) {
	char *text;

	if (asprintf(&text, "%s\n", line) < 0)
		die("asprintf");
	return text;
}

int main(int argc, char **argv) {
	static struct program p;
	bool is_start = argc > 5 && !strcmp(argv[1], "start") && !strcmp(argv[4], "--");
	bool is_trip = argc > 6 && !strcmp(argv[1], "trip") && !strcmp(argv[5], "--");
	size_t n;
	double *us;

	if (!is_start && !is_trip)
		return 64;
	signal(SIGPIPE, SIG_IGN);
	n = (size_t)labs(strtol(argv[2], NULL, 10));
	us = calloc(n ? n : 1, sizeof(*us));
	if (!us || !n)
		return 64;

	if (is_start) {
		char *line = with_newline(argv[3]);

		for (size_t i = 0; i < n; i++) {
			double begin = now_us();

			program_start(&p, argv + 5);
			program_send(&p, line);
			program_wait(&p, true);
			us[i] = now_us() - begin;
			program_end(&p);
		}
		free(line);
	} else {
		char *line = with_newline(argv[4]);
		char setup[65536];
		FILE *f = fopen(argv[3], "r");

		if (!f)
			die(argv[3]);
		program_start(&p, argv + 6);
		while (fgets(setup, sizeof(setup), f)) {
			program_send(&p, setup);
			if (strstr(setup, "\"id\":"))
				program_wait(&p, false);
		}
		fclose(f);
		for (size_t i = 0; i < n; i++) {
			double begin = now_us();

			program_send(&p, line);
			program_wait(&p, false);
			us[i] = now_us() - begin;
		}
		program_end(&p);
		free(line);
	}
	report(us, n);
	free(us);
	return 0;
}

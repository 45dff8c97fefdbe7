/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One tools/call from its admission to its answer, and the queue's state: for callq.c (whose turn),
 * callrun.c (running and answering), callclock.c (what time does to calls) and callwords.c (what is
 * said about them). Others use callq.h. Times are seconds of CLOCK_MONOTONIC; 0 means none.
 */

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/answer.h"
#include "daemon/callq.h"
#include "daemon/catalog.h"
#include "daemon/output.h"
#include "daemon/protocol.h"
#include "daemon/session.h"

struct call {
	struct call *next; /* in its session's line */
	uint64_t id;
	uint64_t session;
	struct reply_to to; /* its id is NULL once it was answered or dropped */
	struct tool_ref tool;
	enum profile profile;
	char *name;      /* what tools_error_answer() wants; NULL: nothing */
	char *cwd;       /* of a session that has gone */
	char *arguments; /* NULL once handed over */
	size_t arguments_len;

	/* What was asked for. */
	double timeout_s;
	double progress_s;
	char *token; /* raw; NULL: no progress */

	double asked_at;      /* when it came */
	double waits_since;   /* that, or when the shell became ready */
	double progress_due;
	double last_progress; /* value last sent */

	/* Once it runs. */
	double started_at;
	double deadline;          /* none once it has passed */
	double overdue_at;        /* when it is answered as still running */
	double interrupt_due;     /* of the next one */
	enum shell_reason reason; /* of the last one */
	unsigned again;           /* how many there were for that reason */
	unsigned n_interrupts;
	bool is_cancelled;        /* nobody is to be answered */
	bool is_overdue;          /* was answered as still running */
	char *cancelled_id;       /* keeps the id taken until the work ends */
	uint64_t catalog_revision;
};

/* A session's waiting calls, oldest first. It outlives the session until the grace has passed. */
struct line {
	struct line *next; /* whose turn is later */
	uint64_t session;
	struct call *first, **last;
	size_t n_calls;
	bool is_in_turns;
	double drop_at; /* the session has gone: then its calls go, too */
};

/* An answer that waits until its session has listed its tools. */
struct held {
	struct held *next;
	struct reply_to to;
	struct buf members;
	double send_at;
};

struct callq {
	struct daemon *daemon;
	struct line *turns, **turns_end; /* lines with calls, the next one's turn first */
	struct call *running;
	struct held *held;
	struct event *tick;
	double tick_due; /* 0: not set */
	uint64_t last_id;
	uint64_t n_ended;
	uint64_t n_cells; /* executes that ran, of all sessions */
	size_t n_waiting;
};

/* Seconds of the monotonic clock. */
double callq_now(void);

/* callq.c */

/* Accepts NULL, returns NULL. */
struct call *call_free(struct call *c);

/* Hands the next call to the Python half when it is free. */
void callq_run_next(struct callq *q);

/* Takes a call out of its line; `at` is the link that leads to it. */
struct call *callq_unlink(struct callq *q, struct line *line, struct call **at);

/* callrun.c */

/* Hands a call over that has left its line. */
void callrun_start(struct callq *q, struct call *c);

/* Answers a call that does not run, with an error, and frees it; it has left its line. */
void callrun_refuse(struct callq *q, struct call *c, const char *code, bool is_retryable,
	char *message /* taken */);

/* Answers the running call, which goes on, with an error and what it wrote so far. */
void callrun_answer_overdue(struct callq *q, struct call *c);

/* Sends a held answer; `at` is the link that leads to it. */
void callrun_release(struct callq *q, struct held **at);

/* A line in the log: tool, outcome, duration. */
void callrun_log(const struct call *c, const char *outcome);

/* callclock.c */

/*
 * Reads the arguments `timeout` and `progress_interval`, where a tool has them, and sets the call's
 * limits. False with a complaint (owned by the caller) when one is no number of seconds.
 */
bool callclock_read(const struct settings *settings, struct call *c, struct jspan arguments,
	char **ret_message);

/*
 * The tick. Each of the others sees to it that it comes in time: for a moment, a call, for all of
 * them.
 */
void callclock_on_tick(evutil_socket_t fd, short what, void *arg);
void callclock_expect(struct callq *q, double due);
void callclock_watch(struct callq *q, const struct call *c);
void callclock_watch_all(struct callq *q);

/* Interrupts the running call. */
void callclock_interrupt(struct callq *q, enum shell_reason reason);

/* callwords.c: texts are owned by the caller, NULL when memory is short. */

char *callwords_busy(struct callq *q, const struct call *c, double now);
char *callwords_overdue(struct callq *q, const struct call *c);
char *callwords_startup_failed(const struct daemon *d);

/* A progress message. */
void callwords_progress(struct callq *q, const struct call *c, double now, struct buf *b);

/*
 * What the session should know beside its answer, and `more` (NULL: none), which the answer itself
 * has to say; marks it as told. NULL: nothing.
 */
char *callwords_notice(struct callq *q, struct session *s, const char *more);

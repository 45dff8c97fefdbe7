/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The Border
 *
 * All that the two halves know of each other: plain C structs that change hands. The event half
 * runs the loop and never waits for Python; the Python half is one shared object (shell.so) that
 * the event half loads next to the libpython of the interpreter chosen at run time. Whoever took a
 * struct last owns it. No lock of the border is held while the GIL is being waited for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/answer.h"
#include "daemon/config.h"

#define SHELL_ABI 1

/* The phases of a start, in order; names as in the contract. */
enum shell_phase {
	SHELL_CONFIGURATION,
	SHELL_PATH_VALIDATION,
	SHELL_PROVISIONING,
	SHELL_DEPENDENCY_INSTALL,
	SHELL_REUSE_VALIDATION,
	SHELL_LIBRARY_PATHS,
	SHELL_PRELOAD,
	SHELL_BINDING,
	N_SHELL_PHASES,
};

/* The name as the contract spells it: "configuration", … */
const char *shell_phase_name(enum shell_phase phase);

/* The interpreter, as loader.c found it. Strings live until the process ends. */
struct shell_interpreter {
	char *executable; /* what sys.executable has to be: a venv's python stays the venv's */
	char *libpython;  /* already open, RTLD_GLOBAL */
	unsigned version; /* 0x030d0200: major, minor, micro, as PY_VERSION_HEX >> 8 << 8 */
};

/* One tools/call. Made by the event half, freed by the Python half. */
struct shell_call {
	uint64_t id;
	uint64_t session;
	char *tool; /* a stable tool's name or a dynamic one's */
	enum profile profile;
	char *arguments; /* checked JSON text of an object, NUL-terminated, surrogates mended */
	size_t arguments_len;
	char *cwd;        /* the session's directory; NULL: it has none yet */
	double timeout_s; /* its limit, for messages; 0: none */
};

void shell_call_free(struct shell_call *call);

/* What a call came to. Made by the Python half, freed by the event half. */
struct shell_reply {
	uint64_t call;
	struct answer *answer; /* NULL when memory was short even for that */
	char *cwd;             /* the directory it left behind; NULL when it cannot be told */
	char *cwd_note;        /* said on stderr's behalf: the directory was gone; NULL */
};

void shell_reply_free(struct shell_reply *reply);

/* A registered tool, as tools/list shows it. */
struct shell_tool {
	char *name;
	char *description;
	char *schema;  /* JSON text of inputSchema */
	bool is_stale; /* unlisted; a call still reaches the Python half, which says why */
};

/*
 * The registrations, sorted by name in byte order. Made by the Python half, then the event half's.
 */
struct shell_catalog {
	struct shell_tool *tools;
	size_t n_tools;
	uint64_t revision; /* grows by one when the listed ones change */
};

void shell_catalog_free(struct shell_catalog *catalog);

/* Why a call is interrupted. */
enum shell_reason {
	SHELL_TIMEOUT,   /* the answer is error `timeout`, whatever the cell made of it */
	SHELL_CANCELLED, /* nobody reads the answer */
	SHELL_OPERATOR,  /* a person: the answer is what KeyboardInterrupt makes of it */
};

/*
 * What the Python half calls, always from its own threads, with or without the GIL: none of these
 * blocks or calls back. Texts and structs given are taken over.
 */
struct shell_host {
	void *ctx;

	/* A phase of the start begins. */
	void (*phase)(void *ctx, enum shell_phase phase);

	/* Python runs, the shell is whole. `ipython_version` is copied. */
	void (*ready)(void *ctx, const char *python_version, const char *ipython_version);

	/* It never will: the phase it failed in and a message that names the way out. Taken. */
	void (*failed)(void *ctx, enum shell_phase phase, char *message);

	/* A submitted call has ended; all it wrote is in the pipes. Taken. */
	void (*reply)(void *ctx, struct shell_reply *reply);

	/* New catalog, before the reply of the call that changed it. Taken. */
	void (*catalog)(void *ctx, struct shell_catalog *catalog);
};

/* What the Python half offers. */
struct shell_ops {
	unsigned abi; /* SHELL_ABI */

	/*
	 * Runs the Python half on the calling thread, from before Python's initialisation to after
	 * its end. Returns 0 after stop(), or -1 after host->failed() (Python may be initialised
	 * then; the thread must not call again). The arguments outlive it.
	 * `files_directory` is where images are saved; NULL: save none.
	 */
	int (*run)(const struct settings *settings, const struct shell_interpreter *interpreter,
		const char *files_directory, const struct shell_host *host);

	/* Hands over a call; the caller submits the next one only after its reply. Any thread. */
	void (*submit)(struct shell_call *call);

	/*
	 * Interrupts call `id` if it is the one that runs; false when it is not. Never reaches a
	 * later call. `again` is how often it was interrupted before for that reason. From the
	 * first time on, children that the cell's shell commands left get SIGKILL instead of
	 * SIGINT; the first time they alone get something, unless a person asks, because the cell
	 * may be tidying up. Any thread.
	 */
	bool (*interrupt)(uint64_t id, enum shell_reason reason, unsigned again);

	/*
	 * Asks run() to end after the call that runs; may come before run() has begun. Any thread.
	 */
	void (*stop)(void);
};

/* The one symbol of shell.so. */
#define SHELL_ENTRY "shell_entry"
typedef const struct shell_ops *shell_entry_fn(void);

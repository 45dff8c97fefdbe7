/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Handlers of the stable tools, one row each; a name without a row is a registered tool's. The
 * worker finds the row, decodes the arguments and calls it.
 */

#include "daemon/shell.h"
#include "daemon/python/py.h"

/* One tools/call while it runs. */
struct tool_run {
	const struct shell_call *call;
	PyObject *arguments; /* dict, borrowed; no user code ever sees it */
	struct answer *answer;
};

/*
 * Runs a tool and fills run->answer whole (every member of the contract, in its order; execute
 * leaves stdout, stderr and truncated to the event half and sets answer->cuts). User code's
 * exceptions end up in the answer. Returns 0, or -1 with an exception that is not user code's
 * (memory): the worker makes an error of it.
 */
typedef int tool_handler(struct tool_run *run);

tool_handler execute_run;         /* execute.c */
tool_handler callfn_run;          /* callfn.c */
tool_handler discover_list;       /* discover.c */
tool_handler discover_search;
tool_handler discover_inspect;
tool_handler namespace_remove;    /* namespace.c */
tool_handler namespace_reset;
tool_handler reload_run;          /* reload.c */
tool_handler dyntool_register;    /* dyntool.c */
tool_handler dyntool_unregister;
tool_handler dyntool_run;         /* a registered tool's call, named by call->tool */

/*
 * Readies what the handlers need: names, and references to Python's own library that user code
 * cannot rebind. Once, after ipshell_new() and before any user code. -1 with an exception.
 */
int toolbox_init(void);

/* The handler of a tool's name; dyntool_run when it is no stable tool's. */
tool_handler *toolbox_find(const char *name);

/*
 * Arguments, checked alike for all tools; an argument that arrives as JSON text in a string is
 * taken as what it says where the kind wants no string.
 */
enum arg_kind { ARG_STRING, ARG_STRING_OR_NULL, ARG_BOOL, ARG_INTEGER, ARG_NUMBER, ARG_OBJECT,
	ARG_ARRAY };

struct arg {
	const char *name;
	enum arg_kind kind;
	bool is_required;
	const char *code; /* error code when it is missing or mistyped; NULL: invalid_arguments */
};

/*
 * Checks run->arguments against `args` (ends with an empty row) and fills `values`, one reference
 * for each row (NULL: absent), borrowed from run->arguments. Returns 0; 1 and an error in
 * *ret_error that names the argument and the rule; -1 with an exception.
 */
int toolbox_arguments(struct tool_run *run, const struct arg *args, PyObject **values,
	struct answer_error *ret_error);

/* What an array argument may hold: strings, at most MAX_RESULTS of them. */
struct string_rule {
	const char *argument;
	const char *code; /* error code when it does not hold */
	size_t max_chars; /* of each string */
	bool takes_empty;
};

/* True when the list keeps to the rule; else an error that names the entry. */
bool toolbox_check_strings(PyObject *array, const struct string_rule *rule,
	struct answer_error *ret_error);

/* Writes a list of str as member `member`, an array. 0, or -1 with an exception. */
int toolbox_add_strings(struct tool_run *run, const char *member, PyObject *strings);

/*
 * The value of JSON text in a str. New reference; NULL without an exception when it is no JSON,
 * else with one.
 */
PyObject *toolbox_decode(PyObject *string);

/*
 * Makes an error of the raised exception and clears it, as pyerr_take() does; but when the call was
 * interrupted by its deadline it is `timeout`, whatever was raised.
 */
void toolbox_take_error(struct tool_run *run, const char *code, struct answer_error *ret_error);

/* Fills `ret_error` with a code and a message (printf). */
void toolbox_refuse(struct answer_error *ret_error, const char *code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Fills `ret_error` with `what` and the raised exception's own words, and clears it. 1, or -1 when
 * memory is short.
 */
int toolbox_refuse_raised(struct answer_error *ret_error, const char *code, const char *what);

/* Fills `ret_error` with name_not_found for that name. */
void toolbox_refuse_name(struct answer_error *ret_error, PyObject *name);

/*
 * True when the deadline interrupted the call, also when user code swallowed the interrupt; then
 * *ret_error is `timeout`. Handlers that run user code ask before they call it a success.
 */
bool toolbox_timed_out(struct tool_run *run, struct answer_error *ret_error);

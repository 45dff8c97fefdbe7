/* SPDX-License-Identifier: MIT */
/*
 * Settings
 *
 * One row for each variable of the daemon's environment: name, kind, bounds, default, meaning. The
 * rows are all there is to know about a setting: reading, checking, the default (which is parsed
 * like any value), the words of a complaint and the tables of the manual come from here. Nothing is
 * guessed: an empty value is not an unset one, and a value that breaks its rule never becomes
 * another one.
 *
 * Runs once, before any thread; afterwards the settings are constant.
 */

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "daemon/config.h"
#include "daemon/setting.h"

enum {
	/* Anything that is counted: no product with a small factor overflows, no double rounds
	 * it. */
	MAX_COUNT = INT32_MAX,
	/* Longest name that MCP gives a tool. */
	MAX_TOOL_NAME = 128,
	/* Deeper JSON would not be read back by clients; also bounds recursion. */
	MAX_DEPTH = 512,
	/* 31 years: every timer can hold it. */
	MAX_SECONDS = 1000000000,
	/* Of a value, in a complaint about it. */
	MAX_SHOWN = 60,
};

static config_parse parse_profile, parse_integer, parse_seconds, parse_switch;

#define FIELD(name) offsetof(struct settings, name)
#define PREFIX	    "IPYTHON_MCP_"

static const struct config_row rows[] = {
	{ PREFIX "PROFILE", parse_profile, FIELD(profile), .rule = "full, compact or text",
		.fallback = "full", .doc = "which tools a session sees, and how they answer" },
	{ PREFIX "ENVIRONMENT_WORKSPACE", setting_workspace, FIELD(environment_workspace),
		.rule = "an absolute directory (a leading ~ is expanded) without \"..\" outside "
			"the client's project, given together with " PREFIX "ACTIVE_ENVIRONMENT",
		.doc = "directory of the named environments, created when absent" },
	{ PREFIX "ACTIVE_ENVIRONMENT", setting_environment_name, FIELD(active_environment),
		.rule = "a letter or digit, then at most 63 letters, digits, '.', '_' or '-', "
			"given together with " PREFIX "ENVIRONMENT_WORKSPACE",
		.doc = "name of the environment that the shell uses" },
	{ PREFIX "ENVIRONMENT_REQUIREMENTS", setting_requirements, FIELD(environment_requirements),
		.rule = "a JSON array of at most 64 requirements (PEP 508), each at most 512 "
			"characters and together at most 8192, that belong to " PREFIX
			"ACTIVE_ENVIRONMENT",
		.fallback = "[]",
		.doc = "what is installed into the environment" },
	{ PREFIX "ENVIRONMENT_VARIABLES", setting_variables, FIELD(environment_variables),
		.rule = "a JSON object of at most 128 strings, each at most 8192 characters "
			"without NUL, under names made of letters, digits and '_' that begin "
			"with no digit",
		.fallback = "{}",
		.doc = "environment variables of the shell; their values are kept secret" },
	{ PREFIX "ENVIRONMENT_SETUP_TIMEOUT_SECONDS", parse_seconds,
		FIELD(environment_setup_timeout_s), .min = DBL_TRUE_MIN, .max = INFINITY,
		.rule = "a positive finite number", .fallback = "300",
		.doc = "limit of each step that prepares the environment" },
	{ PREFIX "LIBRARY_PATHS", setting_library_paths, FIELD(library_paths),
		.rule = "absolute directories without \"..\", separated by ':'", .fallback = "",
		.doc = "directories of modules, after the environment's" },
	{ PREFIX "PRELOAD_MODULES", setting_modules, FIELD(preload_modules),
		.rule = "dotted module names, separated by ','", .fallback = "",
		.doc = "modules that are imported before the shell is built" },
	{ PREFIX "MODULE_ALIASES", setting_aliases, FIELD(module_aliases),
		.rule = "a JSON object from modules of " PREFIX "PRELOAD_MODULES to different "
			"ASCII identifiers that are neither protected names nor keywords",
		.fallback = "{}",
		.doc = "names under which preloaded modules are bound" },
	{ PREFIX "MAX_TEXT_CHARS", parse_integer, FIELD(max_text_chars), 1, MAX_COUNT,
		.fallback = "8192", .doc = "bound of one text, and of startup diagnostics" },
	{ PREFIX "MAX_REPR_CHARS", parse_integer, FIELD(max_repr_chars), 1, MAX_COUNT,
		.fallback = "1024", .doc = "bound of one representation" },
	{ PREFIX "MAX_TRACEBACK_CHARS", parse_integer, FIELD(max_traceback_chars), 1, MAX_COUNT,
		.fallback = "4096", .doc = "bound of one traceback" },
	{ PREFIX "MAX_RESULTS", parse_integer, FIELD(max_results), 1, MAX_COUNT, .fallback = "100",
		.doc = "items kept of a collection or a listing" },
	{ PREFIX "MAX_DISPLAY_ITEMS", parse_integer, FIELD(max_display_items), 1, MAX_COUNT,
		.fallback = "20", .doc = "display items of one execute" },
	{ PREFIX "MAX_JSON_DEPTH", parse_integer, FIELD(max_json_depth), 1, MAX_DEPTH,
		.fallback = "6", .doc = "nesting of a value translated to JSON" },
	{ PREFIX "MAX_TOOL_NAME_CHARS", parse_integer, FIELD(max_tool_name_chars), 1, MAX_TOOL_NAME,
		.fallback = "64", .doc = "bound of a registered tool's name" },
	{ PREFIX "MAX_TOOL_DESCRIPTION_CHARS", parse_integer, FIELD(max_tool_description_chars), 1,
		MAX_COUNT, .fallback = "1024", .doc = "bound of a description" },
	{ PREFIX "MAX_DYNAMIC_TOOLS", parse_integer, FIELD(max_dynamic_tools), 1, MAX_COUNT,
		.fallback = "100", .doc = "registered tools at a time" },
	{ PREFIX "RAW_OUTPUT", parse_switch, FIELD(raw_output), .rule = "on or off",
		.fallback = "off", .doc = "keep control sequences in stdout and stderr" },
	{ PREFIX "MAX_OUTPUT_FILE_BYTES", parse_integer, FIELD(max_output_file_bytes), 0, MAX_COUNT,
		.fallback = "67108864", .doc = "bound of one saved output; 0 saves none" },
	{ PREFIX "MAX_IMAGE_BYTES", parse_integer, FIELD(max_image_bytes), 1, MAX_COUNT,
		.fallback = "1048576", .doc = "bound of one image, before base64" },
	{ PREFIX "EXECUTION_TIMEOUT_SECONDS", parse_seconds, FIELD(execution_timeout_s), 0,
		MAX_SECONDS, .fallback = "0", .doc = "limit of a call that names none; 0 is none" },
	{ PREFIX "MAX_EXECUTION_TIMEOUT_SECONDS", parse_seconds, FIELD(max_execution_timeout_s), 0,
		MAX_SECONDS, .fallback = "0", .doc = "highest limit a call may name; 0 is any" },
	{ PREFIX "MAX_WAIT_SECONDS", parse_seconds, FIELD(max_wait_s), 0, MAX_SECONDS,
		.fallback = "30",
		.doc = "how long a call waits for its turn; 0 is as long as its own limit" },
	{ PREFIX "MAX_MESSAGE_BYTES", parse_integer, FIELD(max_message_bytes), 1, MAX_COUNT,
		.fallback = "67108864", .doc = "bound of one line from a client" },
	{ PREFIX "MAX_REPLY_BYTES", parse_integer, FIELD(max_reply_bytes), 1, MAX_COUNT,
		.fallback = "8388608", .doc = "bound of one line to a client" },
	{ PREFIX "MAX_PENDING_CALLS", parse_integer, FIELD(max_pending_calls), 1, MAX_COUNT,
		.fallback = "64", .doc = "calls that wait, for each session" },
	{ PREFIX "MAX_SESSIONS", parse_integer, FIELD(max_sessions), 1, MAX_COUNT,
		.fallback = "1024", .doc = "attached sessions" },
	{ PREFIX "PYTHON", setting_python, FIELD(python),
		.rule = "the absolute path of an interpreter, or the name of a command",
		.doc = "the interpreter, whose environment is the shell's" },
	{ PREFIX "HISTORY", parse_switch, FIELD(history), .rule = "on or off", .fallback = "off",
		.doc = "keep IPython's history database" },
	{ PREFIX "IPYTHON_PROFILE", setting_ipython_profile, FIELD(ipython_profile),
		.rule = "the name of an IPython profile, without '/'",
		.doc = "IPython profile that the shell loads" },
};

const char *config_lookup(char **environment, const char *variable) {
	size_t len = strlen(variable);

	for (char **e = environment; *e; e++)
		if (!strncmp(*e, variable, len) && (*e)[len] == '=')
			return *e + len + 1;
	return NULL;
}

/* Writes what a value must be: the row's own words, or those that its bounds make. */
static void add_rule(struct buf *b, const struct config_row *row) {
	if (row->rule)
		buf_add_str(b, row->rule);
	else if (row->parse == parse_seconds)
		buf_addf(b, "a number from %.0f to %.0f", row->min, row->max);
	else
		buf_addf(b, "an integer from %.0f to %.0f", row->min, row->max);
}

void config_fault(struct config_run *run, const struct config_row *row, const char *format, ...) {
	va_list args;
	char *detail = NULL;

	run->n_faults++;
	buf_addf(run->faults, "%s must be ", row->variable);
	add_rule(run->faults, row);
	if (format) {
		va_start(args, format);
		if (vasprintf(&detail, format, args) < 0)
			detail = NULL;
		va_end(args);
		if (detail)
			buf_addf(run->faults, "; %s", detail);
		else
			run->is_out_of_memory = true;
		free(detail);
	}
	buf_add_char(run->faults, '\n');
}

/* A fault of a value that cannot be a secret: shows it, on one line and bounded. */
static void fault_with_value(struct config_run *run, const struct config_row *row,
	const char *value) {
	char shown[MAX_SHOWN + 1];
	size_t len = strlen(value);

	if (!len) {
		config_fault(run, row, "it is empty (unset it for the default)");
		return;
	}
	for (size_t i = 0; i < len && i < MAX_SHOWN; i++)
		shown[i] = value[i] >= ' ' && value[i] <= '~' ? value[i] : '?';
	shown[len < MAX_SHOWN ? len : MAX_SHOWN] = '\0';
	config_fault(run, row, "it is \"%s%s\"", shown, len > MAX_SHOWN ? "…" : "");
}

static void parse_profile(struct config_run *run, const struct config_row *row, const char *value) {
	enum profile *field = config_field(run, row);
	int profile = profile_from_name(value);

	if (profile < 0)
		fault_with_value(run, row, value);
	else
		*field = (enum profile)profile;
}

static void parse_switch(struct config_run *run, const struct config_row *row, const char *value) {
	bool *field = config_field(run, row);

	if (!strcmp(value, "on"))
		*field = true;
	else if (!strcmp(value, "off"))
		*field = false;
	else
		fault_with_value(run, row, value);
}

static void parse_integer(struct config_run *run, const struct config_row *row, const char *value) {
	size_t *field = config_field(run, row);
	uint64_t number = 0;
	const char *p;

	/* Bounds are far below 2^64 / 10, so that the sum cannot wrap before it is too large. */
	for (p = value; *p >= '0' && *p <= '9' && number <= MAX_COUNT; p++)
		number = number * 10 + (uint64_t)(*p - '0');
	if (p == value || *p || number < row->min || number > row->max)
		fault_with_value(run, row, value);
	else
		*field = (size_t)number;
}

/* A decimal number as people write it; strtod() alone would take blanks, hexadecimal and "inf"
 * too. */
static bool is_decimal(const char *s) {
	size_t digits = strspn(s, "0123456789");

	s += digits;
	if (*s == '.') {
		size_t fraction = strspn(++s, "0123456789");

		digits += fraction;
		s += fraction;
	}
	if (!digits)
		return false;
	if (*s == 'e' || *s == 'E') {
		s += strspn(s + 1, "+-") > 0 ? 2 : 1;
		digits = strspn(s, "0123456789");
		s += digits;
	}
	return digits && !*s;
}

static void parse_seconds(struct config_run *run, const struct config_row *row, const char *value) {
	double *field = config_field(run, row);
	double number = is_decimal(value) ? strtod(value, NULL) : NAN;

	/* Written so that NaN fails. */
	if (isfinite(number) && number >= row->min && number <= row->max)
		*field = number;
	else
		fault_with_value(run, row, value);
}

/* Rules that concern two variables; both have been read. */
static void check_pairs(struct config_run *run) {
	struct settings *s = run->settings;

	for (const struct config_row *row = rows; row < rows + ARRAY_LEN(rows); row++) {
		bool is_set = config_lookup(run->environment, row->variable) != NULL;

		if (row->parse == setting_workspace && is_set &&
			!config_lookup(run->environment, PREFIX "ACTIVE_ENVIRONMENT"))
			config_fault(run, row, PREFIX "ACTIVE_ENVIRONMENT is not set");
		if (row->parse == setting_environment_name && is_set &&
			!config_lookup(run->environment, PREFIX "ENVIRONMENT_WORKSPACE"))
			config_fault(run, row, PREFIX "ENVIRONMENT_WORKSPACE is not set");
		if (row->parse == setting_requirements && s->environment_requirements &&
			strcmp(s->environment_requirements, "[]") &&
			!config_lookup(run->environment, PREFIX "ACTIVE_ENVIRONMENT"))
			config_fault(run, row, PREFIX "ACTIVE_ENVIRONMENT is not set");
	}
}

int config_load(struct settings *s, char **environment, const char *project_root,
	struct buf *faults) {
	struct config_run run = {
		.settings = s,
		.environment = environment,
		.project_root = project_root,
		.faults = faults,
	};

	*s = (struct settings){ 0 };
	for (const struct config_row *row = rows; row < rows + ARRAY_LEN(rows); row++) {
		const char *value = config_lookup(environment, row->variable);

		/* The default first: a value that is refused leaves it in place. */
		if (row->fallback)
			row->parse(&run, row, row->fallback);
		if (value && !*value)
			config_fault(&run, row, "it is empty (unset it for the default)");
		else if (value)
			row->parse(&run, row, value);
	}
	check_pairs(&run);
	if (run.is_out_of_memory || faults->has_failed)
		return -ENOMEM;
	return run.n_faults;
}

void config_deinit(struct settings *s) {
	free(s->environment_workspace);
	free(s->active_environment);
	free(s->environment_requirements);
	free(s->environment_variables);
	setting_free_list(s->library_paths);
	setting_free_list(s->preload_modules);
	free(s->module_aliases);
	free(s->python);
	free(s->ipython_profile);
	*s = (struct settings){ 0 };
}

void config_describe(void (*f)(void *ctx, const char *variable, const char *rule,
			     const char *fallback, const char *doc),
	void *ctx) {
	for (const struct config_row *row = rows; row < rows + ARRAY_LEN(rows); row++) {
		auto_buf struct buf b = BUF_NULL;
		auto_free char *rule = NULL;

		add_rule(&b, row);
		rule = buf_take(&b, NULL);
		f(ctx, row->variable, rule ? rule : "", row->fallback ? row->fallback : "",
			row->doc);
	}
}

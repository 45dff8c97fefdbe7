/* SPDX-License-Identifier: MIT */
/* The settings' table: each row's default, its bounds and the words of its complaint. */

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "daemon/config.h"
#include "tests/lib/check.h"

/* What config_load() made of one environment. */
struct loaded {
	struct settings settings;
	char *faults;
	int n;
};

static void loaded_deinit(struct loaded *l) {
	config_deinit(&l->settings);
	free(l->faults);
}

#define auto_loaded __attribute__((cleanup(loaded_deinit)))

/* Loads "NAME=VALUE" texts; NULL ends them. */
static struct loaded load_in(const char *project_root, ...) {
	char *environment[8] = { 0 };
	auto_buf struct buf faults = BUF_NULL;
	struct loaded l = { 0 };
	va_list args;

	va_start(args, project_root);
	for (size_t i = 0; i < ARRAY_LEN(environment) - 1; i++) {
		environment[i] = va_arg(args, char *);
		if (!environment[i])
			break;
	}
	va_end(args);
	l.n = config_load(&l.settings, environment, project_root, &faults);
	l.faults = buf_take(&faults, NULL);
	return l;
}

#define LOAD(...) load_in(NULL, __VA_ARGS__, NULL)

/* Loads variable IPYTHON_MCP_`name` = `value` alone. */
static struct loaded load_one(const char *name, const char *value) {
	auto_free char *assignment = NULL;

	if (asprintf(&assignment, "IPYTHON_MCP_%s=%s", name, value) < 0)
		abort();
	return LOAD(assignment);
}

/* One row of the contract. */
static const struct integer_row {
	const char *name;
	size_t offset;
	size_t fallback, min, max;
} integers[] = {
	{ "MAX_TEXT_CHARS", offsetof(struct settings, max_text_chars), 8192, 1, INT32_MAX },
	{ "MAX_REPR_CHARS", offsetof(struct settings, max_repr_chars), 1024, 1, INT32_MAX },
	{ "MAX_TRACEBACK_CHARS", offsetof(struct settings, max_traceback_chars), 4096, 1,
		INT32_MAX },
	{ "MAX_RESULTS", offsetof(struct settings, max_results), 100, 1, INT32_MAX },
	{ "MAX_DISPLAY_ITEMS", offsetof(struct settings, max_display_items), 20, 1, INT32_MAX },
	{ "MAX_JSON_DEPTH", offsetof(struct settings, max_json_depth), 6, 1, 512 },
	{ "MAX_TOOL_NAME_CHARS", offsetof(struct settings, max_tool_name_chars), 64, 1, 128 },
	{ "MAX_TOOL_DESCRIPTION_CHARS", offsetof(struct settings, max_tool_description_chars), 1024,
		1, INT32_MAX },
	{ "MAX_DYNAMIC_TOOLS", offsetof(struct settings, max_dynamic_tools), 100, 1, INT32_MAX },
	{ "MAX_OUTPUT_FILE_BYTES", offsetof(struct settings, max_output_file_bytes), 67108864, 0,
		INT32_MAX },
	{ "MAX_IMAGE_BYTES", offsetof(struct settings, max_image_bytes), 1048576, 1, INT32_MAX },
	{ "MAX_MESSAGE_BYTES", offsetof(struct settings, max_message_bytes), 67108864, 1,
		INT32_MAX },
	{ "MAX_REPLY_BYTES", offsetof(struct settings, max_reply_bytes), 8388608, 1, INT32_MAX },
	{ "MAX_PENDING_CALLS", offsetof(struct settings, max_pending_calls), 64, 1, INT32_MAX },
	{ "MAX_SESSIONS", offsetof(struct settings, max_sessions), 1024, 1, INT32_MAX },
};

static const struct seconds_row {
	const char *name;
	size_t offset;
	double fallback;
	bool takes_zero;
} seconds[] = {
	{ "ENVIRONMENT_SETUP_TIMEOUT_SECONDS",
		offsetof(struct settings, environment_setup_timeout_s), 300, false },
	{ "EXECUTION_TIMEOUT_SECONDS", offsetof(struct settings, execution_timeout_s), 0, true },
	{ "MAX_EXECUTION_TIMEOUT_SECONDS", offsetof(struct settings, max_execution_timeout_s), 0,
		true },
	{ "MAX_WAIT_SECONDS", offsetof(struct settings, max_wait_s), 30, true },
};

static size_t integer_of(const struct loaded *l, const struct integer_row *row) {
	return *(const size_t *)((const char *)&l->settings + row->offset);
}

static double seconds_of(const struct loaded *l, const struct seconds_row *row) {
	return *(const double *)((const char *)&l->settings + row->offset);
}

/* True when the load failed with one line that names the variable and its rule. */
static bool names_fault(const struct loaded *l, const char *name) {
	auto_free char *head = NULL;

	if (asprintf(&head, "IPYTHON_MCP_%s must be ", name) < 0)
		abort();
	return l->n == 1 && !strncmp(l->faults, head, strlen(head)) &&
		strchr(l->faults, '\n') == l->faults + strlen(l->faults) - 1;
}

static void test_config_defaults(void) {
	auto_loaded struct loaded l = LOAD("HOME=/nowhere");

	CHECK(l.n == 0);
	CHECK_STR(l.faults, "");
	for (size_t i = 0; i < ARRAY_LEN(integers); i++)
		CHECK(integer_of(&l, &integers[i]) == integers[i].fallback);
	for (size_t i = 0; i < ARRAY_LEN(seconds); i++)
		CHECK(seconds_of(&l, &seconds[i]) == seconds[i].fallback);
	CHECK(l.settings.profile == PROFILE_FULL);
	CHECK(!l.settings.raw_output && !l.settings.history);
	CHECK(!l.settings.environment_workspace && !l.settings.active_environment);
	CHECK(!l.settings.python && !l.settings.ipython_profile);
	CHECK_STR(l.settings.environment_requirements, "[]");
	CHECK_STR(l.settings.environment_variables, "{}");
	CHECK_STR(l.settings.module_aliases, "{}");
	CHECK(l.settings.library_paths && !l.settings.library_paths[0]);
	CHECK(l.settings.preload_modules && !l.settings.preload_modules[0]);
}

static void test_config_integers(void) {
	static const char *const wrong[] = { "", " 1", "1 ", "+1", "-1", "1.0", "0x10", "1e3",
		"abc", "99999999999999999999999999", "18446744073709551617" };

	for (const struct integer_row *row = integers; row < integers + ARRAY_LEN(integers);
		row++) {
		const size_t right[] = { row->min, row->min + 1, row->max };
		char text[32];

		for (size_t i = 0; i < ARRAY_LEN(right); i++) {
			auto_loaded struct loaded l = { 0 };

			snprintf(text, sizeof(text), "%zu", right[i]);
			l = load_one(row->name, text);
			CHECK(l.n == 0 && integer_of(&l, row) == right[i]);
		}
		for (size_t i = 0; i < ARRAY_LEN(wrong) + 2; i++) {
			auto_loaded struct loaded l = { 0 };

			if (i < ARRAY_LEN(wrong))
				snprintf(text, sizeof(text), "%s", wrong[i]);
			else if (i == ARRAY_LEN(wrong))
				snprintf(text, sizeof(text), "%zu", row->max + 1);
			else if (row->min)
				snprintf(text, sizeof(text), "0");
			else
				continue;
			l = load_one(row->name, text);
			CHECK(names_fault(&l, row->name));
			CHECK(integer_of(&l, row) == row->fallback);
		}
	}
}

static void test_config_seconds(void) {
	static const char *const wrong[] = { "", "-1", "nan", "inf", "1e999", "0x1p3", " 1", "1s",
		".", "1e", "+1", "1,5" };

	for (const struct seconds_row *row = seconds; row < seconds + ARRAY_LEN(seconds); row++) {
		auto_loaded struct loaded half = load_one(row->name, "0.5");
		auto_loaded struct loaded power = load_one(row->name, "1.5e2");
		auto_loaded struct loaded zero = load_one(row->name, "0");

		CHECK(half.n == 0 && seconds_of(&half, row) == 0.5);
		CHECK(power.n == 0 && seconds_of(&power, row) == 150);
		CHECK(row->takes_zero ? zero.n == 0 && seconds_of(&zero, row) == 0
				      : names_fault(&zero, row->name));
		for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
			auto_loaded struct loaded l = load_one(row->name, wrong[i]);

			CHECK(names_fault(&l, row->name));
			CHECK(seconds_of(&l, row) == row->fallback);
		}
	}
}

static void test_config_words(void) {
	auto_loaded struct loaded l = LOAD("IPYTHON_MCP_PROFILE=text", "IPYTHON_MCP_RAW_OUTPUT=on",
		"IPYTHON_MCP_HISTORY=on", "IPYTHON_MCP_PYTHON=/usr/bin/python3",
		"IPYTHON_MCP_IPYTHON_PROFILE=mine");
	static const struct {
		const char *name, *value;
	} wrong[] = { { "PROFILE", "Full" }, { "PROFILE", "" }, { "RAW_OUTPUT", "yes" },
		{ "RAW_OUTPUT", "1" }, { "HISTORY", "ON" }, { "PYTHON", "bin/python" },
		{ "PYTHON", "" }, { "IPYTHON_PROFILE", "a/b" }, { "IPYTHON_PROFILE", "" } };

	CHECK(l.n == 0 && l.settings.profile == PROFILE_TEXT);
	CHECK(l.settings.raw_output && l.settings.history);
	CHECK_STR(l.settings.python, "/usr/bin/python3");
	CHECK_STR(l.settings.ipython_profile, "mine");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		auto_loaded struct loaded bad = load_one(wrong[i].name, wrong[i].value);

		CHECK(names_fault(&bad, wrong[i].name));
	}
}

static void test_config_says_what_is_wrong(void) {
	auto_loaded struct loaded l = load_one("MAX_RESULTS", "0");
	auto_loaded struct loaded word = load_one("PROFILE", "loud\n\x1b[31m");
	auto_loaded struct loaded many = LOAD("IPYTHON_MCP_MAX_RESULTS=x", "IPYTHON_MCP_HISTORY=x");

	CHECK_STR(l.faults, "IPYTHON_MCP_MAX_RESULTS must be an integer from 1 to 2147483647; "
			    "it is \"0\"\n");
	CHECK_STR(word.faults, "IPYTHON_MCP_PROFILE must be full, compact or text; "
			       "it is \"loud??[31m\"\n");
	CHECK(many.n == 2);
}

static void test_config_environment_goes_together(void) {
	auto_loaded struct loaded both = LOAD("IPYTHON_MCP_ENVIRONMENT_WORKSPACE=/w//x/./y/",
		"IPYTHON_MCP_ACTIVE_ENVIRONMENT=a.b_C-9");
	auto_loaded struct loaded workspace = load_one("ENVIRONMENT_WORKSPACE", "/w");
	auto_loaded struct loaded active = load_one("ACTIVE_ENVIRONMENT", "a");
	auto_loaded struct loaded requirements = load_one("ENVIRONMENT_REQUIREMENTS", "[\"a\"]");
	auto_loaded struct loaded none = load_one("ENVIRONMENT_REQUIREMENTS", "[]");

	CHECK(both.n == 0);
	CHECK_STR(both.settings.environment_workspace, "/w/x/y");
	CHECK_STR(both.settings.active_environment, "a.b_C-9");
	CHECK(names_fault(&workspace, "ENVIRONMENT_WORKSPACE"));
	CHECK(names_fault(&active, "ACTIVE_ENVIRONMENT"));
	CHECK(names_fault(&requirements, "ENVIRONMENT_REQUIREMENTS"));
	CHECK(none.n == 0);
}

static void test_config_environment_name(void) {
	static const char *const wrong[] = { ".a", "-a", "_a", "a/b", "a b", "ä",
		"a1234567890123456789012345678901234567890123456789012345678901234" };
	auto_loaded struct loaded longest = LOAD("IPYTHON_MCP_ENVIRONMENT_WORKSPACE=/w",
		"IPYTHON_MCP_ACTIVE_ENVIRONMENT="
		"a123456789012345678901234567890123456789012345678901234567890123");

	CHECK(longest.n == 0 && strlen(longest.settings.active_environment) == 64);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		auto_free char *assignment = NULL;
		auto_loaded struct loaded l = { 0 };

		if (asprintf(&assignment, "IPYTHON_MCP_ACTIVE_ENVIRONMENT=%s", wrong[i]) < 0)
			abort();
		l = LOAD(assignment, "IPYTHON_MCP_ENVIRONMENT_WORKSPACE=/w");
		CHECK(names_fault(&l, "ACTIVE_ENVIRONMENT"));
	}
}

static void test_config_workspace(void) {
	static const char name[] = "IPYTHON_MCP_ACTIVE_ENVIRONMENT=a";
	auto_loaded struct loaded home =
		LOAD(name, "HOME=/h", "IPYTHON_MCP_ENVIRONMENT_WORKSPACE=~/w");
	auto_loaded struct loaded alone =
		LOAD(name, "HOME=/h", "IPYTHON_MCP_ENVIRONMENT_WORKSPACE=~");
	auto_loaded struct loaded nobody =
		LOAD(name, "IPYTHON_MCP_ENVIRONMENT_WORKSPACE=~no-such-user/w");
	auto_loaded struct loaded relative = LOAD(name, "IPYTHON_MCP_ENVIRONMENT_WORKSPACE=w");
	auto_loaded struct loaded dots = LOAD(name, "IPYTHON_MCP_ENVIRONMENT_WORKSPACE=/a/../w");

	CHECK_STR(home.settings.environment_workspace, "/h/w");
	CHECK_STR(alone.settings.environment_workspace, "/h");
	CHECK(names_fault(&nobody, "ENVIRONMENT_WORKSPACE"));
	CHECK(names_fault(&relative, "ENVIRONMENT_WORKSPACE"));
	CHECK(names_fault(&dots, "ENVIRONMENT_WORKSPACE"));
}

static void test_config_workspace_outside_project(void) {
	char directory[] = "/tmp/test-config-XXXXXX";
	auto_free char *real = NULL, *link = NULL, *inside = NULL;

	CHECK(mkdtemp(directory));
	if (asprintf(&real, "%s/real", directory) < 0 ||
		asprintf(&link, "%s/link", directory) < 0 ||
		asprintf(&inside, "IPYTHON_MCP_ENVIRONMENT_WORKSPACE=%s/real/envs", directory) < 0)
		abort();
	CHECK(mkdir(real, 0700) == 0 && symlink("real", link) == 0);
	{
		static const char name[] = "IPYTHON_MCP_ACTIVE_ENVIRONMENT=a";
		auto_loaded struct loaded told = load_in(real, name, inside, NULL);
		auto_loaded struct loaded through_link = load_in(link, name, inside, NULL);
		auto_loaded struct loaded beside = load_in("/tmp/test-config", name, inside, NULL);
		auto_loaded struct loaded untold = load_in(NULL, name, inside, NULL);

		CHECK(names_fault(&told, "ENVIRONMENT_WORKSPACE"));
		CHECK(names_fault(&through_link, "ENVIRONMENT_WORKSPACE"));
		CHECK(beside.n == 0 && untold.n == 0);
	}
	unlink(link);
	rmdir(real);
	rmdir(directory);
}

static void test_config_requirements(void) {
	static const char environment[] = "IPYTHON_MCP_ACTIVE_ENVIRONMENT=a";
	static const char workspace[] = "IPYTHON_MCP_ENVIRONMENT_WORKSPACE=/w";
	static const char *const wrong[] = { "{}", "[1]", "[\"\"]", "[\"a b\"]", "[",
		"[\"a\\u0000\"]", "x" };
	auto_loaded struct loaded l = LOAD(environment, workspace,
		"IPYTHON_MCP_ENVIRONMENT_REQUIREMENTS="
		"[\"b (<2,>=1)\", \"a@ https://h/a.whl\", \"b>=1,<2\", \"a @ https://h/a.whl\"]");
	auto_buf struct buf many = BUF_NULL, wide = BUF_NULL, total = BUF_NULL;
	auto_free char *many_text = NULL, *wide_text = NULL, *total_text = NULL;

	CHECK(l.n == 0);
	CHECK_STR(l.settings.environment_requirements, "[\"b<2,>=1\",\"a @ https://h/a.whl\"]");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		auto_free char *text = NULL;
		auto_loaded struct loaded bad = { 0 };

		if (asprintf(&text, "IPYTHON_MCP_ENVIRONMENT_REQUIREMENTS=%s", wrong[i]) < 0)
			abort();
		bad = LOAD(environment, workspace, text);
		CHECK(names_fault(&bad, "ENVIRONMENT_REQUIREMENTS"));
	}

	/* 65 of them, one of 513 characters, 17 of 500. */
	buf_add_str(&many, "IPYTHON_MCP_ENVIRONMENT_REQUIREMENTS=[\"a0\"");
	for (int i = 1; i < 65; i++)
		buf_addf(&many, ",\"a%d\"", i);
	buf_add_str(&many, "]");
	many_text = buf_take(&many, NULL);
	buf_addf(&wide, "IPYTHON_MCP_ENVIRONMENT_REQUIREMENTS=[\"%.*d\"]", 513, 1);
	wide_text = buf_take(&wide, NULL);
	buf_addf(&total, "IPYTHON_MCP_ENVIRONMENT_REQUIREMENTS=[\"%.*d\"", 500, 1);
	for (int i = 1; i < 17; i++)
		buf_addf(&total, ",\"%.*d\"", 500, i + 1);
	buf_add_str(&total, "]");
	total_text = buf_take(&total, NULL);
	{
		auto_loaded struct loaded too_many = LOAD(environment, workspace, many_text);
		auto_loaded struct loaded too_wide = LOAD(environment, workspace, wide_text);
		auto_loaded struct loaded too_much = LOAD(environment, workspace, total_text);

		CHECK(names_fault(&too_many, "ENVIRONMENT_REQUIREMENTS"));
		CHECK(names_fault(&too_wide, "ENVIRONMENT_REQUIREMENTS"));
		CHECK(names_fault(&too_much, "ENVIRONMENT_REQUIREMENTS"));
	}
}

static void test_config_variables(void) {
	auto_loaded struct loaded l =
		load_one("ENVIRONMENT_VARIABLES", "{\"B_1\": \"x\", \"_a\": \"\"}");
	static const char *const wrong[] = { "[]", "{\"A\": 1}", "{\"1A\": \"SECRET\"}",
		"{\"\": \"SECRET\"}", "{\"A-B\": \"SECRET\"}", "{\"A\": \"SECRET\\u0000\"}",
		"{\"A\": \"SECRET\" \"B\"}", "{\"A\": \"SECRET\", \"A\": \"SECRET\"}", "SECRET" };
	auto_buf struct buf b = BUF_NULL;
	auto_free char *longest = NULL, *longer = NULL;

	CHECK(l.n == 0);
	CHECK_STR(l.settings.environment_variables, "{\"B_1\":\"x\",\"_a\":\"\"}");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		auto_loaded struct loaded bad = load_one("ENVIRONMENT_VARIABLES", wrong[i]);

		CHECK(names_fault(&bad, "ENVIRONMENT_VARIABLES"));
		CHECK(!strstr(bad.faults, "SECRET"));
	}
	buf_addf(&b, "{\"A\": \"%.*d\"}", 8192, 1);
	longest = buf_take(&b, NULL);
	buf_addf(&b, "{\"A\": \"%.*d\"}", 8193, 1);
	longer = buf_take(&b, NULL);
	{
		auto_loaded struct loaded fits = load_one("ENVIRONMENT_VARIABLES", longest);
		auto_loaded struct loaded does_not = load_one("ENVIRONMENT_VARIABLES", longer);

		CHECK(fits.n == 0);
		CHECK(names_fault(&does_not, "ENVIRONMENT_VARIABLES"));
	}
}

static void test_config_library_paths(void) {
	auto_loaded struct loaded l = load_one("LIBRARY_PATHS", "/a//b/:/c:/a/b");
	static const char *const wrong[] = { "a", "/a:", ":/a", "/a::/b", "/a/..", "~/a", "" };

	CHECK(l.n == 0);
	CHECK_STR(l.settings.library_paths[0], "/a/b");
	CHECK_STR(l.settings.library_paths[1], "/c");
	CHECK(!l.settings.library_paths[2]);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		auto_loaded struct loaded bad = load_one("LIBRARY_PATHS", wrong[i]);

		CHECK(names_fault(&bad, "LIBRARY_PATHS"));
		CHECK(!bad.settings.library_paths[0]);
	}
}

static void test_config_modules_and_aliases(void) {
	static const char modules[] = "IPYTHON_MCP_PRELOAD_MODULES=json, os.path,_x1,json";
	auto_loaded struct loaded l =
		LOAD(modules, "IPYTHON_MCP_MODULE_ALIASES={\"os.path\": \"p\", \"json\": \"j\"}");
	static const char *const wrong_modules[] = { "", ",", "a,", "a..b", ".a", "a.", "1a", "a b",
		"a-b" };
	static const char *const wrong_aliases[] = { "[]", "{\"sys\": \"s\"}", "{\"json\": 1}",
		"{\"json\": \"_j\"}", "{\"json\": \"In\"}", "{\"json\": \"class\"}",
		"{\"json\": \"a.b\"}", "{\"json\": \"\"}", "{\"json\": \"j\", \"os.path\": \"j\"}",
		"{\"json\": \"j\", \"json\": \"k\"}" };

	CHECK(l.n == 0);
	CHECK_STR(l.settings.preload_modules[0], "json");
	CHECK_STR(l.settings.preload_modules[1], "os.path");
	CHECK_STR(l.settings.preload_modules[2], "_x1");
	CHECK(!l.settings.preload_modules[3]);
	CHECK_STR(l.settings.module_aliases, "{\"os.path\":\"p\",\"json\":\"j\"}");
	for (size_t i = 0; i < ARRAY_LEN(wrong_modules); i++) {
		auto_loaded struct loaded bad = load_one("PRELOAD_MODULES", wrong_modules[i]);

		CHECK(names_fault(&bad, "PRELOAD_MODULES"));
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong_aliases); i++) {
		auto_free char *text = NULL;
		auto_loaded struct loaded bad = { 0 };

		if (asprintf(&text, "IPYTHON_MCP_MODULE_ALIASES=%s", wrong_aliases[i]) < 0)
			abort();
		bad = LOAD(modules, text);
		CHECK(names_fault(&bad, "MODULE_ALIASES"));
		CHECK_STR(bad.settings.module_aliases, "{}");
	}
}

/* Every row has words, and its default is a value that its own rule accepts. */
static void describe_one(void *ctx, const char *variable, const char *rule, const char *fallback,
	const char *doc) {
	unsigned *n = ctx;
	auto_loaded struct loaded l = { 0 };

	*n += 1;
	CHECK(!strncmp(variable, "IPYTHON_MCP_", 12));
	CHECK(*rule && *doc);
	if (!*fallback)
		return;
	l = load_one(variable + 12, fallback);
	CHECK(l.n == 0);
}

static void test_config_describe(void) {
	unsigned n = 0;

	config_describe(describe_one, &n);
	CHECK(n == 31);
}

int main(void) {
	RUN(test_config_defaults);
	RUN(test_config_integers);
	RUN(test_config_seconds);
	RUN(test_config_words);
	RUN(test_config_says_what_is_wrong);
	RUN(test_config_environment_goes_together);
	RUN(test_config_environment_name);
	RUN(test_config_workspace);
	RUN(test_config_workspace_outside_project);
	RUN(test_config_requirements);
	RUN(test_config_variables);
	RUN(test_config_library_paths);
	RUN(test_config_modules_and_aliases);
	RUN(test_config_describe);
	return check_done();
}

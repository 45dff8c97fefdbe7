/* SPDX-License-Identifier: MIT */
/*
 * Settings That Are More Than a Number
 *
 * Names, paths, lists and JSON objects of the settings' table, each brought into the one form that
 * the rest of the daemon reads. What is checked here is what the text alone tells; whether a
 * directory exists or is a symbolic link is a matter of the moment and checked when it is used
 * (paths.c).
 *
 * Complaints here show names and positions, never values: requirements may hold a password in a URL
 * and variables are secrets altogether.
 */

#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/utf8.h"
#include "daemon/requirement.h"
#include "daemon/setting.h"

enum {
	MAX_ENVIRONMENT_NAME = 64,
	MAX_REQUIREMENTS = 64,
	MAX_REQUIREMENT_CHARS = 512,
	MAX_REQUIREMENTS_CHARS = 8192,
	MAX_VARIABLES = 128,
	MAX_VARIABLE_CHARS = 8192,
};

static inline void cleanup_json(json_t **json) {
	json_decref(*json);
}

#define auto_json __attribute__((cleanup(cleanup_json)))

void setting_free_list(char **list) {
	if (!list)
		return;
	for (char **item = list; *item; item++)
		free(*item);
	free(list);
}

/* Replaces the field's string by `value`, which is taken. */
static void store_string(struct config_run *run, const struct config_row *row, char *value) {
	char **field = config_field(run, row);

	if (!value) {
		run->is_out_of_memory = true;
		return;
	}
	free(*field);
	*field = value;
}

/* Replaces the field by the JSON text of `json`. */
static void store_json(struct config_run *run, const struct config_row *row, const json_t *json) {
	store_string(run, row, json_dumps(json, JSON_COMPACT));
}

/* A list that grows: NULL-terminated from the start. */
struct list {
	char **items;
	size_t n;
};

/* Appends a copy of `len` bytes; false when memory is short. */
static bool list_add(struct list *l, const char *item, size_t len) {
	char **items = realloc(l->items, (l->n + 2) * sizeof(*items));

	if (!items)
		return false;
	l->items = items;
	items[l->n] = strndup(item, len);
	items[l->n + 1] = NULL;
	return items[l->n] && ++l->n;
}

static bool list_has(const struct list *l, const char *item, size_t len) {
	for (size_t i = 0; i < l->n; i++)
		if (strlen(l->items[i]) == len && !memcmp(l->items[i], item, len))
			return true;
	return false;
}

static void store_list(struct config_run *run, const struct config_row *row, struct list *l) {
	char ***field = config_field(run, row);

	if (!l->items)
		l->items = calloc(1, sizeof(*l->items));
	if (!l->items) {
		run->is_out_of_memory = true;
		return;
	}
	setting_free_list(*field);
	*field = l->items;
}

static bool is_ascii_letter(char c) {
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
	return c >= '0' && c <= '9';
}

static bool is_utf8(const char *s) {
	size_t len = strlen(s), n;
	unsigned code;

	for (; len; s += n, len -= n) {
		n = utf8_decode(s, len, &code);
		if (!n)
			return false;
	}
	return true;
}

/* True when one of the components of a path is "..". */
static bool has_dotdot(const char *path, size_t len) {
	for (size_t i = 0; i < len;) {
		size_t n = 0;

		while (i + n < len && path[i + n] != '/')
			n++;
		if (n == 2 && path[i] == '.' && path[i + 1] == '.')
			return true;
		i += n + 1;
	}
	return false;
}

/* Without doubled and trailing slashes and "." components. Owned by the caller, NULL: no memory. */
static char *normalize(const char *path, size_t len) {
	auto_buf struct buf b = BUF_NULL;

	for (size_t i = 0; i < len;) {
		size_t n = 0;

		while (i + n < len && path[i + n] != '/')
			n++;
		if (n && !(n == 1 && path[i] == '.')) {
			buf_add_char(&b, '/');
			buf_add(&b, path + i, n);
		}
		i += n + 1;
	}
	if (!b.len)
		buf_add_char(&b, '/');
	return buf_take(&b, NULL);
}

/* True when `path` is `root` or lies below it; both normalized. */
static bool lies_in(const char *path, const char *root) {
	size_t len = strlen(root);

	if (!strcmp(root, "/"))
		return true;
	return !strncmp(path, root, len) && (!path[len] || path[len] == '/');
}

/* The home directory that a leading "~" or "~user" means; owned by the caller, NULL: unknown. */
static char *home_of(struct config_run *run, const char *user, size_t len) {
	auto_free char *name = strndup(user, len);
	const char *home = len ? NULL : config_lookup(run->environment, "HOME");
	const struct passwd *entry;

	if (home && home[0] == '/')
		return strdup(home);
	if (!name)
		return NULL;
	entry = len ? getpwnam(name) : getpwuid(getuid());
	return entry && entry->pw_dir && entry->pw_dir[0] == '/' ? strdup(entry->pw_dir) : NULL;
}

void setting_workspace(struct config_run *run, const struct config_row *row, const char *value) {
	auto_free char *expanded = NULL, *path = NULL, *root = NULL, *real = NULL;

	if (value[0] == '~') {
		size_t len = strcspn(value, "/");
		auto_free char *home = home_of(run, value + 1, len - 1);
		auto_buf struct buf b = BUF_NULL;

		if (!home) {
			config_fault(run, row, "the home directory that its ~ means is not known");
			return;
		}
		buf_add_str(&b, home);
		buf_add_str(&b, value + len);
		expanded = buf_take(&b, NULL);
	} else {
		expanded = strdup(value);
	}
	if (!expanded) {
		run->is_out_of_memory = true;
		return;
	}
	if (expanded[0] != '/') {
		config_fault(run, row, "it does not begin with '/'");
		return;
	}
	if (has_dotdot(expanded, strlen(expanded))) {
		config_fault(run, row, "it holds \"..\"");
		return;
	}
	if (!is_utf8(expanded)) {
		config_fault(run, row, "it is not valid UTF-8");
		return;
	}
	path = normalize(expanded, strlen(expanded));
	if (!path) {
		run->is_out_of_memory = true;
		return;
	}

	/* The project's own path may lead through links, the workspace's must not: two
	 * comparisons. */
	if (run->project_root && run->project_root[0] == '/') {
		root = normalize(run->project_root, strlen(run->project_root));
		real = realpath(run->project_root, NULL);
		if ((root && lies_in(path, root)) || (real && lies_in(path, real))) {
			config_fault(run, row, "it lies in the project %s", root ? root : real);
			return;
		}
	}
	store_string(run, row, take(path));
}

void setting_environment_name(struct config_run *run, const struct config_row *row,
	const char *value) {
	size_t len = strlen(value);
	bool is_valid =
		len <= MAX_ENVIRONMENT_NAME && (is_ascii_letter(value[0]) || is_digit(value[0]));

	for (size_t i = 0; is_valid && i < len; i++)
		is_valid =
			is_ascii_letter(value[i]) || is_digit(value[i]) || strchr("._-", value[i]);
	if (is_valid)
		store_string(run, row, strdup(value));
	else
		config_fault(run, row, NULL);
}

void setting_python(struct config_run *run, const struct config_row *row, const char *value) {
	if (value[0] == '/' || !strchr(value, '/'))
		store_string(run, row, strdup(value));
	else
		config_fault(run, row, "it is a relative path");
}

void setting_ipython_profile(struct config_run *run, const struct config_row *row,
	const char *value) {
	if (strchr(value, '/') || !is_utf8(value))
		config_fault(run, row, NULL);
	else
		store_string(run, row, strdup(value));
}

void setting_library_paths(struct config_run *run, const struct config_row *row,
	const char *value) {
	struct list list = { 0 };
	unsigned position = 0;

	while (*value) {
		size_t len = strcspn(value, ":");
		auto_free char *path = normalize(value, len);

		position++;
		if (len == 0 || value[0] != '/' || has_dotdot(value, len) ||
			(value[len] == ':' && !value[len + 1])) {
			config_fault(run, row, "directory %u of the list is %s", position,
				len == 0			 ? "empty"
					: value[0] != '/'	 ? "not absolute"
					: has_dotdot(value, len) ? "a path with \"..\""
								 : "followed by an empty one");
			setting_free_list(list.items);
			return;
		}
		if (!path || (!list_has(&list, path, strlen(path)) &&
				     !list_add(&list, path, strlen(path)))) {
			run->is_out_of_memory = true;
			setting_free_list(list.items);
			return;
		}
		value += len + (value[len] == ':');
	}
	store_list(run, row, &list);
}

/* A dotted name of identifiers. Letters beyond ASCII are left for Python's import to judge. */
static bool is_module_name(const char *s, size_t len) {
	bool is_start = true;

	for (size_t i = 0; i < len; i++) {
		bool is_letter = is_ascii_letter(s[i]) || s[i] == '_' || (s[i] & 0x80);

		if (s[i] == '.' ? is_start : !(is_letter || (!is_start && is_digit(s[i]))))
			return false;
		is_start = s[i] == '.';
	}
	return !is_start;
}

void setting_modules(struct config_run *run, const struct config_row *row, const char *value) {
	struct list list = { 0 };
	unsigned position = 0;

	if (!is_utf8(value)) {
		config_fault(run, row, "it is not valid UTF-8");
		return;
	}
	for (const char *p = value; *value;) {
		size_t len = strcspn(p, ","), end = len, start = strspn(p, " \t");

		position++;
		while (end > start && (p[end - 1] == ' ' || p[end - 1] == '\t'))
			end--;
		if (start >= end || !is_module_name(p + start, end - start)) {
			config_fault(run, row, "name %u of the list is none", position);
			setting_free_list(list.items);
			return;
		}
		if (!list_has(&list, p + start, end - start) &&
			!list_add(&list, p + start, end - start)) {
			run->is_out_of_memory = true;
			setting_free_list(list.items);
			return;
		}
		if (!p[len])
			break;
		p += len + 1;
	}
	store_list(run, row, &list);
}

/*
 * The JSON text of a setting, of the type that is asked for; NULL with a fault. The parser's own
 * words are not passed on: they quote the text.
 */
static json_t *parse_json(struct config_run *run, const struct config_row *row, const char *value,
	json_type type) {
	json_error_t error;
	json_t *json = json_loads(value, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);

	if (!json && json_error_code(&error) == json_error_out_of_memory)
		run->is_out_of_memory = true;
	else if (!json && json_error_code(&error) == json_error_duplicate_key)
		config_fault(run, row, "a name occurs twice, the second time at character %d",
			error.position);
	else if (!json)
		config_fault(run, row, "it is no JSON from character %d on", error.position);
	else if (json_typeof(json) != type)
		config_fault(run, row, "it is another kind of JSON");
	else
		return json;
	json_decref(json);
	return NULL;
}

/* Code points of a JSON string. */
static size_t count_chars(const json_t *string) {
	return utf8_count(json_string_value(string), json_string_length(string));
}

/* True when the string is as long as C sees it. */
static bool has_no_nul(const json_t *string) {
	return strlen(json_string_value(string)) == json_string_length(string);
}

static bool array_has_string(const json_t *array, const char *string) {
	size_t i;
	const json_t *item;

	json_array_foreach((json_t *)array, i, item)
		if (!strcmp(json_string_value(item), string))
			return true;
	return false;
}

void setting_requirements(struct config_run *run, const struct config_row *row, const char *value) {
	auto_json json_t *given = parse_json(run, row, value, JSON_ARRAY);
	auto_json json_t *canonical = json_array();
	size_t total = 0, i;
	const json_t *item;

	if (!given || !canonical)
		return;
	if (json_array_size(given) > MAX_REQUIREMENTS) {
		config_fault(run, row, "it has %zu", json_array_size(given));
		return;
	}
	json_array_foreach(given, i, item) {
		auto_free char *text = NULL;
		const char *complaint = NULL;

		if (!json_is_string(item) || !has_no_nul(item)) {
			config_fault(run, row, "item %zu is no string", i + 1);
			return;
		}
		if (count_chars(item) > MAX_REQUIREMENT_CHARS) {
			config_fault(run, row, "item %zu has %zu characters", i + 1,
				count_chars(item));
			return;
		}
		total += count_chars(item);
		if (total > MAX_REQUIREMENTS_CHARS) {
			config_fault(run, row, "together they have more");
			return;
		}
		text = requirement_canonical(json_string_value(item), &complaint);
		if (complaint) {
			config_fault(run, row, "item %zu %s", i + 1, complaint);
			return;
		}
		if (!text || (!array_has_string(canonical, text) &&
				     json_array_append_new(canonical, json_string(text)) < 0)) {
			run->is_out_of_memory = true;
			return;
		}
	}
	store_json(run, row, canonical);
}

static bool is_variable_name(const char *s) {
	if (!*s || is_digit(*s))
		return false;
	for (; *s; s++)
		if (!is_ascii_letter(*s) && !is_digit(*s) && *s != '_')
			return false;
	return true;
}

void setting_variables(struct config_run *run, const struct config_row *row, const char *value) {
	auto_json json_t *variables = parse_json(run, row, value, JSON_OBJECT);
	const char *name;
	const json_t *item;
	unsigned position = 0;

	if (!variables)
		return;
	if (json_object_size(variables) > MAX_VARIABLES) {
		config_fault(run, row, "it has %zu", json_object_size(variables));
		return;
	}
	json_object_foreach(variables, name, item) {
		position++;
		if (!is_variable_name(name)) {
			config_fault(run, row, "name %u is none", position);
			return;
		}
		if (!json_is_string(item)) {
			config_fault(run, row, "the value of %s is no string", name);
			return;
		}
		if (!has_no_nul(item) || count_chars(item) > MAX_VARIABLE_CHARS) {
			config_fault(run, row, "the value of %s %s", name,
				has_no_nul(item) ? "is longer" : "holds a NUL");
			return;
		}
	}
	store_json(run, row, variables);
}

/* What Python reserves, and the six names that belong to IPython. Sorted in byte order. */
static int compare_words(const void *a, const void *b) {
	return strcmp(a, *(const char *const *)b);
}

static bool is_reserved(const char *name) {
	static const char *const words[] = { "False", "In", "None", "Out", "True", "and", "as",
		"assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
		"else", "except", "exit", "finally", "for", "from", "get_ipython", "global", "if",
		"import", "in", "is", "lambda", "nonlocal", "not", "open", "or", "pass", "quit",
		"raise", "return", "try", "while", "with", "yield" };

	return bsearch(name, words, ARRAY_LEN(words), sizeof(*words), compare_words) != NULL;
}

void setting_aliases(struct config_run *run, const struct config_row *row, const char *value) {
	auto_json json_t *aliases = parse_json(run, row, value, JSON_OBJECT);
	auto_json json_t *seen = json_array();
	char **modules = run->settings->preload_modules;
	const char *module;
	const json_t *alias;
	unsigned position = 0;

	if (!aliases || !seen)
		return;
	json_object_foreach(aliases, module, alias) {
		const char *name = json_string_value(alias);
		char **m = modules;

		position++;
		while (m && *m && strcmp(*m, module))
			m++;
		if (!m || !*m) {
			config_fault(run, row, "module %u of it is not preloaded", position);
			return;
		}
		if (!name || !has_no_nul(alias) || !is_variable_name(name) || name[0] == '_' ||
			is_reserved(name)) {
			config_fault(run, row, "the alias of %s is none", module);
			return;
		}
		if (array_has_string(seen, name)) {
			config_fault(run, row, "the alias of %s is another module's, too", module);
			return;
		}
		if (json_array_append_new(seen, json_string(name)) < 0) {
			run->is_out_of_memory = true;
			return;
		}
	}
	store_json(run, row, aliases);
}

/* SPDX-License-Identifier: MIT */
/*
 * Registered Tools
 *
 * register_tool, unregister_tool, and a registered tool's own call; the catalog that the event half
 * shows is built here from the registry and handed over whole, before the answer of the call that
 * changed it. Python thread.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/python/callfn.h"
#include "daemon/python/convert.h"
#include "daemon/python/dyntool.h"
#include "daemon/python/half.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/layers.h"
#include "daemon/python/names.h"
#include "daemon/python/registry.h"
#include "daemon/python/schema.h"
#include "daemon/python/toolbox.h"

static PyObject *getdoc; /* inspect.getdoc, kept: user code may rebind the module's name */

int dyntool_init(void) {
	getdoc = py_import_attr("inspect", "getdoc");
	return getdoc ? schema_init() : -1;
}

static char *copy(const char *s, bool *has_failed) {
	char *twin = strdup(s);

	*has_failed |= !twin;
	return twin;
}

/* Hands a snapshot of the rows to the event half. When memory is short it stays dirty. */
static void publish(void) {
	struct shell_catalog *catalog = calloc(1, sizeof(*catalog));
	bool has_failed = false;

	if (!catalog)
		return;
	catalog->tools = calloc(registry_size() + 1, sizeof(*catalog->tools));
	has_failed = !catalog->tools;
	for (size_t i = 0; !has_failed && i < registry_size(); i++) {
		const struct registration *r = registry_row(i);
		struct shell_tool *t = &catalog->tools[catalog->n_tools++];

		t->name = copy(r->tool_name, &has_failed);
		t->description = copy(r->description, &has_failed);
		t->schema = copy(r->text, &has_failed);
		t->is_stale = r->is_stale;
	}
	catalog->revision = registry_revision();
	if (has_failed) {
		shell_catalog_free(catalog);
		return;
	}
	registry_set_clean();
	half.host->catalog(half.host->ctx, catalog);
}

void dyntool_check(void) {
	registry_check();
	if (registry_is_dirty())
		publish();
}

/* register_tool's answer. `r` NULL: there is only an error. */
static int write_registration(struct tool_run *run, const struct registration *r,
	const struct answer_error *error) {
	struct buf *b;

	answer_add_bool(run->answer, "ok", r != NULL, false);
	b = answer_member(run->answer, "registration", !r);
	if (!r) {
		buf_add_str(b, "null");
		answer_set_error(run->answer, error, run->call->profile);
		return 0;
	}
	buf_add_str(b, "{\"name\":");
	if (convert_add_str(b, r->name, half.settings->max_text_chars, NULL) < 0)
		return -1;
	buf_addf(b, ",\"tool_name\":\"%s\",\"description\":", r->tool_name);
	buf_add_json_string(b, r->description, strlen(r->description));
	buf_addf(b, ",\"description_truncated\":%s,\"input_schema\":",
		r->description_is_cut ? "true" : "false");
	buf_add_str(b, r->text);
	buf_addf(b, ",\"schema_fingerprint\":\"%s\",\"revision\":%llu}", r->fingerprint,
		(unsigned long long)registry_revision());
	answer_add_literal(run->answer, "error", "null", true);
	run->answer->notice = "Clients that do not list tools again reach the function through "
			      "call_function.";
	return 0;
}

/* An ASCII letter, then letters, digits, _ and -, at most MAX_TOOL_NAME_CHARS. */
static bool is_tool_name(const char *name) {
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char others[] = "0123456789_-abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return name[0] && strchr(letters, name[0]) && !name[strspn(name, others)] &&
		strlen(name) <= half.settings->max_tool_name_chars;
}

/* Checks the names that a caller gave. False with an error. */
static bool check_names(PyObject *name, const char *name_text, const char *tool_name,
	struct answer_error *ret_error) {
	if (!PyUnicode_IsIdentifier(name)) {
		toolbox_refuse(ret_error, "invalid_symbol_name",
			"`name` must be a top-level identifier; bind the function to one first.");
		return false;
	}
	if (names_is_protected(name_text)) {
		toolbox_refuse(ret_error, "invalid_symbol_name",
			"`%s` is a protected name; bind the function to another one first.",
			name_text);
		return false;
	}
	if (!is_tool_name(tool_name)) {
		toolbox_refuse(ret_error, "invalid_tool_name",
			"A tool's name is an ASCII letter, then ASCII letters, digits, _ and -, at "
			"most %zu characters.",
			half.settings->max_tool_name_chars);
		return false;
	}
	if (toolbox_find(tool_name) != dyntool_run) {
		toolbox_refuse(ret_error, "stable_tool_collision",
			"`%s` is the name of a built-in tool; give another `tool_name`.",
			tool_name);
		return false;
	}
	return true;
}

/* Checks that the pair is free in the registry. False with an error. */
static bool check_place(PyObject *name, const char *name_text, const char *tool_name,
	struct answer_error *ret_error) {
	const struct registration *by_tool = registry_find(tool_name);
	const struct registration *by_symbol = registry_find_symbol(name);

	if (by_tool && by_tool == by_symbol)
		return true;
	if (by_tool) {
		auto_py *other = py_utf8(by_tool->name);

		PyErr_Clear();
		toolbox_refuse(ret_error, "duplicate_tool_name",
			"The tool `%s` is registered for `%s`; unregister it first or give another "
			"`tool_name`.",
			tool_name, other ? PyBytes_AsString(other) : "?");
		return false;
	}
	if (by_symbol) {
		toolbox_refuse(ret_error, "duplicate_symbol",
			"`%s` is registered as the tool `%s`; unregister that first.", name_text,
			by_symbol->tool_name);
		return false;
	}
	if (registry_size() >= half.settings->max_dynamic_tools) {
		toolbox_refuse(ret_error, "registry_full",
			"%zu tools are registered, which is the limit; unregister one first.",
			registry_size());
		return false;
	}
	return true;
}

/* The given description, else the documentation, else a line that names the function. New str. */
static PyObject *find_description(PyObject *given, PyObject *name, PyObject *object) {
	auto_py *function = NULL;
	auto_py *text = NULL;

	if (given && given != Py_None) {
		Py_INCREF(given);
		return given;
	}
	/* A partial's own is that of its class, and says nothing of what it does. */
	if (layers_is_partial(object))
		function = PyObject_GetAttrString(object, "func");
	PyErr_Clear();
	text = PyObject_CallFunctionObjArgs(getdoc, function ? function : object, NULL);
	PyErr_Clear();
	if (text && PyUnicode_Check(text) && PyUnicode_GetLength(text) > 0)
		return take(text);
	return PyUnicode_FromFormat("Calls `%U` of the shared Python namespace.", name);
}

/* The object to register, borrowed from the namespace. NULL with an error. */
static PyObject *find_object(PyObject *name, struct answer_error *ret_error) {
	borrowed PyObject *object = PyDict_GetItemWithError(ipshell_namespace(), name);

	PyErr_Clear();
	if (!object) {
		toolbox_refuse_name(ret_error, name);
		return NULL;
	}
	if (!PyCallable_Check(object)) {
		toolbox_refuse(ret_error, "not_callable",
			"The name is bound to something that cannot be called.");
		return NULL;
	}
	return object;
}

/* 0 and a registration in the registry; 1 with an error; -1 with an exception. */
static int enroll(PyObject *name, PyObject *tool_name, PyObject *description,
	struct registration **ret_registration, struct answer_error *ret_error) {
	auto_py *name_bytes = py_utf8(name);
	auto_py *tool_bytes = tool_name && tool_name != Py_None ? py_utf8(tool_name) : NULL;
	auto_py *text = NULL;
	auto_py *object = NULL;
	struct registration *r;
	struct schema *schema = NULL;
	const char *symbol, *tool;
	int result;

	if (PyErr_Occurred())
		return -1;
	symbol = PyBytes_AsString(name_bytes);
	tool = tool_bytes ? PyBytes_AsString(tool_bytes) : symbol;
	if (!check_names(name, symbol, tool, ret_error))
		return 1;
	if (description && description != Py_None) {
		auto_py *stripped = PyObject_CallMethod(description, "strip", NULL);

		if (!stripped)
			return -1;
		if (!PyUnicode_GetLength(stripped)) {
			toolbox_refuse(ret_error, "invalid_description",
				"`description` is blank; leave it out to take the function's "
				"documentation.");
			return 1;
		}
	}
	object = find_object(name, ret_error);
	Py_XINCREF(object);
	if (!object || !check_place(name, symbol, tool, ret_error))
		return 1;

	result = schema_new(object, &schema, ret_error);
	if (result)
		return result;
	text = find_description(description, name, object);
	if (!text) {
		schema_free(schema);
		return -1;
	}
	r = registry_put(name, tool, object, schema, text);
	if (!r)
		return -1;
	*ret_registration = r;
	return 0;
}

int dyntool_register(struct tool_run *run) {
	static const struct arg args[] = {
		{ "name", ARG_STRING, true, "invalid_symbol_name" },
		{ "tool_name", ARG_STRING_OR_NULL, false, "invalid_tool_name" },
		{ "description", ARG_STRING_OR_NULL, false, "invalid_description" },
		{ 0 },
	};
	auto_answer_error struct answer_error error = { 0 };
	borrowed PyObject *values[ARRAY_LEN(args)];
	struct registration *r = NULL;
	int result;

	result = toolbox_arguments(run, args, values, &error);
	if (!result)
		result = enroll(values[0], values[1], values[2], &r, &error);
	if (result < 0)
		return -1;
	/* Looking at a signature runs user code, which may have been stopped. */
	if (result) {
		auto_answer_error struct answer_error timeout = { 0 };

		if (toolbox_timed_out(run, &timeout))
			return write_registration(run, NULL, &timeout);
	}
	return write_registration(run, r, &error);
}

/* Drops those that are there; sorts the names into the two lists. 0 or -1 with an exception. */
static int drop_names(PyObject *names, PyObject *unregistered, PyObject *unknown) {
	auto_py *seen = PySet_New(NULL);
	bool was_listed = false;

	if (!seen)
		return -1;
	for (Py_ssize_t k = 0; k < PyList_Size(names); k++) {
		borrowed PyObject *name = PyList_GetItem(names, k);
		auto_py *bytes = py_utf8(name);
		int is_seen = bytes ? PySet_Contains(seen, name) : -1;
		struct registration *r;

		if (is_seen < 0 || PySet_Add(seen, name) < 0)
			return -1;
		if (is_seen)
			continue;
		/* A NUL would end the text: no tool's name holds one. */
		r = strlen(PyBytes_AsString(bytes)) == (size_t)PyBytes_Size(bytes)
			? registry_find(PyBytes_AsString(bytes))
			: NULL;
		if (PyList_Append(r ? unregistered : unknown, name) < 0)
			return -1;
		if (r)
			was_listed |= registry_drop(r);
	}
	if (was_listed)
		registry_count_change();
	if (PyList_Sort(unregistered) < 0 || PyList_Sort(unknown) < 0)
		return -1;
	return 0;
}

int dyntool_unregister(struct tool_run *run) {
	static const struct arg args[] = {
		{ "names", ARG_ARRAY, true, "invalid_names" },
		{ 0 },
	};
	const struct string_rule rule = {
		.argument = "names",
		.code = "invalid_names",
		.max_chars = half.settings->max_tool_name_chars,
	};
	auto_answer_error struct answer_error error = { 0 };
	borrowed PyObject *values[ARRAY_LEN(args)];
	auto_py *unregistered = PyList_New(0);
	auto_py *unknown = PyList_New(0);
	int r;

	r = unregistered && unknown ? toolbox_arguments(run, args, values, &error) : -1;
	if (r < 0)
		return -1;
	if (!r && toolbox_check_strings(values[0], &rule, &error) &&
		drop_names(values[0], unregistered, unknown) < 0)
		return -1;

	answer_add_bool(run->answer, "ok", !error.code, false);
	if (toolbox_add_strings(run, "unregistered", unregistered) < 0 ||
		toolbox_add_strings(run, "unknown", unknown) < 0)
		return -1;
	buf_addf(answer_member(run->answer, "revision", false), "%llu",
		(unsigned long long)registry_revision());
	if (error.code)
		answer_set_error(run->answer, &error, run->call->profile);
	else
		answer_add_literal(run->answer, "error", "null", true);
	return 0;
}

/* Refuses a call of a row that is stale: 0, or -1 with an exception. */
static int answer_stale(struct tool_run *run, PyObject *tool_name, const struct registration *r) {
	auto_answer_error struct answer_error error = { 0 };
	auto_py *name = py_utf8(r->name);

	if (!name)
		return -1;
	toolbox_refuse(&error, "stale_registration",
		"The tool `%s` is stale: %s. Register `%s` again, or unregister the tool.",
		r->tool_name, r->stale_reason ? r->stale_reason : "its signature has changed",
		PyBytes_AsString(name));
	return callfn_fail(run, tool_name, &error);
}

int dyntool_run(struct tool_run *run) {
	auto_answer_error struct answer_error error = { 0 };
	auto_py *tool_name = PyUnicode_FromString(run->call->tool);
	auto_py *keywords = NULL;
	auto_py *object = NULL;
	struct registration *r = registry_find(run->call->tool);
	int result;

	if (!tool_name)
		return -1;
	if (!r) {
		toolbox_refuse(&error, "tool_not_found",
			"The tool `%.100s` is not registered any more.", run->call->tool);
		return callfn_fail(run, tool_name, &error);
	}
	/* A thread of the user's may have moved the binding since the last check. */
	registry_check_one(r);
	if (r->is_stale)
		return answer_stale(run, tool_name, r);

	result = schema_arguments(r->schema, run->arguments, &keywords, &error.message);
	if (result < 0)
		return -1;
	if (result) {
		error.code = "invalid_arguments";
		return callfn_fail(run, tool_name, &error);
	}
	/* Held for the call: the function may unregister or rebind itself. */
	object = r->object;
	Py_INCREF(object);
	return callfn_call(run, tool_name, object, keywords);
}

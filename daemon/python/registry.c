/* SPDX-License-Identifier: MIT */
/*
 * Registry
 *
 * A registration ties a tool's name to a name of the namespace and remembers the schema that was
 * published for it. It follows its name: whatever is bound there is called as long as its signature
 * gives that same schema. Once it does not, the registration is stale: off the list, and so it
 * stays until somebody registers it anew, even when the old signature returns.
 *
 * After every operation all registrations are checked against what they were made of (watch.c),
 * which costs a fraction of a microsecond each; inspect is asked only about those where something
 * moved. Python thread.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/python/half.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/registry.h"

static struct {
	struct registration **rows; /* sorted by tool_name in byte order */
	size_t n_rows;
	uint64_t revision;
	bool is_dirty; /* the published catalog is older than the rows */
} registry;

static struct registration *registration_free(struct registration *r) {
	if (!r)
		return NULL;
	Py_XDECREF(r->name);
	Py_XDECREF(r->object);
	schema_free(r->schema);
	free(r->tool_name);
	free(r->text);
	free(r->fingerprint);
	free(r->description);
	free(r->stale_reason);
	free(r);
	return NULL;
}

static void registration_cleanup(struct registration **r) {
	registration_free(*r);
}

#define auto_registration __attribute__((cleanup(registration_cleanup))) struct registration

/* The row of a tool's name, or where it would be inserted; *ret_is_there tells which. */
static size_t find_place(const char *tool_name, bool *ret_is_there) {
	size_t i = 0;
	int order = 1;

	while (i < registry.n_rows && (order = strcmp(tool_name, registry.rows[i]->tool_name)) > 0)
		i++;
	*ret_is_there = i < registry.n_rows && order == 0;
	return i;
}

struct registration *registry_find(const char *tool_name) {
	bool is_there;
	size_t i = find_place(tool_name, &is_there);

	return is_there ? registry.rows[i] : NULL;
}

struct registration *registry_find_symbol(PyObject *name) {
	for (size_t i = 0; i < registry.n_rows; i++)
		if (PyUnicode_Compare(registry.rows[i]->name, name) == 0)
			return registry.rows[i];
	return NULL;
}

/* Takes a row out; its destructors run user code, so the registry is whole before. */
static void drop_row(size_t i) {
	struct registration *r = registry.rows[i];

	registry.n_rows--;
	memmove(&registry.rows[i], &registry.rows[i + 1],
		(registry.n_rows - i) * sizeof(*registry.rows));
	registry.is_dirty = true;
	registration_free(r);
}

/* Makes a row stale and lets go of its object. */
static void make_stale(struct registration *r, const char *reason) {
	PyObject *object = take(r->object);
	struct schema *schema = take(r->schema);
	size_t len = strlen(reason);

	r->is_stale = true;
	/* It becomes a part of a sentence. */
	r->stale_reason = strndup(reason, len && reason[len - 1] == '.' ? len - 1 : len);
	registry.is_dirty = true;
	/* Last: destructors run user code. */
	schema_free(schema);
	Py_XDECREF(object);
}

/* Looks at a row whose binding moved: takes over what is bound now, or makes it stale. */
static void check_moved(struct registration *r, PyObject *object) {
	auto_answer_error struct answer_error error = { 0 };
	struct schema *schema = NULL;
	PyObject *old;

	if (!object) {
		make_stale(r, "its name is no longer bound");
		return;
	}
	if (!PyCallable_Check(object)) {
		make_stale(r, "its name is bound to something that cannot be called");
		return;
	}
	if (schema_new(object, &schema, &error) != 0) {
		PyErr_Clear();
		make_stale(r, error.message ? error.message : "its signature cannot be told");
		return;
	}
	if (strcmp(schema_fingerprint(schema), r->fingerprint)) {
		schema_free(schema);
		make_stale(r, "its signature has changed");
		return;
	}
	old = r->object;
	Py_INCREF(object);
	r->object = object;
	schema_free(r->schema);
	r->schema = schema;
	Py_XDECREF(old);
}

/* True when the row became stale by this look. */
static bool look_at(struct registration *r) {
	auto_py *object = NULL;

	if (r->is_stale)
		return false;
	object = PyDict_GetItemWithError(ipshell_namespace(), r->name);
	Py_XINCREF(object);
	if (object && object == r->object && schema_is_fresh(r->schema))
		return false;
	PyErr_Clear();
	check_moved(r, object);
	return r->is_stale;
}

/* A registration before it has its place. NULL with an exception. */
static struct registration *registration_new(PyObject *name, const char *tool_name,
	PyObject *object, struct schema *schema, PyObject *description) {
	auto_registration *r = calloc(1, sizeof(*r));
	auto_py *bytes = py_utf8(description);

	if (!bytes || !r) {
		schema_free(schema);
		return bytes ? (struct registration *)PyErr_NoMemory() : NULL;
	}
	r->schema = schema;
	Py_INCREF(name);
	PyUnicode_InternInPlace(&name);
	r->name = name;
	Py_INCREF(object);
	r->object = object;
	r->tool_name = strdup(tool_name);
	r->text = strdup(schema_text(schema));
	r->fingerprint = strdup(schema_fingerprint(schema));
	r->description = pyerr_bound(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes),
		half.settings->max_tool_description_chars, &r->description_is_cut);
	if (!r->tool_name || !r->text || !r->fingerprint || !r->description)
		return (struct registration *)PyErr_NoMemory();
	return take(r);
}

/* Makes room for a row at `i`. 0 or -1 with an exception. */
static int insert_row(size_t i) {
	struct registration **rows = realloc(registry.rows,
		(registry.n_rows + 1) * sizeof(struct registration *));

	if (!rows) {
		PyErr_NoMemory();
		return -1;
	}
	registry.rows = rows;
	memmove(&rows[i + 1], &rows[i], (registry.n_rows - i) * sizeof(*rows));
	registry.n_rows++;
	return 0;
}

struct registration *registry_put(PyObject *name, const char *tool_name, PyObject *object,
	struct schema *schema, PyObject *description) {
	auto_registration *r = registration_new(name, tool_name, object, schema, description);
	struct registration *old = NULL;
	bool is_there, is_news;
	size_t i;

	if (!r)
		return NULL;
	i = find_place(tool_name, &is_there);
	if (is_there)
		old = registry.rows[i];
	else if (insert_row(i) < 0)
		return NULL;
	is_news = !old || old->is_stale || strcmp(old->fingerprint, r->fingerprint) ||
		strcmp(old->description, r->description);
	registry.revision += is_news;
	registry.is_dirty |= is_news;
	registry.rows[i] = take(r);
	registration_free(old);
	return registry.rows[i];
}

bool registry_drop(struct registration *r) {
	bool was_listed = !r->is_stale, is_there;

	drop_row(find_place(r->tool_name, &is_there));
	return was_listed;
}

void registry_count_change(void) {
	registry.revision++;
}

void registry_clear(void) {
	bool was_listed = false;

	while (registry.n_rows)
		was_listed |= registry_drop(registry.rows[registry.n_rows - 1]);
	registry.revision += was_listed;
}

void registry_check_one(struct registration *r) {
	registry.revision += look_at(r);
}

void registry_check(void) {
	bool has_new_stale = false;

	for (size_t i = 0; i < registry.n_rows; i++)
		has_new_stale |= look_at(registry.rows[i]);
	registry.revision += has_new_stale;
}

size_t registry_size(void) {
	return registry.n_rows;
}

struct registration *registry_row(size_t i) {
	return registry.rows[i];
}

uint64_t registry_revision(void) {
	return registry.revision;
}

bool registry_is_dirty(void) {
	return registry.is_dirty;
}

void registry_set_clean(void) {
	registry.is_dirty = false;
}

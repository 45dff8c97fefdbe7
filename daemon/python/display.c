/* SPDX-License-Identifier: MIT */
/*
 * Display Data
 *
 * IPython's own display hook and publisher stay, so that `_`, `Out` and a trailing `;` go on
 * working; their methods that print are shadowed. Values are therefore not formatted unless
 * somebody asks. What is published (display.h) waits here as items until the call ends.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/python/capture.h"
#include "daemon/python/display.h"
#include "daemon/python/figures.h"
#include "daemon/python/half.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/item.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/worker.h"

static struct {
	struct item *items;
	size_t n, cap;
	bool is_open;               /* an execute runs */
	bool is_cut;                /* an item was dropped */
	bool clears_at_next;        /* clear_output(wait=True) */
	PyObject *hooked;           /* the value that went through the display hook last */
	PyObject *plain_of, *plain; /* text/plain of the value that was formatted last */
} display;

static void clear_items(void) {
	for (size_t i = 0; i < display.n; i++)
		item_deinit(&display.items[i]);
	display.n = 0;
	display.clears_at_next = false;
}

/* Puts a finished item at its place: a new one, or that of the display it updates. Takes it. */
static void place(struct item *item, bool is_update) {
	if (display.clears_at_next)
		clear_items();
	for (size_t i = 0; is_update && item->id && i < display.n; i++) {
		if (display.items[i].id && !strcmp(display.items[i].id, item->id)) {
			item_deinit(&display.items[i]);
			display.items[i] = *item;
			return;
		}
	}
	if (display.n == display.cap && display.n < half.settings->max_display_items) {
		size_t cap = display.cap ? display.cap * 2 : 8;
		struct item *items = realloc(display.items, cap * sizeof(*items));

		if (items) {
			display.items = items;
			display.cap = cap;
		}
	}
	if (display.n == display.cap || display.n >= half.settings->max_display_items) {
		display.is_cut = true;
		item_deinit(item);
		return;
	}
	display.items[display.n++] = *item;
}

/*
 * Outside of execute there is nobody to show anything to, but between calls the next one will be.
 */
static bool is_wanted(void) {
	return display.is_open || !worker_call();
}

static int add(PyObject *data, PyObject *metadata, PyObject *id, bool is_update) {
	struct item item = { 0 };
	auto_py *copy = NULL;
	auto_py *id_text = NULL;

	if (!is_wanted())
		return 0;
	/* What nobody will see needs no work: a loop may display a million times. */
	if (!is_update && !display.clears_at_next &&
		display.n >= half.settings->max_display_items) {
		display.is_cut = true;
		return 0;
	}
	copy = PyDict_Copy(data);
	if (!copy || item_fill(&item, copy, metadata) < 0) {
		item_deinit(&item);
		return -1;
	}
	id_text = id && PyUnicode_Check(id) ? py_utf8(id) : NULL;
	item.id = id_text ? strdup(PyBytes_AsString(id_text)) : NULL;
	PyErr_Clear();
	place(&item, is_update);
	return 0;
}

int display_add(PyObject *data, PyObject *metadata) {
	return add(data, metadata, NULL, false);
}

/* An argument by place or by name, borrowed; NULL when it is not given. */
static PyObject *argument(PyObject *args, PyObject *kwargs, Py_ssize_t at, const char *name) {
	if (at < PyTuple_Size(args))
		return PyTuple_GetItem(args, at);
	return kwargs ? PyDict_GetItemString(kwargs, name) : NULL;
}

/* DisplayPublisher.publish(data, metadata=None, source=…, *, transient=None, update=False,
 * **kwargs) */
static PyObject *publish(PyObject *self, PyObject *args, PyObject *kwargs) {
	borrowed PyObject *data = argument(args, kwargs, 0, "data");
	borrowed PyObject *metadata = argument(args, kwargs, 1, "metadata");
	borrowed PyObject *transient = argument(args, kwargs, 3, "transient");
	borrowed PyObject *update = argument(args, kwargs, 4, "update");
	borrowed PyObject *id = NULL;

	if (!data || !PyDict_Check(data)) {
		PyErr_SetString(PyExc_TypeError, "data must be a dict of MIME type -> payload");
		return NULL;
	}
	if (metadata && !PyDict_Check(metadata))
		metadata = NULL;
	if (transient && PyDict_Check(transient))
		id = PyDict_GetItemString(transient, "display_id");
	if (add(data, metadata, id, update && PyObject_IsTrue(update) == 1) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* DisplayPublisher.clear_output(wait=False): what was shown goes, now or when something replaces
 * it. */
static PyObject *clear_output(PyObject *self, PyObject *args, PyObject *kwargs) {
	borrowed PyObject *wait = argument(args, kwargs, 0, "wait");

	if (wait && PyObject_IsTrue(wait) == 1)
		display.clears_at_next = true;
	else
		clear_items();
	PyErr_Clear();
	Py_RETURN_NONE;
}

static PyObject *do_nothing(PyObject *self, PyObject *args, PyObject *kwargs) {
	Py_RETURN_NONE;
}

/* IPython's formatter of the shell; new reference. */
static PyObject *get_formatter(void) {
	return PyObject_GetAttrString(ipshell_get(), "display_formatter");
}

/* One value in all forms, as an item; HTML only when nothing else would speak. -1 with an
 * exception. */
static int add_formatted(PyObject *value) {
	auto_py *formatter = get_formatter();
	auto_py *pair = formatter ? py_call_method(formatter, "format", "(O)", value) : NULL;
	borrowed PyObject *data = pair && PyTuple_Check(pair) ? PyTuple_GetItem(pair, 0) : NULL;
	borrowed PyObject *metadata = data ? PyTuple_GetItem(pair, 1) : NULL;

	if (!metadata || !PyDict_Check(data))
		return -1;
	return PyDict_Size(data) ? display_add(data, metadata) : 0;
}

/*
 * DisplayHook.compute_format_data(value): nothing, so that IPython prints nothing. A cell may send
 * several values here (ast_node_interactivity, sys.displayhook); all but the last become items.
 */
static PyObject *compute_format_data(PyObject *self, PyObject *args) {
	borrowed PyObject *value = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL;
	auto_py *earlier = take(display.hooked);

	if (!value)
		return NULL;
	if (earlier && display.is_open && add_formatted(earlier) < 0)
		return NULL;
	display.hooked = Py_NewRef(value);
	return Py_BuildValue("({},{})");
}

/* InteractiveShell._tee(channel) of IPython 9, which would keep every piece that is printed for
 * ever. */
static PyObject *tee(PyObject *self, PyObject *args, PyObject *kwargs) {
	static PyObject *context;

	if (!context) {
		auto_py *class = py_import_attr("contextlib", "nullcontext");

		context = class ? PyObject_CallObject(class, NULL) : NULL;
	}
	return Py_XNewRef(context);
}

#define WITH_KEYWORDS(f) ((PyCFunction)(void (*)(void))(f)), METH_VARARGS | METH_KEYWORDS

static PyMethodDef hook_shadows[] = {
	{ "start_displayhook", WITH_KEYWORDS(do_nothing), NULL },
	{ "write_output_prompt", WITH_KEYWORDS(do_nothing), NULL },
	{ "compute_format_data", compute_format_data, METH_VARARGS, NULL },
	{ "write_format_data", WITH_KEYWORDS(do_nothing), NULL },
	{ "log_output", WITH_KEYWORDS(do_nothing), NULL },
	{ "finish_displayhook", WITH_KEYWORDS(do_nothing), NULL },
	{ },
};

static PyMethodDef publisher_shadows[] = {
	{ "publish", WITH_KEYWORDS(publish), NULL },
	{ "clear_output", WITH_KEYWORDS(clear_output), NULL },
	{ },
};

static PyMethodDef shell_shadows[] = {
	{ "_tee", WITH_KEYWORDS(tee), NULL },
	{ },
};

int display_install(void) {
	auto_py *hook = PyObject_GetAttrString(ipshell_get(), "displayhook");
	auto_py *publisher = hook ? PyObject_GetAttrString(ipshell_get(), "display_pub") : NULL;

	if (!publisher || ipshell_shadow(hook, hook_shadows) < 0 ||
		ipshell_shadow(publisher, publisher_shadows) < 0 ||
		ipshell_shadow(ipshell_get(), shell_shadows) < 0)
		return -1;
	return 0;
}

void capture_begin(void) {
	Py_CLEAR(display.hooked);
	display.is_open = true;
}

/*
 * One form of a value, by the formatter of that type; NULL without an exception when it has none.
 */
static PyObject *format_as(PyObject *value, const char *mime) {
	auto_py *formatter = get_formatter();
	auto_py *formatters = formatter ? PyObject_GetAttrString(formatter, "formatters") : NULL;
	auto_py *one = formatters ? PyMapping_GetItemString(formatters, mime) : NULL;
	PyObject *form = NULL;

	ipshell_set_quiet(true);
	if (one)
		form = PyObject_CallFunctionObjArgs(one, value, NULL);
	ipshell_set_quiet(false);
	if (form == Py_None)
		Py_CLEAR(form);
	return form;
}

PyObject *capture_plain_text(PyObject *value) {
	PyObject *text;

	if (display.plain_of == value)
		return Py_XNewRef(display.plain);
	text = format_as(value, "text/plain");
	if (text && !PyUnicode_Check(text))
		Py_CLEAR(text);
	if (!text && pyerr_clear_unless_interrupt() < 0)
		return NULL;
	Py_XDECREF(display.plain_of);
	Py_XDECREF(display.plain);
	display.plain_of = Py_NewRef(value);
	display.plain = Py_XNewRef(text);
	return text;
}

/* All forms of a value but text/plain and HTML: dict and metadata. -1 with an exception. */
static int format_rich(PyObject *value, PyObject **ret_data, PyObject **ret_metadata) {
	auto_py *formatter = get_formatter();
	auto_py *format = formatter ? PyObject_GetAttrString(formatter, "format") : NULL;
	auto_py *args = PyTuple_Pack(1, value);
	auto_py *kwargs = Py_BuildValue("{s:[ss]}", "exclude", "text/plain", "text/html");
	auto_py *pair = NULL;

	ipshell_set_quiet(true);
	if (format && args && kwargs)
		pair = PyObject_Call(format, args, kwargs);
	ipshell_set_quiet(false);
	if (!pair || !PyTuple_Check(pair) || PyTuple_Size(pair) != 2 ||
		!PyDict_Check(PyTuple_GetItem(pair, 0)))
		return -1;
	*ret_data = Py_NewRef(PyTuple_GetItem(pair, 0));
	*ret_metadata = Py_NewRef(PyTuple_GetItem(pair, 1));
	return 0;
}

int capture_add_value(PyObject *value) {
	auto_py *plain = capture_plain_text(value);
	auto_py *data = NULL;
	auto_py *metadata = NULL;
	auto_py *html = NULL;
	bool is_told = plain && !item_is_bare(plain);
	size_t n = display.n;

	if (PyErr_Occurred())
		return -1;
	if (format_rich(value, &data, &metadata) < 0)
		return pyerr_clear_unless_interrupt();
	/* A mimebundle may say more than it was asked for; `representation` has the plain text. */
	if (PyDict_GetItemString(data, "text/plain") &&
		PyDict_DelItemString(data, "text/plain") < 0)
		return -1;
	if (PyDict_GetItemString(data, "text/html") && (is_told || item_has_words(data)) &&
		PyDict_DelItemString(data, "text/html") < 0)
		return -1;
	if (!is_told && !item_has_words(data) && !PyDict_GetItemString(data, "text/html")) {
		html = format_as(value, "text/html");
		if (!html && pyerr_clear_unless_interrupt() < 0)
			return -1;
		if (html && PyDict_SetItemString(data, "text/html", html) < 0)
			return -1;
	}
	if (PyDict_Size(data) && display_add(data, PyDict_Check(metadata) ? metadata : NULL) < 0)
		return pyerr_clear_unless_interrupt();
	if (display.n == n)
		return 0;
	/* It showed itself (_ipython_display_), or in a form that says more than its bare text. */
	if (is_told && PyDict_Size(data)) {
		free(take(display.items[display.n - 1].text));
		return 0;
	}
	return 1;
}

int capture_end(struct answer *a, struct buf *json, PyObject *value, enum profile profile,
	bool has_failed) {
	int r = figures_flush(value);

	for (size_t i = 0; i < display.n; i++) {
		display.is_cut |= display.items[i].is_cut;
		a->has_wide_integer |= display.items[i].has_wide_integer;
		item_write(&display.items[i], a, json, profile, has_failed);
	}
	if (display.n)
		buf_add_char(json, ']');
	if (display.is_cut)
		a->cuts |= ANSWER_CUT_DISPLAY;
	clear_items();
	display.is_cut = display.is_open = false;
	Py_CLEAR(display.hooked);
	Py_CLEAR(display.plain_of);
	Py_CLEAR(display.plain);
	return r;
}

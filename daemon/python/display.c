/* SPDX-License-Identifier: MIT */
/*
 * Display Data
 *
 * IPython's own display hook and publisher stay, so that `_`, `Out` and a trailing `;` go on working;
 * their methods that print are shadowed. Values are therefore not formatted unless somebody asks. An
 * item is turned into JSON and bounded the moment it is published: nothing of the user's is kept.
 * Which form of several a reader gets is decided here once: an object's bare `<Foo object at 0x…>`
 * gives way to any other text, and HTML to any text.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/python/capture.h"
#include "daemon/python/convert.h"
#include "daemon/python/display.h"
#include "daemon/python/figures.h"
#include "daemon/python/half.h"
#include "daemon/python/image.h"
#include "daemon/python/interrupt.h"
#include "daemon/python/ipshell.h"
#include "daemon/python/pyerr.h"
#include "daemon/python/worker.h"

struct item {
	struct buf data;     /* JSON members, without the image's and without braces */
	struct buf metadata; /* JSON object */
	char *text;          /* form for profile text; NULL: the image is the form */
	char *id;            /* display_id; NULL: none */

	const char *mime; /* of the image; NULL: there is none */
	char *base64;     /* NULL: the image was dropped */
	size_t base64_len, n_bytes;
	unsigned width, height;
	char *file;
};

static struct {
	struct item *items;
	size_t n, cap;
	bool is_open;       /* an execute runs */
	bool is_cut, has_wide_integer;
	bool clears_at_next; /* clear_output(wait=True) */
	PyObject *hooked;   /* the value that went through the display hook last */
	PyObject *plain_of, *plain; /* text/plain of the value that was formatted last */
} display;

static void item_deinit(struct item *item) {
	buf_deinit(&item->data);
	buf_deinit(&item->metadata);
	free(item->text);
	free(item->id);
	free(item->base64);
	free(item->file);
	*item = (struct item){ 0 };
}

static void clear_items(void) {
	for (size_t i = 0; i < display.n; i++)
		item_deinit(&display.items[i]);
	display.n = 0;
	display.clears_at_next = false;
}

/* `<matplotlib.axes.Axes object at 0x7f…>`: says what it is, not what it says. */
static bool is_bare(PyObject *text) {
	Py_ssize_t n = PyUnicode_GetLength(text);

	return n >= 2 && PyUnicode_ReadChar(text, 0) == '<' && PyUnicode_ReadChar(text, n - 1) == '>' &&
		PyUnicode_FindChar(text, '\n', 0, n, 1) < 0;
}

/* A str of the bundle, borrowed; NULL when it has none under that type. */
static PyObject *bundle_text(PyObject *data, const char *mime) {
	PyObject *text = PyDict_GetItemString(data, mime);

	return text && PyUnicode_Check(text) ? text : NULL;
}

static char *bounded_text(PyObject *text, bool *ret_cut) {
	auto_py *bytes = py_utf8(text);

	return bytes ? pyerr_bound(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes),
			       half.settings->max_text_chars, ret_cut)
		     : NULL;
}

/* Appends `"mime":payload` for anything but images. -1 with an exception. */
static int add_member(struct item *item, const char *mime, PyObject *payload) {
	struct convert_flags flags = { 0 };
	auto_buf struct buf json = BUF_NULL;
	bool is_cut = false;

	if (PyUnicode_Check(payload)) {
		if (convert_add_str(&json, payload, half.settings->max_text_chars, &is_cut) < 0)
			return -1;
	} else {
		switch (convert_to_json(payload, &json, &flags)) {
		case CONVERT_OK:
			is_cut = flags.is_cut;
			display.has_wide_integer |= flags.has_wide_integer;
			break;
		case CONVERT_INTERRUPTED:
		case CONVERT_NO_MEMORY:
			return -1;
		case CONVERT_NOT_JSON:
		case CONVERT_TOO_LARGE:
			/* Bytes of a PDF and the like: nothing that a reader of JSON could use. */
			display.is_cut = true;
			return 0;
		}
	}
	display.is_cut |= is_cut;
	if (item->data.len)
		buf_add_char(&item->data, ',');
	buf_add_json_string(&item->data, mime, strlen(mime));
	buf_add_char(&item->data, ':');
	buf_add(&item->data, json.data, json.len);
	return 0;
}

/* The bytes of an image payload, which comes as such or as base64; NULL with an exception. */
static PyObject *image_bytes(PyObject *payload) {
	auto_py *decode = NULL;

	if (PyBytes_Check(payload))
		return Py_NewRef(payload);
	decode = py_import_attr("binascii", "a2b_base64");
	return decode ? PyObject_CallFunctionObjArgs(decode, payload, NULL) : NULL;
}

/* Takes an image into the item: saved always, shown when it is within the bounds. */
static void add_image(struct item *item, const char *mime, PyObject *payload) {
	auto_py *bytes = image_bytes(payload);
	const char *directory = half.files_directory;
	char *data;
	Py_ssize_t len;

	if (!bytes || PyBytes_AsStringAndSize(bytes, &data, &len) < 0) {
		PyErr_Clear();
		display.is_cut = true;
		return;
	}
	item->mime = mime;
	item->n_bytes = (size_t)len;
	image_size(data, (size_t)len, &item->width, &item->height);
	if (directory && (size_t)len <= half.settings->max_output_file_bytes)
		item->file = image_save(directory, image_extension(mime), data, (size_t)len);
	if ((size_t)len > half.settings->max_image_bytes || item->width > IMAGE_MAX_PIXELS ||
		item->height > IMAGE_MAX_PIXELS)
		display.is_cut = true;
	else
		item->base64 = image_base64(data, (size_t)len, &item->base64_len);
}

/* The form of a bundle that serves a reader of text best; NULL when memory is short or it has none. */
static char *choose_text(PyObject *data) {
	static const char *const order[] = { "text/markdown", "application/json", "text/latex",
		"text/html", "image/svg+xml", "application/javascript" };
	borrowed PyObject *plain = bundle_text(data, "text/plain");

	if (plain && !is_bare(plain))
		return bounded_text(plain, NULL);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		borrowed PyObject *payload = PyDict_GetItemString(data, order[i]);
		auto_buf struct buf json = BUF_NULL;

		if (payload && PyUnicode_Check(payload))
			return bounded_text(payload, NULL);
		if (payload && convert_to_json(payload, &json, NULL) == CONVERT_OK)
			return buf_take(&json, NULL);
		PyErr_Clear();
	}
	return plain ? bounded_text(plain, NULL) : NULL;
}

/* True when the bundle says something in words, besides a bare text/plain and HTML. */
static bool has_words(PyObject *data) {
	return PyDict_GetItemString(data, "text/markdown") || PyDict_GetItemString(data, "text/latex") ||
		PyDict_GetItemString(data, "application/json");
}

/* Fills the item from a bundle. -1 with an exception. */
static int fill(struct item *item, PyObject *data, PyObject *metadata) {
	borrowed PyObject *key, *payload;
	borrowed PyObject *plain = bundle_text(data, "text/plain");
	bool is_plain = plain && !is_bare(plain);
	bool is_told = is_plain || has_words(data);
	Py_ssize_t at = 0;

	while (PyDict_Next(data, &at, &key, &payload)) {
		auto_py *mime_bytes = PyUnicode_Check(key) ? py_utf8(key) : NULL;
		const char *mime = mime_bytes ? PyBytes_AsString(mime_bytes) : NULL;
		auto_py *kept = Py_NewRef(payload);

		if (!mime) {
			PyErr_Clear();
			continue;
		}
		if ((!strcmp(mime, "text/plain") && !is_plain && is_told) ||
			(!strcmp(mime, "text/html") && is_told))
			continue;
		if (image_extension(mime)) {
			if (!item->mime)
				add_image(item, image_mime(mime), kept);
		} else if (add_member(item, mime, kept) < 0) {
			return -1;
		}
	}
	if (!metadata || convert_to_json(metadata, &item->metadata, NULL) != CONVERT_OK) {
		PyErr_Clear();
		buf_clear(&item->metadata);
		buf_add_str(&item->metadata, "{}");
	}
	if (!item->base64)
		item->text = choose_text(data);
	return 0;
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

/* Outside of execute there is nobody to show anything to, but between calls the next one will be. */
static bool is_wanted(void) {
	return display.is_open || !worker_call();
}

static int add(PyObject *data, PyObject *metadata, PyObject *id, bool is_update) {
	struct item item = { 0 };
	auto_py *copy = NULL;

	if (!is_wanted())
		return 0;
	/* What nobody will see needs no work: a loop may display a million times. */
	if (!is_update && !display.clears_at_next && display.n >= half.settings->max_display_items) {
		display.is_cut = true;
		return 0;
	}
	copy = PyDict_Copy(data);
	if (!copy || fill(&item, copy, metadata) < 0) {
		item_deinit(&item);
		return -1;
	}
	if (id && PyUnicode_Check(id))
		item.id = bounded_text(id, NULL);
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

/* DisplayPublisher.publish(data, metadata=None, source=…, *, transient=None, update=False, **kwargs) */
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

/* DisplayPublisher.clear_output(wait=False): what was shown goes, now or when something replaces it. */
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

/* One value in all forms, as an item; HTML only when nothing else would speak. -1 with an exception. */
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

/* InteractiveShell._tee(channel) of IPython 9, which would keep every piece that is printed for ever. */
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

/* One form of a value, by the formatter of that type; NULL without an exception when it has none. */
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
	bool is_told = plain && !is_bare(plain);
	size_t n = display.n;

	if (PyErr_Occurred())
		return -1;
	if (format_rich(value, &data, &metadata) < 0)
		return pyerr_clear_unless_interrupt();
	/* A mimebundle may say more than it was asked for; `representation` has the plain text. */
	if (PyDict_GetItemString(data, "text/plain") && PyDict_DelItemString(data, "text/plain") < 0)
		return -1;
	if (PyDict_GetItemString(data, "text/html") && (is_told || has_words(data)) &&
		PyDict_DelItemString(data, "text/html") < 0)
		return -1;
	if (!is_told && !has_words(data) && !PyDict_GetItemString(data, "text/html")) {
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

/* `"image/png":{"block":1,…}`; without a block when the image is not in the answer. */
static void write_image(struct buf *b, const struct item *item, size_t block) {
	buf_addf(b, "\"%s\":{", item->mime);
	if (block)
		buf_addf(b, "\"block\":%zu,", block);
	buf_addf(b, "\"bytes\":%zu", item->n_bytes);
	if (item->width && item->height)
		buf_addf(b, ",\"width\":%u,\"height\":%u", item->width, item->height);
	if (item->file) {
		buf_add_str(b, ",\"file\":");
		buf_add_json_string(b, item->file, strlen(item->file));
	}
	buf_add_char(b, '}');
}

/* What profile text says of an image that it does not carry. */
static void write_image_text(struct buf *b, const struct item *item) {
	buf_addf(b, "[%s, %zu bytes", item->mime, item->n_bytes);
	if (item->width && item->height)
		buf_addf(b, ", %u x %u", item->width, item->height);
	if (item->file)
		buf_addf(b, ": %s", item->file);
	buf_add_char(b, ']');
}

static void write_item(struct answer *a, struct buf *json, struct item *item, enum profile profile,
	bool has_failed) {
	size_t block = 0;

	if (item->base64 && !has_failed &&
		answer_add_image(a, item->mime, take(item->base64), item->base64_len) == 0)
		block = a->n_images; /* the text is block 0 */
	buf_add_str(json, json->len ? ",{\"data\":{" : "[{\"data\":{");
	buf_add(json, item->data.data, item->data.len);
	if (item->mime) {
		if (item->data.len)
			buf_add_char(json, ',');
		write_image(json, item, block);
	}
	buf_add_str(json, "},\"metadata\":");
	buf_add(json, item->metadata.data, item->metadata.len);
	buf_add_char(json, '}');

	if (profile != PROFILE_TEXT || block || (!item->text && !item->mime))
		return;
	if (a->text.len)
		buf_add_char(&a->text, '\n');
	if (item->mime)
		write_image_text(&a->text, item);
	else
		buf_add_str(&a->text, item->text);
}

int capture_end(struct answer *a, struct buf *json, PyObject *value, enum profile profile,
	bool has_failed) {
	int r = figures_flush(value);

	for (size_t i = 0; i < display.n; i++)
		write_item(a, json, &display.items[i], profile, has_failed);
	if (display.n)
		buf_add_char(json, ']');
	if (display.is_cut)
		a->cuts |= ANSWER_CUT_DISPLAY;
	a->has_wide_integer |= display.has_wide_integer;
	clear_items();
	display.is_cut = display.has_wide_integer = display.is_open = false;
	Py_CLEAR(display.hooked);
	Py_CLEAR(display.plain_of);
	Py_CLEAR(display.plain);
	return r;
}

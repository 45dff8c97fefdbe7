/* SPDX-License-Identifier: MIT */
/*
 * Display Items
 *
 * A bundle of forms (MIME type -> payload) is turned into JSON and bounded the moment it is
 * published: nothing of the user's is kept. Which form of several a reader gets is decided here
 * once: an object's bare `<Foo object at 0x…>` gives way to any other text, and HTML to any text.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/python/convert.h"
#include "daemon/python/half.h"
#include "daemon/python/image.h"
#include "daemon/python/item.h"
#include "daemon/python/pyerr.h"

void item_deinit(struct item *item) {
	buf_deinit(&item->data);
	buf_deinit(&item->metadata);
	free(item->text);
	free(item->id);
	free(item->base64);
	free(item->file);
	*item = (struct item){ 0 };
}

bool item_is_bare(PyObject *text) {
	Py_ssize_t n = PyUnicode_GetLength(text);

	return n >= 2 && PyUnicode_ReadChar(text, 0) == '<' &&
	       PyUnicode_ReadChar(text, n - 1) == '>' &&
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
			item->has_wide_integer |= flags.has_wide_integer;
			break;
		case CONVERT_INTERRUPTED:
		case CONVERT_NO_MEMORY:
			return -1;
		case CONVERT_NOT_JSON:
		case CONVERT_TOO_LARGE:
			/* Bytes of a PDF and the like: nothing that a reader of JSON could use. */
			item->is_cut = true;
			return 0;
		}
	}
	item->is_cut |= is_cut;
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

/*
 * Takes an image into the item: saved always, shown when it is within the bounds and what it is
 * called: `Image("x.png")` believes the file's name.
 */
static void add_image(struct item *item, const char *mime, PyObject *payload) {
	auto_py *bytes = image_bytes(payload);
	const char *directory = half.files_directory;
	const char *kind;
	char *data;
	Py_ssize_t len;

	if (!bytes || PyBytes_AsStringAndSize(bytes, &data, &len) < 0) {
		PyErr_Clear();
		item->is_cut = true;
		return;
	}
	kind = image_kind(data, (size_t)len);
	item->mime = kind ? kind : mime;
	item->n_bytes = (size_t)len;
	image_size(data, (size_t)len, &item->width, &item->height);
	if (directory && (size_t)len <= half.settings->max_output_file_bytes)
		item->file = image_save(directory, image_extension(item->mime), data, (size_t)len);
	if (!item->width || !item->height || (size_t)len > half.settings->max_image_bytes ||
		item->width > IMAGE_MAX_PIXELS || item->height > IMAGE_MAX_PIXELS)
		item->is_cut = true;
	else
		item->base64 = image_base64(data, (size_t)len, &item->base64_len);
}

/*
 * The form of a bundle that serves a reader of text best; NULL when memory is short or it has none.
 */
static char *choose_text(PyObject *data) {
	static const char *const order[] = { "text/markdown", "application/json", "text/latex",
		"text/html", "image/svg+xml", "application/javascript" };
	borrowed PyObject *plain = bundle_text(data, "text/plain");

	if (plain && !item_is_bare(plain))
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

bool item_has_words(PyObject *data) {
	return PyDict_GetItemString(data, "text/markdown") ||
	       PyDict_GetItemString(data, "text/latex") ||
	       PyDict_GetItemString(data, "application/json");
}

/* True when it is made of what a browser would show. */
static bool has_markup(PyObject *data) {
	return PyDict_GetItemString(data, "text/html") ||
	       PyDict_GetItemString(data, "image/svg+xml") ||
	       PyDict_GetItemString(data, "application/javascript");
}

int item_fill(struct item *item, PyObject *data, PyObject *metadata) {
	borrowed PyObject *key, *payload;
	borrowed PyObject *plain = bundle_text(data, "text/plain");
	bool is_plain = plain && !item_is_bare(plain);
	bool is_told = is_plain || item_has_words(data);
	bool is_useless = !is_plain && (is_told || has_markup(data));
	Py_ssize_t at = 0;

	while (PyDict_Next(data, &at, &key, &payload)) {
		auto_py *mime_bytes = PyUnicode_Check(key) ? py_utf8(key) : NULL;
		const char *mime = mime_bytes ? PyBytes_AsString(mime_bytes) : NULL;
		auto_py *kept = Py_NewRef(payload);

		if (!mime) {
			PyErr_Clear();
			continue;
		}
		if ((!strcmp(mime, "text/plain") && is_useless) ||
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

void item_write(struct item *item, struct answer *a, struct buf *json, enum profile profile,
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

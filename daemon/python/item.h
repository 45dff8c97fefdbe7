/* SPDX-License-Identifier: MIT */
#pragma once

/* One item of display_data: what a bundle of forms becomes in an answer. */

#include "common/buf.h"
#include "daemon/answer.h"
#include "daemon/python/py.h"

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

	bool is_cut;           /* a text was bounded, a form left out, an image dropped */
	bool has_wide_integer; /* beyond +-(2^53 - 1) */
};

void item_deinit(struct item *item);

/*
 * Fills a zeroed item from `data` (dict, MIME type -> payload, which no user code sees) and
 * `metadata` (dict or NULL). -1 with an exception; the item is to be deinitialised either way.
 */
int item_fill(struct item *item, PyObject *data, PyObject *metadata);

/*
 * Appends it to `json` (a JSON array without its end), its image to the answer (in a failed one it
 * is only named), and in profile text its form to a->text. The image moves.
 */
void item_write(struct item *item, struct answer *a, struct buf *json, enum profile profile,
	bool has_failed);

/* `<matplotlib.axes.Axes object at 0x7f…>`: a str that says what it is of, but nothing about it. */
bool item_is_bare(PyObject *text);

/* True when the bundle says something in words, besides a bare text/plain and HTML. */
bool item_has_words(PyObject *data);

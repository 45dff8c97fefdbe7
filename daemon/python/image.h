/* SPDX-License-Identifier: MIT */
#pragma once

/* Images: which kinds go into image blocks, how large they are, saving them. No Python here. */

#include <stdbool.h>
#include <stddef.h>

enum { IMAGE_MAX_PIXELS = 2000 }; /* a side */

/* The file name extension of an image type that clients take ("png"); NULL for any other type. */
const char *image_extension(const char *mime);

/* `mime` as a string that lives for ever; NULL as above. */
const char *image_mime(const char *mime);

/* The type that the bytes begin as, whatever they are called; NULL when it is none of ours. */
const char *image_kind(const void *data, size_t len);

/* Width and height by the file's own header; false when it does not say. */
bool image_size(const void *data, size_t len, unsigned *ret_width, unsigned *ret_height);

/* Base64 of the bytes, terminated; owned by the caller, NULL when memory is short. */
char *image_base64(const void *data, size_t len, size_t *ret_len);

/*
 * Saves an image under a new name in `directory`; the oldest of 64 gives way. The file's path,
 * owned by the caller; NULL when it could not be written, which is no failure of the call.
 */
char *image_save(const char *directory, const char *extension, const void *data, size_t len);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Keeps secrets out of what is shown or written: configured variables' values, credentials in
 * URLs. */

#include <stddef.h>

#include "daemon/config.h"

#define REDACT_MARK "***"

/*
 * `text` with each "scheme://user:password@" replaced by "***". Owned by the caller, NULL when
 * memory is short.
 */
char *redact_urls(const char *text, size_t len);

/*
 * The same, with each configured variable's value and each credential of the requirements replaced,
 * too, wherever they stand. `text` need not be valid UTF-8.
 */
char *redact_text(const struct settings *s, const char *text, size_t len);

/* Length in bytes of the longest secret: that much at the end of a cut text may be part of one. */
size_t redact_longest(const struct settings *s);

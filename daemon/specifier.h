/* SPDX-License-Identifier: MIT */
#pragma once

/* Version specifiers of PEP 440: ">=1.0,!=1.3.*". */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

/*
 * Appends the specifiers of the list `text`, `len` bytes without the parentheses around them:
 * sorted, without blanks, the first one kept of those that mean the same. An empty list appends
 * nothing. False when the list breaks the grammar.
 */
bool specifier_write_list(struct buf *b, const char *text, size_t len);

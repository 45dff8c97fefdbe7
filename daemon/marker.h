/* SPDX-License-Identifier: MIT */
#pragma once

/* Environment markers of PEP 508: "python_version < '3.9' and extra == 'x'". */

#include <stdbool.h>

#include "common/buf.h"

/*
 * Reads the marker at *at, up to where it ends (then *at is there), and appends its one spelling.
 * False with *ret_complaint (static) when it breaks the grammar.
 */
bool marker_write(struct buf *b, const char **at, const char **ret_complaint);

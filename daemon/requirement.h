/* SPDX-License-Identifier: MIT */
#pragma once

/* One PEP 508 requirement: its grammar, and the one spelling that equal requirements share. */

/*
 * The requirement `text` (valid UTF-8, NUL-terminated) as current `packaging` writes it. Owned by
 * the caller. NULL when it breaks the grammar, with *ret_complaint (static: never holds any of the
 * text, which may hold a password), or when memory is short, with *ret_complaint NULL.
 */
char *requirement_canonical(const char *text, const char **ret_complaint);

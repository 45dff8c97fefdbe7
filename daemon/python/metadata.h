/* SPDX-License-Identifier: MIT */
#pragma once

/* What an environment says of itself: the file .ipython-mcp-environment.json in it. */

#include <stdbool.h>
#include <stddef.h>

#define METADATA_FILE ".ipython-mcp-environment.json"

/*
 * The file's text for an environment of Python 3.`minor` with `requirements` (canonical JSON
 * array). Credentials are left out of URLs: a secret is never written. Owned by the caller, NULL
 * when memory is short.
 */
char *metadata_write(unsigned minor, const char *requirements);

/*
 * True when the text of a file found on disk says what metadata_write() would say now; spellings of
 * a requirement that mean the same are the same. Else *ret_complaint (static) tells what differs;
 * NULL when memory is short.
 */
bool metadata_matches(const char *text, size_t len, unsigned minor, const char *requirements,
	const char **ret_complaint);

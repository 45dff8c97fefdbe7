/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The published snapshot of all tools: the stable ones from tools.c, then the registered ones that
 * the Python half last published. Swapped whole; tools/list is served from ready text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/protocol.h"
#include "daemon/shell.h"
#include "daemon/tools.h"

/* A tool that a call names. */
struct tool_ref {
	const struct stable_tool *stable; /* NULL: a registered one */
	char name[129];
};

struct catalog *catalog_new(struct daemon *d);
struct catalog *catalog_free(struct catalog *c);

/*
 * Swaps in what the Python half published (taken). Returns true when the list that clients see
 * changed; the caller (bridge.c) then calls notify_tools_changed().
 */
bool catalog_publish(struct daemon *d, struct shell_catalog *next);

/* False when no tool of that name can be called in that profile. */
bool catalog_find(struct daemon *d, enum profile profile, const char *name,
	struct tool_ref *ret_tool);

/*
 * The JSON array of tools for that profile and revision; borrowed, valid until the next publish.
 * NULL when memory is short.
 */
const char *catalog_list(struct daemon *d, enum profile profile, const struct revision *revision,
	size_t *ret_len);

/* Grows by one whenever the list changes. */
uint64_t catalog_revision(const struct daemon *d);

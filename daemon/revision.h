/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The revisions of MCP that are spoken, one row each; what a row says is consulted while writing.
 */

#include <stdbool.h>

#include "common/jscan.h"

/* Names of a modern request's own members of params._meta, and of a server's. */
#define META_VERSION	  "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_LOG_LEVEL	  "io.modelcontextprotocol/logLevel"
#define META_SERVER	  "io.modelcontextprotocol/serverInfo"
#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

struct revision {
	const char *name; /* "2025-11-25" */
	unsigned index;   /* place in the table, oldest first: for caches by revision */
	bool has_batches;
	bool has_progress_message;
	bool has_annotations; /* on tools */
	bool has_tool_title;  /* title, _meta and outputSchema on tools; structuredContent */
	bool is_modern;       /* no handshake: each request names the revision */
	bool keeps_parts;     /* of no revision: a call's streams and value stay apart */

	/*
	 * JSON text: what the server says of itself, and members that open and close each result.
	 */
	const char *server_info;
	const char *result_opening, *result_closing; /* "" where there are none */
};

enum { N_REVISIONS = 5, LATEST_LEGACY = 3, MODERN = 4 };

/* Table of all revisions, oldest first. */
extern const struct revision revisions[N_REVISIONS];

/* How requests of people's tools are answered; not in the table. */
extern const struct revision revision_people;

/* The row that a JSON string names; NULL for any other value. */
const struct revision *revision_find(struct jspan name);

/* SPDX-License-Identifier: MIT */
/*
 * Revisions
 *
 * Whatever a revision does not define is left out for its clients: some of them reject what they do
 * not know. A new revision is a row here, and then whatever its own text adds.
 */

#include <config.h>

#include <stddef.h>

#include "daemon/revision.h"

#define NAME_AND_VERSION "\"name\":\"ipython-mcpd\",\"version\":\"" PACKAGE_VERSION "\""
#define TITLE		 ",\"title\":\"IPython\""
#define DESCRIPTION	 ",\"description\":\"A live IPython namespace that agents share\""

const struct revision revisions[N_REVISIONS] = {
	{ .name = "2024-11-05", .index = 0, .server_info = "{" NAME_AND_VERSION "}",
		.result_opening = "", .result_closing = "" },
	{ .name = "2025-03-26", .index = 1, .has_batches = true, .has_progress_message = true,
		.has_annotations = true, .server_info = "{" NAME_AND_VERSION "}",
		.result_opening = "", .result_closing = "" },
	{ .name = "2025-06-18", .index = 2, .has_progress_message = true, .has_annotations = true,
		.has_tool_title = true, .server_info = "{" NAME_AND_VERSION TITLE "}",
		.result_opening = "", .result_closing = "" },
	[LATEST_LEGACY] = { .name = "2025-11-25", .index = 3, .has_progress_message = true,
		.has_annotations = true, .has_tool_title = true,
		.server_info = "{" NAME_AND_VERSION TITLE DESCRIPTION "}",
		.result_opening = "", .result_closing = "" },
	[MODERN] = { .name = "2026-07-28", .index = 4, .has_progress_message = true,
		.has_annotations = true, .has_tool_title = true, .is_modern = true,
		.server_info = "{" NAME_AND_VERSION TITLE DESCRIPTION "}",
		.result_opening = "\"resultType\":\"complete\"",
		/* Of all the server says of itself, each result repeats what identifies it. */
		.result_closing = ",\"_meta\":{\"" META_SERVER "\":{" NAME_AND_VERSION TITLE "}}" },
};

const struct revision revision_people = {
	.name = "",
	.index = LATEST_LEGACY,
	.has_progress_message = true,
	.keeps_parts = true,
	.server_info = "{" NAME_AND_VERSION "}",
	.result_opening = "",
	.result_closing = "",
};

const struct revision *revision_find(struct jspan name) {
	for (size_t i = 0; i < N_REVISIONS; i++)
		if (jspan_equals(name, revisions[i].name))
			return &revisions[i];
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * The Border's Structs
 *
 * What changes hands between the halves is made in one of them and freed in the other; the
 * functions here are compiled into both.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/shell.h"

const char *shell_phase_name(enum shell_phase phase) {
	static const char *const names[N_SHELL_PHASES] = {
		[SHELL_CONFIGURATION] = "configuration",
		[SHELL_PATH_VALIDATION] = "path_validation",
		[SHELL_PROVISIONING] = "provisioning",
		[SHELL_DEPENDENCY_INSTALL] = "dependency_install",
		[SHELL_REUSE_VALIDATION] = "reuse_validation",
		[SHELL_LIBRARY_PATHS] = "library_paths",
		[SHELL_PRELOAD] = "preload",
		[SHELL_BINDING] = "binding",
	};

	return names[phase];
}

void shell_call_free(struct shell_call *call) {
	if (!call)
		return;
	free(call->tool);
	free(call->arguments);
	free(call->cwd);
	free(call);
}

void shell_reply_free(struct shell_reply *reply) {
	if (!reply)
		return;
	answer_free(reply->answer);
	free(reply->cwd);
	free(reply->cwd_note);
	free(reply);
}

void shell_catalog_free(struct shell_catalog *catalog) {
	if (!catalog)
		return;
	for (size_t i = 0; i < catalog->n_tools; i++) {
		free(catalog->tools[i].name);
		free(catalog->tools[i].description);
		free(catalog->tools[i].schema);
	}
	free(catalog->tools);
	free(catalog);
}

const char *profile_name(enum profile profile) {
	static const char *const names[N_PROFILES] = { "full", "compact", "text" };

	return names[profile];
}

int profile_from_name(const char *name) {
	for (int i = 0; i < N_PROFILES; i++)
		if (!strcmp(name, profile_name((enum profile)i)))
			return i;
	return -1;
}

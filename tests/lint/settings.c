/* SPDX-License-Identifier: MIT */

/* Prints the settings' table, a row a line: variable, rule, default, meaning, separated by tabs. */

#include <stdio.h>

#include "daemon/config.h"

static void print(void *ctx, const char *variable, const char *rule, const char *fallback,
	const char *doc) {
	printf("%s\t%s\t%s\t%s\n", variable, rule, fallback, doc);
}

int main(void) {
	config_describe(print, NULL);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * ipython-mcp logs: what the daemon has to say.
 *
 * A daemon that systemd started writes to the journal, one that a client started to a file beside
 * its socket. The file wins where both are there: the journal still has the lines of units long
 * gone.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/admin.h"
#include "client/unit.h"
#include "common/cleanup.h"
#include "common/wire.h"

/* Copies a log without the level prefixes that are meant for systemd. */
static void copy_log(FILE *from) {
	auto_free char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	while ((len = getline(&line, &cap, from)) > 0) {
		size_t skip = len > 3 && line[0] == '<' && line[2] == '>' ? 3 : 0;

		fwrite(line + skip, 1, (size_t)len - skip, stdout);
	}
}

static int logs_run(struct invocation *inv) {
	auto_free char *service = NULL;
	FILE *log;

	if (unit_state(&inv->place) == UNIT_NONE) {
		log = fopen(inv->place.log, "re");
		if (!log) {
			admin_complain("there is no log of namespace %s: %s: %s", inv->name,
				inv->place.log, strerror(errno));
			return WIRE_EXIT_UNAVAILABLE;
		}
		copy_log(log);
		fclose(log);
		return EXIT_SUCCESS;
	}
	service = unit_name(&inv->place, "service");
	if (!service) {
		admin_complain("out of memory");
		return EXIT_FAILURE;
	}
	execlp("journalctl", "journalctl", "--user", "--unit", service, (char *)NULL);
	admin_complain("cannot run journalctl: %s", strerror(errno));
	return EXIT_FAILURE;
}

const struct command cmd_logs = {
	.name = "logs",
	.arguments = "[NAME]",
	.help = "the daemon's log",
	.takes_name = true,
	.run = logs_run,
};

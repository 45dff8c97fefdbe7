/* SPDX-License-Identifier: MIT */
/* ipython-mcp stop: the end of a daemon, and of its variables. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/ending.h"
#include "common/wire.h"

static int stop_run(struct invocation *inv) {
	auto_ending struct ending e = ENDING_NULL;
	int found = ending_begin(&e, inv), status;

	if (found == -ENOENT) {
		admin_complain("no daemon is running for namespace %s", inv->name);
		return WIRE_EXIT_UNAVAILABLE;
	}
	status = found < 0 ? EXIT_FAILURE : ending_run(&e, inv);
	if (!status)
		printf("%s: stopped\n", inv->name);
	return status;
}

const struct command cmd_stop = {
	.name = "stop",
	.arguments = "[--force] [NAME]",
	.help = "end the daemon; the next agent starts it again",
	.takes_name = true,
	.takes_force = true,
	.run = stop_run,
};

/* SPDX-License-Identifier: MIT */
/* ipython-mcp interrupt: as control-C would do to the running call in a terminal. */

#include <stdio.h>
#include <stdlib.h>

#include "client/admin.h"
#include "common/wire.h"

static int interrupt_run(struct invocation *inv) {
	auto_rpc struct rpc r = RPC_NULL;
	auto_json json_t *result = NULL;
	int status = admin_connect(inv, &r);

	if (status)
		return status;
	result = admin_call(inv, &r, WIRE_INTERRUPT, json_object());
	if (!result)
		return EXIT_FAILURE;
	if (!json_is_true(json_object_get(result, "interrupted"))) {
		admin_complain("nothing runs in namespace %s", inv->name);
		return EXIT_FAILURE;
	}
	printf("%s: interrupted\n", inv->name);
	return EXIT_SUCCESS;
}

const struct command cmd_interrupt = {
	.name = "interrupt",
	.arguments = "[NAME]",
	.help = "interrupt the running call",
	.takes_name = true,
	.run = interrupt_run,
};

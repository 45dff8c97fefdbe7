/* SPDX-License-Identifier: MIT */
/*
 * Errors
 *
 * See err.h. The trace tells where a negative errno was born; forwarding it adds nothing.
 */

#include <string.h>

#include "common/err.h"
#include "common/log.h"

int err_trace(int err, const char *file, int line) {
	log_debug("%s:%d: %s", file, line, strerror(-err));
	return err;
}

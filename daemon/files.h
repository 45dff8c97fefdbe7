/* SPDX-License-Identifier: MIT */
#pragma once

/* The private directory of a daemon's saved outputs and images. It lives as long as the daemon. */

#include "daemon/daemon.h"

/*
 * Makes it, or empties it when a daemon that was killed left it, and sets d->files_directory. When
 * that cannot be, says why in the log and leaves it NULL: then nothing is saved.
 */
void files_new(struct daemon *d);

/* Removes it with all that is in it. */
void files_free(struct daemon *d);

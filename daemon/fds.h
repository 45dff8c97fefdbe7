/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Descriptors of the event half, kept away from user code. Normally the Python thread has a table
 * of descriptors of its own (fds_separate), so user code can neither see nor close ours, and its
 * children inherit none. Where the kernel refuses that (some containers), the table is shared; then
 * the children that user code forks close ours from an atfork handler, for which they are
 * registered here.
 */

#include <stdbool.h>

/* Registers or forgets a descriptor of the event half. Loop thread. */
void fds_add(int fd);
void fds_remove(int fd);

/*
 * Called once on the Python thread before anything else: gives it its own descriptors (only 0, 1, 2
 * and `keep`), its own working directory and its own umask. False when the kernel refuses.
 */
bool fds_separate(int keep);

/* Installs the atfork handler. Once, before any thread. 0 or a negative errno. */
int fds_init(void);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who hears that the list of tools changed: legacy sessions after their handshake, modern listen
 * streams.
 */

#include "daemon/daemon.h"
#include "daemon/session.h"

/*
 * Sends notifications/tools/list_changed to every session that can take it, one for each stream.
 * Sessions of profiles whose list never changes are left out.
 */
void notify_tools_changed(struct daemon *d);

/* The session has been given the list of tools as it is now. */
void notify_listed(struct session *s);

/*
 * True while the session has been told of a change and is expected to list again: an answer may be
 * held for that. A session that did not list after an earlier change is not expected to.
 */
bool notify_awaits_list(const struct session *s);

/* Ends a session's listen streams as a shutting-down server does: response, then cancelled. */
void notify_end_streams(struct session *s, const char *reason);

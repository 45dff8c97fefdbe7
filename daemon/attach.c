/* SPDX-License-Identifier: MIT */
/*
 * Attach Line
 *
 * What the shim knows of its client and MCP has no words for: which profile it was started with, in
 * which directory, which version it is, whether the client had another namespace before. A profile
 * is configuration, not the connection's history, so the line counts only as a connection's first:
 * nothing listed or answered ever changes its profile afterwards. Loop thread.
 */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wire.h"
#include "daemon/attach.h"
#include "daemon/protocol.h"

/* Tells the shim who we are; it passes this line to nobody. */
static void attach_acknowledge(struct session *s) {
	auto_buf struct buf params = BUF_NULL;
	auto_free char *text = NULL;

	buf_addf(&params, "{\"version\":\"%s\",\"pid\":%d,\"profile\":\"%s\",\"fingerprint\":%s}",
		PACKAGE_VERSION, (int)getpid(), profile_name(s->profile), s->daemon->fingerprint);
	text = buf_take(&params, NULL);
	if (text)
		protocol_notify(s, WIRE_ATTACHED, text);
}

void attach_on_line(struct session *s, struct jspan params) {
	auto_free char *profile = jspan_decode(jscan_get(params, "profile"), NULL);
	auto_free char *cwd = jspan_decode(jscan_get(params, "cwd"), NULL);
	auto_free char *version = jspan_decode(jscan_get(params, "version"), NULL);
	int known = profile ? profile_from_name(profile) : -1;

	if (s->has_spoken) {
		log_debug("session %llu: attach line comes too late, ignoring",
			(unsigned long long)s->id);
		return;
	}
	s->is_attached = true;
	if (known >= 0)
		s->profile = (enum profile)known;
	else if (profile)
		log_warning("session %llu: asks for an unknown profile, ignoring",
			(unsigned long long)s->id);
	if (cwd && cwd[0] == '/')
		s->cwd = take(cwd);
	s->reads_json = jspan_is_word(jscan_get(params, "reads_json"), "true");
	s->has_notice_pending_resume = jspan_is_word(jscan_get(params, "resumed"), "true");
	s->has_notice_pending_version = version && strcmp(version, PACKAGE_VERSION) != 0;
	s->client_version = take(version);
	log_info("session %llu: attached, process %d, profile %s", (unsigned long long)s->id,
		(int)s->peer_pid, profile_name(s->profile));
	if (jspan_is_word(jscan_get(params, "acknowledge"), "true"))
		attach_acknowledge(s);
}

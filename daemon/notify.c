/* SPDX-License-Identifier: MIT */
/*
 * Changes of the List
 *
 * Legacy clients hear of a change unasked, once their handshake is finished; modern ones on each
 * stream that asked for it, tagged with the stream's id. Profiles other than `full` show a fixed
 * list and hear nothing. A notification leaves before the answer of the call that caused it, so it
 * is queued at once and never put off. A burst still costs a client one: while its last
 * notification has not left us, a further one would tell it nothing new. Loop thread.
 */

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "daemon/callq.h"
#include "daemon/catalog.h"
#include "daemon/notify.h"
#include "daemon/protocol.h"

#define LIST_CHANGED "notifications/tools/list_changed"

/* True when a notification that was queued up to `told_at` is still in the queue. */
static bool is_still_queued(const struct session *s, uint64_t told_at) {
	return told_at && !session_has_written(s, told_at);
}

static bool tell_legacy(struct session *s) {
	if (!s->legacy_revision || !s->is_initialized)
		return false;
	if (!is_still_queued(s, s->told_at)) {
		protocol_notify(s, LIST_CHANGED, NULL);
		s->told_at = session_queued(s);
	}
	return true;
}

static bool tell_listen(struct session *s, struct listen *l) {
	auto_buf struct buf b = BUF_NULL;
	auto_free char *params = NULL;

	if (!l->wants_tools)
		return false;
	if (is_still_queued(s, l->told_at))
		return true;
	buf_addf(&b, "{\"_meta\":{\"" META_SUBSCRIPTION "\":%s}}", l->id);
	params = buf_take(&b, NULL);
	if (params)
		protocol_notify(s, LIST_CHANGED, params);
	l->told_at = session_queued(s);
	return true;
}

void notify_tools_changed(struct daemon *d) {
	uint64_t revision = catalog_revision(d);

	for (struct session *s = session_first(d); s; s = s->next) {
		bool was_told = false;

		if (s->profile != PROFILE_FULL)
			continue;
		was_told = tell_legacy(s);
		for (struct listen *l = s->listens; l; l = l->next)
			was_told |= tell_listen(s, l);
		if (!was_told)
			continue;
		if (s->told_revision && s->list_revision < s->told_revision)
			s->lists_no_more = true;
		s->told_revision = revision;
	}
}

void notify_listed(struct session *s) {
	s->list_revision = catalog_revision(s->daemon);
	s->lists_no_more = false;
	callq_on_list(s);
}

bool notify_awaits_list(const struct session *s) {
	return s->list_revision < s->told_revision && !s->lists_no_more;
}

void notify_end_streams(struct session *s, const char *reason) {
	for (struct listen *l = s->listens; l; l = l->next) {
		auto_buf struct buf line = BUF_NULL, b = BUF_NULL;
		auto_free char *params = NULL;

		/*
		 * Of the two ways in which the text lets a server end a stream, clients heed the
		 * first.
		 */
		buf_addf(&line,
			"{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\",\"_"
			"meta\":{"
			"\"" META_SUBSCRIPTION "\":%s,\"" META_SERVER "\":%s}}}",
			l->id, l->id, revisions[MODERN].server_info);
		session_send(s, &line);
		buf_addf(&b, "{\"requestId\":%s,\"reason\":", l->id);
		buf_add_json_string(&b, reason, strlen(reason));
		buf_add_char(&b, '}');
		params = buf_take(&b, NULL);
		if (params)
			protocol_notify(s, "notifications/cancelled", params);
	}
	protocol_session_gone(s);
}

/* SPDX-License-Identifier: MIT */
/*
 * Hello
 *
 * A daemon's startup variables are what they were when it started, by whoever started it. The two
 * fingerprints tell a client that asks for others that it will not get them.
 */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fingerprint.h"
#include "common/jscan.h"
#include "common/wire.h"
#include "client/hello.h"

static const char *const profiles[] = { "full", "compact", "text" };

const char *hello_profile(const char *name) {
	for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
		if (!strcmp(name, profiles[i]))
			return profiles[i];
	return NULL;
}

void hello_write(struct buf *out, const struct hello *hello, bool is_resumed) {
	buf_add_str(out, "{\"jsonrpc\":\"2.0\",\"method\":\"" WIRE_ATTACH "\",\"params\":{"
			 "\"version\":\"" PACKAGE_VERSION "\",\"acknowledge\":true");
	if (hello->profile)
		buf_addf(out, ",\"profile\":\"%s\"", hello->profile);
	if (hello->cwd) {
		buf_add_str(out, ",\"cwd\":");
		buf_add_json_string(out, hello->cwd, strlen(hello->cwd));
	}
	if (is_resumed)
		buf_add_str(out, ",\"resumed\":true");
	/* Gemini CLI names itself to the servers it starts. */
	if (getenv("GEMINI_CLI"))
		buf_add_str(out, ",\"reads_json\":true");
	buf_add_str(out, ",\"fingerprint\":");
	fingerprint_write(out, environ);
	buf_add_str(out, "}}\n");
}

static bool is_same(struct jspan a, struct jspan b) {
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

/* The value of a member by its raw name. */
static struct jspan get_raw(struct jspan object, struct jspan name) {
	struct jspan other, value;
	size_t pos = 0;

	while (jscan_next_member(object, &pos, &other, &value))
		if (is_same(name, other))
			return value;
	return JSPAN_NULL;
}

/* Adds the names in `a` whose values in `b` are others, or, when `only_absent`, not there. */
static void add_differing(struct buf *names, struct jspan a, struct jspan b, bool only_absent) {
	struct jspan name, value, other;
	size_t pos = 0;

	while (jscan_next_member(a, &pos, &name, &value)) {
		other = get_raw(b, name);
		if (other.at && (only_absent || is_same(value, other)))
			continue;
		if (names->len)
			buf_add_str(names, ", ");
		buf_add(names, name.at + 1, name.len - 2);
	}
}

/*
 * Names of the variables in which the two fingerprints differ, owned by the caller; NULL: in none.
 */
static char *compare(struct jspan theirs) {
	auto_buf struct buf own = BUF_NULL, names = BUF_NULL;
	struct jspan ours;

	if (!jspan_is_object(theirs))
		return NULL;
	fingerprint_write(&own, environ);
	ours = jscan_value(own.data, own.len);
	add_differing(&names, ours, theirs, false);
	add_differing(&names, theirs, ours, true);
	return names.len && !own.has_failed ? buf_take(&names, NULL) : NULL;
}

bool hello_read(const char *line, size_t len, struct hello_answer *ret_answer) {
	struct jspan text = jscan_value(line, len), params;
	auto_free char *pid = NULL, *profile = NULL;

	if (!jspan_equals(jscan_get(text, "method"), WIRE_ATTACHED))
		return false;
	params = jscan_get(text, "params");
	pid = jspan_copy(jscan_get(params, "pid"));
	profile = jspan_decode(jscan_get(params, "profile"), NULL);
	*ret_answer = (struct hello_answer){
		.pid = pid ? (pid_t)strtol(pid, NULL, 10) : 0,
		.profile = profile ? hello_profile(profile) : NULL,
		.differing = compare(jscan_get(params, "fingerprint")),
	};
	return true;
}

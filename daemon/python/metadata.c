/* SPDX-License-Identifier: MIT */
/*
 * Environment Metadata
 *
 * An environment is reused only when it is what this start would make. The file is written last, so
 * a directory without it is not one of ours or was never whole. The fingerprint covers the array as
 * it stands in the file: it tells a file that was edited, and stays true for an older spelling.
 */

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/sha256.h"
#include "common/utf8.h"
#include "daemon/python/metadata.h"
#include "daemon/python/redact.h"
#include "daemon/requirement.h"

enum { FORMAT = 1 };

static inline void cleanup_json(json_t **json) {
	json_decref(*json);
}

#define auto_json __attribute__((cleanup(cleanup_json)))

/* A JSON string as Python's json.dumps() writes it: ASCII alone, lower-case escapes. */
static void add_ascii_string(struct buf *b, const json_t *string) {
	const char *s = json_string_value(string);
	size_t len = json_string_length(string);

	buf_add_char(b, '"');
	while (len) {
		unsigned code;
		size_t n = utf8_decode(s, len, &code);

		if (!n) /* jansson holds valid UTF-8 only */
			break;
		if (code >= 0x10000)
			buf_addf(b, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
				0xdc00 + (code & 0x3ff));
		else if (code < ' ' || code >= 0x7f)
			buf_addf(b, "\\u%04x", code);
		else if (code == '"' || code == '\\')
			buf_add(b, (char[]){ '\\', (char)code }, 2);
		else
			buf_add_char(b, (char)code);
		s += n;
		len -= n;
	}
	buf_add_char(b, '"');
}

/* SHA-256 of an array of strings as JSON without blanks. 0, or -1 when memory is short. */
static int fingerprint(const json_t *requirements, char ret_hex[SHA256_HEX + 1]) {
	auto_buf struct buf b = BUF_NULL;
	size_t i;
	const json_t *item;

	buf_add_char(&b, '[');
	json_array_foreach((json_t *)requirements, i, item) {
		if (i)
			buf_add_char(&b, ',');
		add_ascii_string(&b, item);
	}
	buf_add_char(&b, ']');
	if (b.has_failed)
		return -1;
	sha256_hex(b.data, b.len, ret_hex);
	return 0;
}

/* The configured requirements as they are written: without credentials. NULL: memory is short. */
static json_t *written_requirements(const char *requirements) {
	auto_json json_t *configured = json_loads(requirements, 0, NULL);
	auto_json json_t *written = json_array();
	size_t i;
	const json_t *item;

	if (!configured || !written)
		return NULL;
	json_array_foreach(configured, i, item) {
		auto_free char *text =
			redact_urls(json_string_value(item), json_string_length(item));

		if (!text || json_array_append_new(written, json_string(text)) < 0)
			return NULL;
	}
	return take(written);
}

/* The object that the file holds. NULL: memory is short. */
static json_t *expected(unsigned minor, const char *requirements) {
	auto_json json_t *written = written_requirements(requirements);
	char hex[SHA256_HEX + 1], python[16];

	if (!written || fingerprint(written, hex) < 0)
		return NULL;
	snprintf(python, sizeof(python), "3.%u", minor);
	return json_pack("{sisssOsssb}", "format", FORMAT, "python", python, "requirements",
		written, "requirements_fingerprint", hex, "system_site_packages", 0);
}

char *metadata_write(unsigned minor, const char *requirements) {
	auto_json json_t *object = expected(minor, requirements);

	return object ? json_dumps(object, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;
}

/*
 * Brings the requirements of a file into today's spelling, after their fingerprint has been checked
 * against the array as it is. False: the member is missing or not what its fingerprint says.
 */
static bool normalize(json_t *found) {
	json_t *requirements = json_object_get(found, "requirements");
	char hex[SHA256_HEX + 1];
	const char *given = json_string_value(json_object_get(found, "requirements_fingerprint"));
	size_t i;
	json_t *item;

	if (!json_is_array(requirements) || !given)
		return false;
	json_array_foreach(requirements, i, item)
		if (!json_is_string(item))
			return false;
	if (fingerprint(requirements, hex) < 0 || strcmp(hex, given))
		return false;
	json_array_foreach(requirements, i, item) {
		const char *complaint;
		auto_free char *text = requirement_canonical(json_string_value(item), &complaint);

		if (!text || json_array_set_new(requirements, i, json_string(text)) < 0)
			return false;
	}
	return fingerprint(requirements, hex) == 0 &&
		json_object_set_new(found, "requirements_fingerprint", json_string(hex)) == 0;
}

bool metadata_matches(const char *text, size_t len, unsigned minor, const char *requirements,
	const char **ret_complaint) {
	auto_json json_t *found = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	auto_json json_t *wanted = expected(minor, requirements);

	*ret_complaint = NULL;
	if (!wanted)
		return false;
	if (!json_is_object(found))
		*ret_complaint = "its metadata is no JSON object";
	else if (!json_equal(json_object_get(found, "format"), json_object_get(wanted, "format")))
		*ret_complaint = "its metadata has another format";
	else if (!json_equal(json_object_get(found, "python"), json_object_get(wanted, "python")))
		*ret_complaint = "it was made for another version of Python";
	else if (!normalize(found))
		*ret_complaint = "its metadata was changed: the fingerprint does not fit";
	else if (!json_equal(json_object_get(found, "requirements"),
			 json_object_get(wanted, "requirements")))
		*ret_complaint = "it has other requirements";
	else if (!json_equal(found, wanted))
		*ret_complaint = "its metadata differs";
	return !*ret_complaint;
}

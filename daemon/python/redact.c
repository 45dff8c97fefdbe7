/* SPDX-License-Identifier: MIT */
/*
 * Redaction
 *
 * Two kinds of secrets. What stands in the settings is known and is looked for as it is: values of
 * variables, and user and password of the requirements' URLs (decoded, too, and also where a fault
 * in the URL makes a program see its parts otherwise). What a program adds by itself, such as the
 * URL of an index with credentials, has the form of a URL.
 *
 * The longest secret is replaced first, so that one that begins another leaves no remainder.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "daemon/python/redact.h"

/* 128 variables, and four forms of a credential for each of 64 requirements. */
enum { MAX_SECRETS = 128 + 64 * 4 };

struct secrets {
	char *items[MAX_SECRETS];
	size_t n;
	bool has_failed;
};

static void secrets_deinit(struct secrets *s) {
	for (size_t i = 0; i < s->n; i++)
		free(s->items[i]);
}

#define auto_secrets __attribute__((cleanup(secrets_deinit)))

static void secrets_add(struct secrets *s, const char *text, size_t len) {
	if (!len || s->n == MAX_SECRETS)
		return;
	s->items[s->n] = strndup(text, len);
	if (s->items[s->n])
		s->n++;
	else
		s->has_failed = true;
}

static int hex_value(char c) {
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Adds a piece of a URL as it stands, and as it reads with its %XX decoded. */
static void secrets_add_encoded(struct secrets *s, const char *text, size_t len) {
	auto_buf struct buf b = BUF_NULL;

	secrets_add(s, text, len);
	for (size_t i = 0; i < len; i++) {
		int high = i + 2 < len && text[i] == '%' ? hex_value(text[i + 1]) : -1;
		int low = high >= 0 ? hex_value(text[i + 2]) : -1;

		if (low >= 0) {
			buf_add_char(&b, (char)(high << 4 | low));
			i += 2;
		} else {
			buf_add_char(&b, text[i]);
		}
	}
	s->has_failed |= b.has_failed;
	if (b.len && b.len != len)
		secrets_add(s, b.data, b.len);
}

/*
 * Adds the credentials in a requirement's URL. They end at the last '@' before the path. Where what
 * follows the first ':' is no port, a '/' may belong to a password, which then ends at the last
 * '@'.
 */
static void secrets_add_requirement(struct secrets *s, const char *requirement) {
	const char *start = strstr(requirement, "://"), *at, *colon;
	size_t len, authority;

	if (!start)
		return;
	start += 3;
	len = strcspn(start, " ");
	authority = strcspn(start, "/ ");
	at = memrchr(start, '@', authority);
	colon = memchr(start, ':', authority);
	if (!at && colon && colon + 1 + strspn(colon + 1, "0123456789") != start + authority)
		at = memrchr(start, '@', len);
	if (!at)
		return;
	secrets_add_encoded(s, start, (size_t)(at - start));
	colon = memchr(start, ':', (size_t)(at - start));
	if (colon)
		secrets_add_encoded(s, colon + 1, (size_t)(at - colon - 1));
}

static int compare_longest_first(const void *a, const void *b) {
	size_t x = strlen(*(char *const *)a), y = strlen(*(char *const *)b);

	return (x < y) - (x > y);
}

static void secrets_collect(const struct settings *settings, struct secrets *s) {
	json_t *variables = json_loads(settings->environment_variables, 0, NULL);
	json_t *requirements = json_loads(settings->environment_requirements, 0, NULL);
	const char *name;
	json_t *item;
	size_t i;

	s->has_failed |= !variables || !requirements;
	json_object_foreach(variables, name, item)
		secrets_add(s, json_string_value(item), json_string_length(item));
	json_array_foreach(requirements, i, item)
		secrets_add_requirement(s, json_string_value(item));
	json_decref(variables);
	json_decref(requirements);
	qsort(s->items, s->n, sizeof(*s->items), compare_longest_first);
}

static bool is_scheme(char c) {
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '+' || c == '-' || c == '.';
}

/* Length of "user:password@" at the beginning of `text`; 0 when there is none. */
static size_t credentials_len(const char *text, size_t len) {
	size_t found = 0;

	for (size_t i = 0; i < len && (unsigned char)text[i] > ' ' && !strchr("/?#\"'<>`", text[i]);
		i++)
		if (text[i] == '@')
			found = i + 1;
	return found;
}

char *redact_urls(const char *text, size_t len) {
	auto_buf struct buf b = BUF_NULL;

	for (size_t i = 0, copied = 0; i <= len;) {
		size_t start = i, credentials;

		if (i == len) {
			buf_add(&b, text + copied, len - copied);
			break;
		}
		if (len - i < 3 || memcmp(text + i, "://", 3)) {
			i++;
			continue;
		}
		while (start > copied && is_scheme(text[start - 1]))
			start--;
		credentials = credentials_len(text + i + 3, len - i - 3);
		i += 3 + credentials;
		if (credentials) {
			buf_add(&b, text + copied, start - copied);
			buf_add_str(&b, REDACT_MARK);
			copied = i;
		}
	}
	return buf_take(&b, NULL);
}

/* The longest secret that `text` begins with; NULL when there is none. */
static const char *secret_at(const struct secrets *s, const char *text, size_t len) {
	for (size_t i = 0; i < s->n; i++) {
		size_t n = strlen(s->items[i]);

		if (n <= len && !memcmp(text, s->items[i], n))
			return s->items[i];
	}
	return NULL;
}

char *redact_text(const struct settings *settings, const char *text, size_t len) {
	auto_secrets struct secrets s = { 0 };
	auto_buf struct buf b = BUF_NULL;

	secrets_collect(settings, &s);
	/* With a secret missing from the list nothing may be shown. */
	if (s.has_failed)
		return NULL;
	for (size_t i = 0; i < len;) {
		const char *secret = secret_at(&s, text + i, len - i);

		if (secret) {
			buf_add_str(&b, REDACT_MARK);
			i += strlen(secret);
		} else {
			buf_add_char(&b, text[i++]);
		}
	}
	return b.has_failed ? NULL : redact_urls(b.data, b.len);
}

size_t redact_longest(const struct settings *settings) {
	auto_secrets struct secrets s = { 0 };

	secrets_collect(settings, &s);
	return s.n ? strlen(s.items[0]) : 0;
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* SHA-256 of a text that is in memory. */

#include <stddef.h>

enum { SHA256_HEX = 64 };

/* Writes the digest of `len` bytes as lower-case hex with a NUL at its end. */
void sha256_hex(const void *data, size_t len, char ret_hex[SHA256_HEX + 1]);

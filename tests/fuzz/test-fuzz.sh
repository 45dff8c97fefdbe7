#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzers' own conversations and damaged copies of them, without a fuzzing compiler.
set -eu
exec "$MCP_BUILDDIR/tests/fuzz/fuzz-protocol" "$MCP_SRCDIR"/tests/wire/*/*.txt

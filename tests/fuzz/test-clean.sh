#!/bin/sh
# SPDX-License-Identifier: MIT
# Output of programs, with and without damage.
set -eu
exec "$MCP_BUILDDIR/tests/fuzz/fuzz-clean" "$MCP_SRCDIR"/tests/fuzz/clean.txt "$MCP_SRCDIR"/tests/wire/tools/output-*.txt

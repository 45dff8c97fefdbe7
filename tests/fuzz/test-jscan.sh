#!/bin/sh
# SPDX-License-Identifier: MIT
# JSON as it should be and as it should not, what conversations hold, and damaged copies of both.
set -eu
exec "$MCP_BUILDDIR/tests/fuzz/fuzz-jscan" "$MCP_SRCDIR"/tests/fuzz/jscan.txt "$MCP_SRCDIR"/tests/wire/*/*.txt

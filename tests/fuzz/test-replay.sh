#!/bin/sh
# SPDX-License-Identifier: MIT
# Conversations that lose their daemon, and damaged copies of them.
set -eu
exec "$MCP_BUILDDIR/tests/fuzz/fuzz-replay" "$MCP_SRCDIR"/tests/fuzz/replay-*.txt

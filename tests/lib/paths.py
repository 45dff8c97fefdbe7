# SPDX-License-Identifier: MIT
"""Where the build under test and the sources are: told by `make check`, else guessed for a person who
runs one test by hand from the build directory."""

import os

SRCDIR = os.environ.get("MCP_SRCDIR") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILDDIR = os.environ.get("MCP_BUILDDIR") or os.getcwd()

DAEMON = os.path.join(BUILDDIR, "ipython-mcpd")
CONNECT = os.path.join(BUILDDIR, "ipython-mcp-connect")
ADMIN = os.path.join(BUILDDIR, "ipython-mcp")

# How much longer than usual to be patient: sanitizers and valgrind are slow.
PATIENCE = float(os.environ.get("MCP_PATIENCE", "1"))

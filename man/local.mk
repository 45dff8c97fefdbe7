# SPDX-License-Identifier: MIT
dist_man_MANS = man/ipython-mcp.1 man/ipython-mcp-connect.1 man/ipython-mcpd.8

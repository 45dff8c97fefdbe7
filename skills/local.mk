# SPDX-License-Identifier: MIT

# The skill for agents, as a folder to copy or link into theirs.
skilldir = $(pkgdatadir)/skills/ipython-mcp
skillsnippetsdir = $(skilldir)/snippets
dist_skill_DATA = skills/ipython-mcp/SKILL.md
dist_skillsnippets_DATA = skills/ipython-mcp/snippets/summary.py

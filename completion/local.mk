# SPDX-License-Identifier: MIT

# Found by bash-completion under the names of the commands.
completionsdir = $(datadir)/bash-completion/completions
dist_completions_DATA = completion/ipython-mcp completion/ipython-mcp-connect completion/ipython-mcpd

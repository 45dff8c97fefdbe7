# SPDX-License-Identifier: MIT
# Real agent programs; tests/agents/install brings them.
TESTS += tests/agents/test-agents.py
EXTRA_DIST += tests/agents/conf/claude.home.json tests/agents/conf/claude.mcp.json \
	tests/agents/conf/codex.config.toml tests/agents/conf/gemini.settings.json \
	tests/agents/conf/opencode.json tests/agents/conf/qwen.settings.json tests/agents/install \
	tests/agents/model.py tests/agents/test-agents.py

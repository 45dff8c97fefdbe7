# SPDX-License-Identifier: MIT
# Conversations with a real daemon, and what they cannot express.
WIRE_TESTS = \
	tests/wire/run.py \
	tests/wire/test-daemon.py \
	tests/wire/test-shim.py \
	tests/wire/test-shim-relay.py \
	tests/wire/test-shim-start.py \
	tests/wire/test-admin.py \
	tests/wire/test-environment.py \
	tests/wire/test-schemas.py \
	tests/wire/test-values.py \
	tests/wire/test-interpreters.py \
	tests/wire/test-ipython-profile.py \
	tests/wire/test-tools.py

TESTS += $(WIRE_TESTS)

EXTRA_DIST += $(WIRE_TESTS) README.md SECURITY.md try check tests/setup tests/demo.py \
	tests/requirements \
	tests/lib/check.h \
	tests/lib/conversation.py \
	tests/lib/harness.py \
	tests/lib/paths.py \
	tests/lib/schema.py \
	tests/lib/tap.py \
	tests/wire/README \
	tests/wire/hostile \
	tests/wire/legacy \
	tests/wire/modern \
	tests/wire/schema \
	tests/wire/tools

# SPDX-License-Identifier: MIT
# Conversations with a real daemon, and what they cannot express.
WIRE_TESTS = \
	tests/wire/run.py

TESTS += $(WIRE_TESTS)

EXTRA_DIST += $(WIRE_TESTS) \
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

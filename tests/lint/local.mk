# SPDX-License-Identifier: MIT
# What can be said of the sources and binaries without running them.
LINT_TESTS = \
	tests/lint/test-border.py \
	tests/lint/test-style.py

TESTS += $(LINT_TESTS)
EXTRA_DIST += $(LINT_TESTS)

# The manual against the programs and the settings' table.
check_PROGRAMS += tests/lint/settings
TESTS += tests/lint/test-manual.py
EXTRA_DIST += tests/lint/test-manual.py
tests_lint_settings_SOURCES = tests/lint/settings.c daemon/config.c daemon/marker.c \
	daemon/requirement.c daemon/setting.c daemon/specifier.c
tests_lint_settings_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_lint_settings_LDADD = libborder.la libcommon.la $(JANSSON_LIBS)

# The same for what a shell offers.
TESTS += tests/lint/test-completion.py
EXTRA_DIST += tests/lint/test-completion.py

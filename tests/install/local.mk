# SPDX-License-Identifier: MIT

# What is installed, packaged and shipped beside the programs.
INSTALL_TESTS = \
	tests/install/test-debian.py \
	tests/install/test-install.py \
	tests/install/test-remote.py \
	tests/install/test-skill.py

TESTS += $(INSTALL_TESTS)
EXTRA_DIST += $(INSTALL_TESTS)

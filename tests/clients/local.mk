# SPDX-License-Identifier: MIT

# The configuration that the shim writes for agents.
TESTS += tests/clients/test-setup.py
EXTRA_DIST += tests/clients/test-setup.py

# SPDX-License-Identifier: MIT

# The configuration that the shim writes for agents.
TESTS += tests/clients/test-setup.py
EXTRA_DIST += tests/clients/test-setup.py

# Third-party clients; tests/setup installs them.
TESTS += tests/clients/test-clients.py
EXTRA_DIST += tests/clients/drive.mjs tests/clients/drive.py tests/clients/package.json \
	tests/clients/package-lock.json tests/clients/test-clients.py

# SPDX-License-Identifier: MIT

# Units under real service managers; skipped where none can be started.
SYSTEMD_TESTS = \
	tests/systemd/test-linger.py \
	tests/systemd/test-units.py \
	tests/systemd/test-without.py

TESTS += $(SYSTEMD_TESTS)
EXTRA_DIST += $(SYSTEMD_TESTS) \
	tests/systemd/inside-machine.sh \
	tests/systemd/inside-user.sh \
	tests/systemd/manager.py

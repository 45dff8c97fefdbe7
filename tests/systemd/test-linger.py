#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Lingering: a namespace that listens before anybody has logged in and outlives the last session."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import manager  # noqa: E402
import tap  # noqa: E402
from harness import wait_for  # noqa: E402


def test_linger():
    """with lingering the sockets listen after a boot without a login, and the namespace stays"""
    with manager.Machine() as m:
        assert not os.path.exists(m.runtime())
        m.root("loginctl", "enable-linger", "mcptest")
        wait_for(lambda: os.path.exists(m.runtime("systemd/private")), "the user's manager")
        m.systemctl("enable", "--now", "ipython-mcpd.socket", "ipython-mcpd@lab.socket")
        client = m.connect()
        client.open()
        pid = client.execute("import os\nkept = 41\nos.getpid()")["result"]
        client.close()

        # The namespace has no session, and its user no login.
        with m.connect() as client:
            client.open()
            assert client.execute("kept + 1")["result"] == 42
            assert client.execute("os.getpid()")["result"] == pid

        # Without lingering all ends with the last login; with it, the next start has the sockets again.
        m.root("loginctl", "disable-linger", "mcptest")
        wait_for(lambda: not os.path.exists(m.runtime("systemd")), "the end of the user's manager", 60)
        m.root("loginctl", "enable-linger", "mcptest")
        wait_for(lambda: os.path.exists(m.runtime("ipython-mcp/lab.sock")), "the sockets")
        assert os.path.exists(m.runtime("ipython-mcp/default.sock"))
        assert not m.is_active("ipython-mcpd.service")
        with m.connect("--name", "lab") as client:
            client.open()
            assert client.execute("1")["result"] == 1


if __name__ == "__main__":
    tap.main()

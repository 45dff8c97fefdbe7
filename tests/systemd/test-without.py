#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Without libsystemd when it is built, and without systemd when it runs, everything else works the same."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paths  # noqa: E402
import tap  # noqa: E402

PROGRAMS = ["ipython-mcpd", "ipython-mcp-connect", "ipython-mcp"]


def run(command, cwd, **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env={**clean, **environment})
    assert done.returncode == 0, (command, (done.stdout + done.stderr)[-6000:])
    return done.stdout


def config_header():
    with open(os.path.join(paths.BUILDDIR, "config.h"), encoding="utf-8") as f:
        return f.read()


def test_without():
    """a build --with-systemd=no starts its daemon by itself and passes the protocol's conversations"""
    with tempfile.TemporaryDirectory(prefix="mcp-without-") as build:
        run([os.path.join(paths.SRCDIR, "configure"), "-q", "PYTHON=/usr/bin/python3", "--with-systemd=no",
            "--enable-werror", "CFLAGS=-O0"], build)
        run(["make", "-s", "-j2", *PROGRAMS, "shell.la"], build)
        with open(os.path.join(build, "ipython-mcpd"), "rb") as f:
            assert b"libsystemd.so" not in f.read()
        with open(paths.DAEMON, "rb") as f:  # which is opened by its name, only under a manager
            assert b"libsystemd.so" in f.read() or "HAVE_SYSTEMD 1" not in config_header()
        where = {"MCP_BUILDDIR": build, "MCP_SRCDIR": paths.SRCDIR}
        run([sys.executable, os.path.join(paths.SRCDIR, "tests/wire/test-shim-start.py")], build, **where)
        for word in ("legacy/", "modern/"):
            run([sys.executable, os.path.join(paths.SRCDIR, "tests/wire/run.py"), word], build, **where)


if __name__ == "__main__":
    tap.main()

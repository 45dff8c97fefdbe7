#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""make install puts exactly what it should where it should; make uninstall leaves nothing."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paths  # noqa: E402
import tap  # noqa: E402


def variable(name):
    """A directory as the build was configured, all references resolved."""
    with open(os.path.join(paths.BUILDDIR, "Makefile"), encoding="utf-8") as f:
        makefile = f.read()

    def value(name):
        text = re.search(rf"^{name} = (.*)$", makefile, re.M).group(1)
        return re.sub(r"\$[({](\w+)[)}]", lambda m: value(m.group(1)), text)
    return value(name)


def make(target, stage):
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-s", "-C", paths.BUILDDIR, target, "DESTDIR=" + stage], capture_output=True,
        text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def files(stage):
    return {os.path.join(directory, name)[len(stage):] for directory, _, names in os.walk(stage) for name in names}


def expected():
    places = {
        "bindir": ["ipython-mcp", "ipython-mcp-connect", "ipython-mcpd"],
        "pkglibdir": ["shell.so"],
        "systemduserunitdir": ["ipython-mcpd.service", "ipython-mcpd.socket", "ipython-mcpd@.service",
            "ipython-mcpd@.socket"],
        "mandir": ["man1/ipython-mcp.1", "man1/ipython-mcp-connect.1", "man8/ipython-mcpd.8"],
        "docdir": ["NEWS", "README.md", "SECURITY.md"],
        "pkgdatadir": ["skills/ipython-mcp/SKILL.md", "skills/ipython-mcp/snippets/summary.py"],
        "datadir": ["bash-completion/completions/ipython-mcp", "bash-completion/completions/ipython-mcp-connect",
            "bash-completion/completions/ipython-mcpd"],
    }
    return {os.path.join(variable(place), name) for place, names in places.items() for name in names}


def test_install_and_uninstall():
    """the files are the expected ones, point to each other, and go again"""
    with tempfile.TemporaryDirectory() as stage:
        make("install", stage)
        found = files(stage)
        assert found == expected(), sorted(found ^ expected())
        for path in found:
            with open(stage + path, "rb") as f:
                data = f.read()
            assert stage.encode() not in data, path
            if not path.endswith(".so") and "/bin/" not in path:
                assert paths.BUILDDIR.encode() not in data, path
        for name in ("ipython-mcpd.service", "ipython-mcpd@.service"):
            with open(stage + os.path.join(variable("systemduserunitdir"), name), encoding="utf-8") as f:
                command = re.search(r"^ExecStart=(\S+)", f.read(), re.M).group(1)
            assert command in found, command
        for name in ("ipython-mcp", "ipython-mcp-connect", "ipython-mcpd"):
            program = stage + os.path.join(variable("bindir"), name)
            assert os.stat(program).st_mode & 0o777 == 0o755
            dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
            assert "RUNPATH" not in dynamic and "RPATH" not in dynamic, dynamic
            assert "libpython" not in dynamic, dynamic
        make("uninstall", stage)
        assert not files(stage), files(stage)
        for place in ("pkglibdir", "pkgdatadir", "docdir"):
            assert not os.path.exists(stage + variable(place)), place


def test_reinstall():
    """installing over an installation and uninstalling what is not there are fine"""
    with tempfile.TemporaryDirectory() as stage:
        make("install", stage)
        make("install", stage)
        assert files(stage) == expected()
        make("uninstall", stage)
        make("uninstall", stage)
        assert not files(stage)


if __name__ == "__main__":
    tap.main()

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""bash completion: offers exactly what the programs take."""

import os
import re
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
from paths import ADMIN, CONNECT, DAEMON, SRCDIR  # noqa: E402


def complete(*words, **environment):
    """What is offered for the last of the words."""
    script = ('source "$1" && shift && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && compopt() { :; } && '
        'f=$(complete -p "$1") && f=${f#*-F } && ${f%% *} && printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-uc", script, "bash", os.path.join(SRCDIR, "completion", words[0]), *words],
        capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **environment})
    assert done.returncode == 0 and not done.stderr, done
    return set(done.stdout.split())


def options(program):
    done = subprocess.run([program, "--help"], check=True, capture_output=True, text=True)
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", done.stdout))


def test_options():
    """every option that --help prints is offered, and no other"""
    assert complete("ipython-mcpd", "--") == options(DAEMON)
    assert complete("ipython-mcp-connect", "--") == options(CONNECT)
    offered = complete("ipython-mcp", "--")
    for command in ("list", "restart"):
        offered |= complete("ipython-mcp", command, "--")
    assert offered == options(ADMIN), offered ^ options(ADMIN)


def test_commands():
    """every command that --help prints is offered, and no other"""
    done = subprocess.run([ADMIN, "--help"], check=True, capture_output=True, text=True)
    assert complete("ipython-mcp", "") == set(re.findall(r"^  ([a-z]+) ", done.stdout, re.M))
    assert complete("ipython-mcp", "st") == {"status", "stop"}


def test_agents():
    """every agent that can be set up is offered"""
    done = subprocess.run([CONNECT, "--print-config", "nobody"], capture_output=True, text=True)
    known = set(re.search(r"known are (.*)", done.stderr).group(1).split(", "))
    assert complete("ipython-mcp-connect", "--install", "") == known


def test_names():
    """the namespaces that have a socket are offered where a name goes"""
    with tempfile.TemporaryDirectory() as directory:
        sockets = []
        for name in ("default", "lab"):
            sockets.append(socket.socket(socket.AF_UNIX))
            sockets[-1].bind(os.path.join(directory, name + ".sock"))
        environment = {"IPYTHON_MCP_RUNTIME_DIR": directory}
        assert complete("ipython-mcp", "status", "", **environment) == {"default", "lab"}
        assert complete("ipython-mcp", "stop", "--force", "l", **environment) == {"lab"}
        assert complete("ipython-mcp", "--name", "", **environment) == {"default", "lab"}
        assert complete("ipython-mcp", "exec", "lab", "", **environment) == set()
        for s in sockets:
            s.close()


if __name__ == "__main__":
    tap.main()

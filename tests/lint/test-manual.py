#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The manual against the programs: mdoc that mandoc has no complaint about, every option and every
setting described, nothing described that is not there."""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
from paths import ADMIN, BUILDDIR, CONNECT, DAEMON, SRCDIR  # noqa: E402

PAGES = {"ipython-mcp.1": ADMIN, "ipython-mcp-connect.1": CONNECT, "ipython-mcpd.8": DAEMON}

# What mandoc says of the machine, not of the page: pages that are not installed here.
NOT_OURS = re.compile(r"outdated mandoc\.db|referenced manual not found: Xr (?!ipython-mcp)|"
                      r"referenced manual not found: Xr (ipython-mcp|ipython-mcpd|ipython-mcp-connect) [18]\b")


def page(name):
    with open(os.path.join(SRCDIR, "man", name), encoding="utf-8") as f:
        return f.read()



def settings():
    done = subprocess.run([os.path.join(BUILDDIR, "tests", "lint", "settings")], check=True,
                          capture_output=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def need_mandoc():
    if not shutil.which("mandoc"):
        raise tap.Skip("mandoc is not installed")


def test_lint():
    """mandoc -T lint is silent about each page"""
    need_mandoc()
    for name in PAGES:
        done = subprocess.run(["mandoc", "-T", "lint", os.path.join(SRCDIR, "man", name)],
                              capture_output=True, text=True)
        said = [line for line in (done.stdout + done.stderr).splitlines() if not NOT_OURS.search(line)]
        assert not said, said


def test_cross_references():
    """references among our own pages name pages that are there"""
    for name in PAGES:
        for target in re.findall(r"^\.Xr (ipython-mcp\S*) (\d)", page(name), re.M):
            assert ".".join(target) in PAGES, (name, target)


def test_options():
    """each page describes exactly the options that --help prints"""
    for name, program in PAGES.items():
        done = subprocess.run([program, "--help"], check=True, capture_output=True, text=True)
        offered = set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", done.stdout))
        described = set(re.findall(r"^\.It (?:.* )?Fl -([a-z-]+)", page(name), re.M))
        assert offered == described, (name, sorted(offered ^ described))


def test_commands():
    """ipython-mcp(1) describes exactly the commands that --help prints"""
    done = subprocess.run([ADMIN, "--help"], check=True, capture_output=True, text=True)
    described = re.findall(r"^\.It Cm ([a-z]+)", page("ipython-mcp.1"), re.M)
    for command in described:
        assert re.search(rf"^ +(?:ipython-mcp )?{command}\b", done.stdout, re.M), command
    offered = set(re.findall(r"^ +(?:ipython-mcp )?([a-z]+)\b", done.stdout, re.M))
    assert offered <= set(described) | {"ipython"}, offered - set(described)


def test_settings():
    """ipython-mcpd(8) describes exactly the settings of the table, with their defaults"""
    source = page("ipython-mcpd.8")
    body = source[source.index(".Sh SETTINGS"):source.index(".Sh ENVIRONMENT")]
    items = dict(re.findall(r"^\.It Ev (IPYTHON_MCP_\w+)\n(.*?)(?=^\.It Ev|^\.El)", body, re.M | re.S))
    table = {row[0]: row[2] for row in settings()}
    assert set(items) == set(table), sorted(set(items) ^ set(table))
    for variable, fallback in table.items():
        if not fallback or fallback == "":
            continue
        said = re.search(r"^Default:(?:\n\.(?:Ql|Cm))? ?(\S+?)(?: ?\.)?$", items[variable], re.M)
        assert said and said.group(1) == fallback, (variable, fallback, said and said.group(1))


def test_readme():
    """README's table has exactly the settings of the table, with their defaults"""
    with open(os.path.join(SRCDIR, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    rows = dict(re.findall(r"^\| `(IPYTHON_MCP_\w+)` \|.*\| ([^|]*) \|$", readme, re.M))
    if not rows:
        raise tap.Skip("README has no table of settings")
    table = {row[0]: row[2] for row in settings()}
    assert set(rows) == set(table), sorted(set(rows) ^ set(table))
    for variable, fallback in table.items():
        assert not fallback or fallback in rows[variable], (variable, fallback, rows[variable])


def test_agents():
    """ipython-mcp-connect(1) names every agent that can be set up"""
    done = subprocess.run([CONNECT, "--print-config", "nobody"], capture_output=True, text=True)
    known = re.search(r"known are (.*)", done.stderr).group(1).split(", ")
    for agent in known:
        assert re.search(rf"^\.Cm {agent}\b", page("ipython-mcp-connect.1"), re.M), agent


if __name__ == "__main__":
    tap.main()

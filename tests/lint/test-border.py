#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The border between the halves: the event half knows no Python, the Python half no libevent."""

import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import paths
import tap

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


def sources(*folders):
    for folder in folders:
        yield from sorted(glob.glob(os.path.join(paths.SRCDIR, folder, "*.[ch]")))


def includes(path, seen=None):
    """All that a file includes, through our own headers."""
    seen = set() if seen is None else seen
    with open(path, encoding="utf-8") as f:
        for name in INCLUDE.findall(f.read()):
            if name in seen:
                continue
            seen.add(name)
            ours = os.path.join(paths.SRCDIR, name)
            if os.path.exists(ours):
                includes(ours, seen)
    return seen


def output(*command):
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def built(name):
    """The binary itself, which libtool may have put beside a script of that name."""
    for path in (f".libs/{name}", f".libs/lt-{name}", name):
        path = os.path.join(paths.BUILDDIR, path)
        if os.path.exists(path):
            return path
    raise AssertionError(f"{name} is not built")


def test_event_half_includes_no_python():
    """The event half, the common part and the clients include no Python header, not even indirectly"""
    for path in sources("common", "daemon", "client"):
        found = [n for n in includes(path) if os.path.basename(n) in ("Python.h", "py.h") or n.startswith("daemon/python/")]
        assert not found, f"{path} includes {found}"


def test_python_half_includes_no_libevent():
    """The Python half includes nothing of libevent, nor do the common part and the clients"""
    for path in sources("daemon/python", "common", "client"):
        found = [n for n in includes(path) if n.startswith("event2/") or n == "event.h"]
        assert not found, f"{path} includes {found}"


def test_python_header_has_one_door():
    """Python.h is included in one place, with the limited API of 3.11"""
    doors = []
    for path in sources("daemon/python"):
        with open(path, encoding="utf-8") as f:
            if "Python.h" in INCLUDE.findall(f.read()):
                doors.append(os.path.relpath(path, paths.SRCDIR))
            elif path.endswith("/py.h"):
                raise AssertionError("py.h does not include Python.h")
    assert doors == ["daemon/python/py.h"], doors
    with open(os.path.join(paths.SRCDIR, doors[0]), encoding="utf-8") as f:
        assert re.search(r"#define\s+Py_LIMITED_API\s+0x030b0000", f.read()), "not the limited API of 3.11"


def test_daemon_links_no_libpython():
    """ipython-mcpd is not linked with libpython, the clients with neither libpython nor libevent"""
    for name, forbidden in (("ipython-mcpd", ["python"]), ("ipython-mcp-connect", ["python", "event", "systemd"]),
            ("ipython-mcp", ["python", "event", "systemd"])):
        libraries = output("ldd", built(name))
        for word in forbidden:
            assert f"lib{word}" not in libraries, f"{name} is linked with lib{word}:\n{libraries}"
    libraries = output("ldd", built("shell.so"))
    for word in ("python", "event", "systemd"):
        assert f"lib{word}" not in libraries, f"shell.so is linked with lib{word}:\n{libraries}"


def test_python_half_exports_one_symbol():
    """shell.so exports its entry alone"""
    names = [line.split()[-1] for line in output("nm", "-D", "--defined-only", built("shell.so")).splitlines()]
    names = [n for n in names if not n.startswith(("__", "_init", "_fini", "_edata", "_end", "asan", "ubsan"))]
    assert names == ["shell_entry"], names


def libpythons():
    found = set(glob.glob("/usr/lib/*/libpython3.1[1-9].so.1.0"))
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found.update(glob.glob(f"{root}/versions/*/lib/libpython3.1[1-9].so.1.0"))
    return sorted(found)


def test_stable_abi():
    """Every Python symbol that shell.so wants is in each libpython on this machine, and none is private"""
    wanted = {line.split()[-1] for line in output("nm", "-D", "--undefined-only", built("shell.so")).splitlines()}
    wanted = {n for n in wanted if n.startswith(("Py", "_Py"))}
    public = {"_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_Py_EllipsisObject", "_Py_Dealloc",
        "_Py_NotImplementedStruct"}
    # Those with _SizeT are what PY_SSIZE_T_CLEAN makes of public functions.
    private = {n for n in wanted if n.startswith("_") and not n.endswith("_SizeT")} - public
    assert not private, f"private symbols: {sorted(private)}"
    if not libpythons():
        raise tap.Skip("no libpython to look at")
    for library in libpythons():
        there = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", library).splitlines()}
        assert wanted <= there, f"{library} lacks {sorted(wanted - there)}"


if __name__ == "__main__":
    tap.main()

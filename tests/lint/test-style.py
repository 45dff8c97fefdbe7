#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What can be said of the sources without reading them: licence tags, layout, functions we do not use."""

import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import paths
import tap

C_FOLDERS = ("common", "daemon", "daemon/python", "client", "tests/lib", "tests/unit", "tests/fuzz", "tests/bench")

# Each has a better one: what bounds its writing, what is thread-safe, what reports errors.
BANNED = ("strcpy strcat sprintf vsprintf gets strtok atoi atol atoll atof strncpy strncat mktemp tmpnam tempnam "
    "alloca system popen bcopy bzero ctime asctime localtime gmtime").split()


def c_files():
    for folder in C_FOLDERS:
        yield from sorted(glob.glob(os.path.join(paths.SRCDIR, folder, "*.[ch]")))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def relative(path):
    return os.path.relpath(path, paths.SRCDIR)


def code_only(text):
    """The text with comments and strings blanked, line for line."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', blank, text, flags=re.DOTALL)


def complain(faults):
    assert not faults, "\n" + "\n".join(faults)


def test_licence_tags():
    """Every source says its licence in its first lines"""
    faults = []
    patterns = ["configure.ac", "Makefile.am", "autogen.sh", "check", "try", ".ci/run", "*/local.mk", "tests/*/local.mk",
        "tests/**/*.py", "tests/**/*.sh", "tests/setup"]
    files = list(c_files())
    for pattern in patterns:
        files += glob.glob(os.path.join(paths.SRCDIR, pattern), recursive=True)
    for path in sorted(set(files)):
        if "node_modules" in path:
            continue
        if "SPDX-License-Identifier: MIT" not in "\n".join(read(path).split("\n")[:3]):
            faults.append(f"{relative(path)}: no SPDX line at the top")
    complain(faults)


def test_layout():
    """Tabs indent, lines end before column 100, no blanks at their ends, one newline at the file's"""
    faults = []
    for path in c_files():
        text = read(path)
        if not text.endswith("\n") or text.endswith("\n\n"):
            faults.append(f"{relative(path)}: does not end in one newline")
        for number, line in enumerate(text.split("\n"), 1):
            place = f"{relative(path)}:{number}"
            if line != line.rstrip():
                faults.append(f"{place}: blanks at the end")
            if len(line.expandtabs(8)) > 100:
                faults.append(f"{place}: {len(line.expandtabs(8))} columns")
            if re.match(r" {2,}[^\s\\]", line) and not re.match(r" +\*", line):
                faults.append(f"{place}: indented with blanks")
    complain(faults)


def test_banned_functions():
    """Functions that cannot be used safely are not used"""
    faults = []
    words = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
    for path in c_files():
        if relative(path).startswith("tests/"):
            continue
        for number, line in enumerate(code_only(read(path)).split("\n"), 1):
            for m in words.finditer(line):
                faults.append(f"{relative(path)}:{number}: {m[1]}")
    complain(faults)


def test_no_unfinished_work():
    """No notes to ourselves, no code kept in comments"""
    faults = []
    for path in c_files():
        for number, line in enumerate(read(path).split("\n"), 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b|^\s*#\s*if\s+0\b", line):
                faults.append(f"{relative(path)}:{number}: {line.strip()}")
    complain(faults)


def test_files_open_with_an_essay():
    """Every source of the programs opens with a comment on what it is, every header has one"""
    faults = []
    for path in c_files():
        if relative(path).startswith("tests/"):
            continue
        head = read(path).split("\n", 1)[1][:600]
        if not re.match(r"\s*(#pragma once\s*)?(#include [^\n]*\s*)*/\*", head):
            faults.append(f"{relative(path)}: no comment at the top")
    complain(faults)


def test_headers_explain_their_functions():
    """A function in a header is under a comment, alone or with its neighbours"""
    faults = []
    prototype = re.compile(r"^[a-z][\w \t*]*\b\**\w+\([^;{]*\)[^;{]*;", re.MULTILINE)
    for path in c_files():
        if not path.endswith(".h") or relative(path).startswith("tests/"):
            continue
        text = read(path)
        if "*/" not in text:
            faults.append(f"{relative(path)}: no comment at all")
        # Blocks of neighbouring declarations; one comment may speak for the whole block, in it or just
        # above, and the pairs new/free, init/deinit explain themselves.
        before = ""
        for block in re.split(r"\n\s*\n", text):
            explained = "/*" in block or re.fullmatch(r"\s*/\*[^/]*\*/\s*", before)
            before = block
            for m in prototype.finditer(block):
                if m[0].startswith(("typedef", "return")):
                    continue
                if explained or re.search(r"_(new|free|init|deinit)\b", m[0]):
                    continue
                faults.append(f"{relative(path)}: {m[0].splitlines()[0]}")
    complain(faults)


def test_hacking_names_every_file():
    """HACKING.md has a word about every source of the programs, and about none that is gone"""
    text = read(os.path.join(paths.SRCDIR, "HACKING.md"))
    listed = text[text.index("### One line per file"):text.index("### What we chose not to do")]
    named = set(re.findall(r"`([\w*-]+\.[ch])`", listed))
    sources = {os.path.basename(path) for path in c_files() if path.endswith(".c") and not relative(path).startswith("tests/")}
    missing = {s for s in sources if s not in named and not (s.startswith("cmd-") and "cmd-*.c" in named)}
    headers = {os.path.basename(path) for path in c_files() if path.endswith(".h")}
    gone = {n for n in named if "*" not in n} - sources - headers
    assert not missing and not gone, f"missing: {sorted(missing)}, gone: {sorted(gone)}"


if __name__ == "__main__":
    tap.main()

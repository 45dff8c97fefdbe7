#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The skill for agents: found, well-formed, and its example helper works in a real namespace."""

import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paths  # noqa: E402
import tap  # noqa: E402
from harness import Daemon, environment_with  # noqa: E402

SKILL = os.path.join(paths.SRCDIR, "skills", "ipython-mcp")


def test_form():
    """SKILL.md says its name and when to use it, within what agents read"""
    with open(os.path.join(SKILL, "SKILL.md"), encoding="utf-8") as f:
        text = f.read()
    front = re.match(r"---\n(.*?)\n---\n", text, re.S).group(1)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert set(fields) == {"name", "description"}, fields
    assert fields["name"] == os.path.basename(SKILL) and len(fields["description"]) <= 1024
    assert len(text.splitlines()) < 500
    for name in re.findall(r"`snippets/(\w+\.py)`", text):
        assert os.path.exists(os.path.join(SKILL, "snippets", name)), name


def test_discoverable():
    """.agents/skills leads to it, as agents look there"""
    link = os.path.join(paths.SRCDIR, ".agents", "skills", "ipython-mcp")
    if not os.path.lexists(link):
        raise tap.Skip("a release has no .agents folder")
    assert os.path.samefile(link, SKILL)


def summary(client, expression):
    answer = client.execute(f"summary({expression})")
    assert answer["ok"], answer
    assert len(json.dumps(answer["result"])) < 4000, expression
    return answer["result"]


def test_snippet():
    """the helper, loaded by its absolute path as the skill says, describes anything in a few lines"""
    python = environment_with("matplotlib")
    with Daemon(environment={"IPYTHON_MCP_PYTHON": python} if python else None) as daemon:
        folder = os.path.join(daemon.place.home, "project", ".ipython-mcp", "snippets")
        os.makedirs(folder)
        shutil.copy(os.path.join(SKILL, "snippets", "summary.py"), folder)
        with daemon.connect() as client:
            client.open()
            assert client.execute(f"%run {folder}/summary.py")["ok"]
            assert summary(client, "list(range(10**6))")["len"] == 10**6
            assert summary(client, "{i: 'x' * 1000 for i in range(1000)}")["len"] == 1000
            assert summary(client, "'y' * 10**6")["len"] == 10**6
            client.execute("class Rude:\n    def __repr__(self): raise RuntimeError('no')")
            assert "failed" in summary(client, "Rude()")["value"]
            if python:
                client.execute("import numpy as np, pandas as pd\n"
                    "df = pd.DataFrame({f'c{i}': np.arange(1e4) for i in range(50)})\ndf.iloc[0, 0] = None")
                found = summary(client, "df")
                assert found["shape"] == [10000, 50] and found["missing"] == 1 and len(found["head"]) == 5
                assert summary(client, "df.to_numpy()")["dtype"] == "float64"
                assert summary(client, "df['c1']")["shape"] == [10000]
            answer = client.answer("call_function", {"name": "summary", "arguments": {"value": [1, 2, 3]}})
            assert answer["result"] == {"type": "list", "len": 3, "first": ["1", "2", "3"]}, answer


if __name__ == "__main__":
    tap.main()

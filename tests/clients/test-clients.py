#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Third-party MCP clients against the real shim and daemon: the official Python and TypeScript SDKs and
@ai-sdk/mcp in each era they speak, and the MCP Inspector's command line. Speaks TAP.

tests/setup installs them outside the clone.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("MCP_BUILDDIR") or sys.exit("MCP_BUILDDIR must name the build directory")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ipython-mcp-tests")
SHIM = os.path.join(BUILD, "ipython-mcp-connect")
STABLE = ["execute", "call_function", "list", "search", "inspect", "remove", "reset", "reload",
          "register_tool", "unregister_tool"]


class Place:
    """A private runtime directory; the clients get it in their environment and start the daemon."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="mcp-clients-")
        self.runtime = os.path.join(self.directory, "run")
        os.mkdir(self.runtime, 0o700)
        # What an agent's configuration names explicitly, over what the clients pass on by themselves.
        self.variables = {"IPYTHON_MCP_RUNTIME_DIR": self.runtime,
                          "IPYTHON_MCP_PYTHON": os.environ.get("MCP_PYTHON", os.path.join(CACHE, "ipython9/bin/python"))}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run([os.path.join(BUILD, "ipython-mcp"), "stop", "--force"], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, command, check=True, cwd=None):
        result = subprocess.run(command, cwd=cwd or self.directory, stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=120,
                                env={"PATH": os.environ["PATH"], "HOME": self.directory, "LANG": "C.UTF-8",
                                     **self.variables})
        if check and result.returncode:
            raise AssertionError(f"{command[0]} ended with {result.returncode}: {result.stderr[-2000:]}")
        return result


def text_of(result):
    """The JSON object of a result's first block."""
    assert result["content"][0]["type"] == "text"
    return json.loads(result["content"][0]["text"])


def check_session(seen, revision):
    """The same of every client that drove the session of drive.py and drive.mjs."""
    assert seen["tools"] == STABLE, seen["tools"]
    if "revision" in seen:
        assert seen["revision"] == revision, seen["revision"]
    assert text_of(seen["value"])["result"] == 42
    assert seen["value"]["structuredContent"]["result"] == 42
    assert seen["error"]["isError"] is True
    assert text_of(seen["error"])["error"]["error_type"] == "ZeroDivisionError"
    kinds = [block["type"] for block in seen["figure"]["content"]]
    assert kinds == ["text", "image"], kinds
    assert seen["figure"]["content"][1]["mimeType"] == "image/png"
    # Several agents would show the model the structured object alone.
    assert "structuredContent" not in seen["figure"]
    assert text_of(seen["called"])["result"] == 42
    assert seen["grown"] == STABLE + ["double"], seen["grown"]
    assert text_of(seen["registered"])["result"] == 8
    if "listed" in seen:
        names = [f["name"] for f in text_of(seen["listed"])["functions"]]
        assert "double" in names, names


def case_sdk(program, mode, revision):
    def run():
        with Place() as place:
            output = place.run([*program, mode, SHIM], cwd=os.path.join(CACHE, "clients")).stdout
        check_session(json.loads(output), revision)
    return run


def inspector(place, *arguments, check=True):
    return place.run([os.path.join(CACHE, "clients/node_modules/.bin/mcp-inspector"), "--cli", SHIM, *arguments],
                     check=check)


def case_inspector(era):
    def run():
        with Place() as place:
            era_option = ("--protocol-era", era)
            listed = inspector(place, *era_option, "--method", "tools/list", "--format", "json").stdout
            assert [t["name"] for t in json.loads(listed)["result"]["tools"]] == STABLE, listed[:500]
            answered = inspector(place, *era_option, "--method", "tools/call", "--tool-name", "execute",
                                 "--tool-args-json", json.dumps({"code": "6*7"}), "--format", "json").stdout
            assert text_of(json.loads(answered)["result"])["result"] == 42, answered[:500]
            # Its exit code says whether the tool failed.
            failed = inspector(place, *era_option, "--method", "tools/call", "--tool-name", "execute",
                               "--tool-args-json", json.dumps({"code": "1/0"}), "--format", "json", check=False)
            assert failed.returncode != 0 and "ZeroDivisionError" in failed.stdout + failed.stderr
    return run


def case_inspector_strict():
    with Place() as place:
        inspector(place, "--method", "tools/list", "--strict")


def case_inspector_load():
    with Place() as place:
        output = inspector(place, "--method", "tools/call", "--tool-name", "execute", "--tool-args-json",
                           json.dumps({"code": "1"}), "--load", "--load-requests", "200", "--load-concurrency", "10").stdout
        assert "200" in output, output[-800:]


def cases():
    python = [os.path.join(CACHE, "sdk/bin/python"), os.path.join(HERE, "drive.py")]
    node = ["node", os.path.join(HERE, "drive.mjs")]
    for mode, revision in (("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("modern", "2026-07-28")):
        yield f"Python SDK, {mode}", case_sdk(python, mode, revision)
    for mode, revision in (("sdk1", "2025-11-25"), ("sdk2-legacy", "2025-11-25"), ("sdk2-auto", "2026-07-28"),
                           ("sdk2-modern", "2026-07-28"), ("ai-sdk", None)):
        yield f"TypeScript, {mode}", case_sdk(node, mode, revision)
    for era in ("legacy", "auto", "modern"):
        yield f"Inspector, {era}: list, call, a tool's error", case_inspector(era)
    yield "Inspector finds no fault in the schemas", case_inspector_strict
    yield "Inspector, 200 calls by 10 at once", case_inspector_load


def main():
    failed = 0
    number = 0
    for number, (name, run) in enumerate(cases(), 1):
        try:
            run()
            print(f"ok {number} - {name}", flush=True)
        except Exception as e:  # one client's failure must not hide the others'
            failed += 1
            for line in f"{type(e).__name__}: {e}".splitlines():
                print("# " + line[:1000])
            print(f"not ok {number} - {name}", flush=True)
    print(f"1..{number}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The tools as their readers see them: words and schemas that every client takes, and three profiles that
say the same."""

import json
import os
import re
import sys

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import harness
import schema
import tap

# What some real client or model API refuses at the root of a schema.
REFUSED_AT_ROOT = ("anyOf", "oneOf", "allOf", "not", "$ref", "enum", "if")


def listed(profile, revision="2025-11-25"):
    with harness.Daemon() as daemon, daemon.connect() as client:
        client.attach(profile=profile)
        server = client.open(revision) or client.request("server/discover")["result"]
        return server, client.request("tools/list")["result"]["tools"]


def subschemas(value, path=""):
    yield path, value
    for name, member in value.get("properties", {}).items():
        yield from subschemas(member, f"{path}/{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(value.get(name), dict):
            yield from subschemas(value[name], f"{path}/{name}")
    for member in value.get("anyOf", []):
        yield from subschemas(member, path + "/anyOf")


def test_words():
    """Titles, descriptions and instructions are there, and within what clients show of them"""
    for profile in ("full", "compact", "text"):
        server, tools = listed(profile)
        assert 0 < len(server["instructions"]) < 2048, profile
        for tool in tools:
            place = (profile, tool["name"])
            assert re.fullmatch(r"[a-z_]{1,64}", tool["name"]), place
            assert 0 < len(tool["description"]) < 2048, place
            if profile == "full":
                assert tool["title"] and "shared" in tool["description"].lower(), place
            for name, parameter in tool["inputSchema"].get("properties", {}).items():
                assert profile != "full" or parameter.get("description"), (*place, name)


def test_schemas():
    """Schemas keep to what all clients take: an object at the root, types everywhere, items on arrays"""
    for profile in ("full", "compact", "text"):
        for tool in listed(profile)[1]:
            for kind in ("inputSchema", "outputSchema"):
                root = tool.get(kind)
                if root is None:
                    assert kind == "outputSchema" and (profile != "full" or tool["name"] in ("execute", "call_function"))
                    continue
                place = (profile, tool["name"], kind)
                jsonschema.Draft202012Validator.check_schema(root)
                jsonschema.Draft7Validator.check_schema(root)
                assert root["type"] == "object", place
                assert not set(root) & set(REFUSED_AT_ROOT), place
                assert kind == "outputSchema" or profile != "full" or root.get("additionalProperties") is False, place
                for path, part in subschemas(root):
                    where = (*place, path)
                    assert "$ref" not in part, where
                    if "type" not in part:
                        assert kind == "outputSchema" or "anyOf" in part, where
                    if part.get("type") == "array":
                        assert "items" in part, where


def test_hints():
    """The hints are truthful"""
    hints = {tool["name"]: tool["annotations"] for tool in listed("full")[1]}
    for name in ("execute", "call_function"):
        h = hints[name]
        assert not h["readOnlyHint"] and h["destructiveHint"] and not h["idempotentHint"] and h["openWorldHint"], name
    for name in ("list", "search", "inspect"):
        assert hints[name]["readOnlyHint"], name
    for name in ("remove", "reset", "reload", "register_tool", "unregister_tool"):
        assert not hints[name]["readOnlyHint"], name
    assert hints["unregister_tool"]["idempotentHint"]
    assert hints["remove"]["destructiveHint"] and hints["reset"]["destructiveHint"]


def test_lists_agree():
    """Both eras and all revisions list the same tools; compact and text list the same two"""
    names = [tool["name"] for tool in listed("full")[1]]
    for revision in schema.REVISIONS:
        assert [tool["name"] for tool in listed("full", revision)[1]] == names, revision
        for profile in ("compact", "text"):
            assert [tool["name"] for tool in listed(profile, revision)[1]] == names[:2], (revision, profile)


CALLS = [
    ("execute", {"code": "x = [1, 2.5, None, 'é']; x"}),
    ("execute", {"code": "print('out'); import sys; print('err', file=sys.stderr)"}),
    ("execute", {"code": "print('no newline', end=''); 'value'"}),
    ("execute", {"code": "1/0"}),
    ("execute", {"code": "def f(a, b=2): return {'sum': a + b}"}),
    ("execute", {"code": "object.__new__(type('Q', (), {'__repr__': lambda s: 'Q!'}))"}),
    ("execute", {"code": "def ("}),
    ("execute", {"code": ""}),
    ("execute", {"code": "while True: pass", "timeout": 0.3}),
    ("execute", {"code": "print('z' * 10000)"}),
    ("execute", {"code": "from IPython.display import display, Markdown; display(Markdown('**md**')); None"}),
    ("execute", {"code": "False"}),
    ("execute", {"code": "2**70"}),
    ("call_function", {"name": "f", "arguments": {"a": 1}}),
    ("call_function", {"name": "f", "arguments": {}}),
    ("call_function", {"name": "nosuch", "arguments": {}}),
]

# What compact leaves out when it says nothing.
NOTHING = (None, "", [], {}, False, 0)


def shrinks(full, compact):
    """True when compact says what full says, with nothing but empty and default protocol fields left out."""
    if isinstance(full, dict) and isinstance(compact, dict):
        return all(shrinks(full[k], compact[k]) if k in compact else
            full[k] in NOTHING or k in ("status", "truncated", "name", "execution_count", "display_data", "ok")
            or (isinstance(full[k], dict) and shrinks(full[k], {})) for k in full) and not set(compact) - set(full)
    return full == compact and type(full) is type(compact)


def test_profiles_agree():
    """The same calls in three profiles: compact leaves out only what is empty, text says what matters"""
    answers = {}
    for profile in ("full", "compact", "text"):
        with harness.Daemon() as daemon, daemon.connect() as client:
            client.attach(profile=profile)
            client.open()
            answers[profile] = [client.answer_of(client.call(*call)) for call in CALLS]
            daemon.wait_ready()
    for call, full, compact, text in zip(CALLS, *answers.values()):
        for answer in (full, compact):
            # Files have names of their own in each daemon.
            for name in ("stdout_file", "stderr_file"):
                if name in answer:
                    answer[name] = "FILE"
        assert shrinks(full, compact), (call, full, compact)
        assert len(json.dumps(compact)) < len(json.dumps(full)), (call, full, compact)
        if full["error"]:
            assert full["error"]["message"].splitlines()[0] in text, (call, text)
            assert full["error"]["error_type"] or f"[{full['error']['code']}]" in text, (call, text)
        elif call[0] == "call_function":
            assert json.loads(text) == full["result"], (call, text)
        if call[0] == "execute":
            assert full["stdout"].rstrip("\n")[:5000] in text, (call, text)
            assert full["stderr"].rstrip("\n") in text, (call, text)
            if not full["error"] and full["result"] is not None and not isinstance(full["result"], dict):
                assert repr(full["result"]) in text, (call, text)


if __name__ == "__main__":
    tap.main()

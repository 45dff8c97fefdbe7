#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Random signatures as tools: what their schema promises is what a call takes, by the judgement of jsonschema."""

import hashlib
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import jsonschema

import harness
import tap

SCALARS = ["str", "int", "float", "bool", "None"]


def annotation(rng, depth, hashable=False):
    """An annotation's source text and its JSON Schema."""
    kind = rng.choice(["scalar", "scalar", "literal", "union", "tuple", "sequence", "frozenset"]
        + ([] if hashable else ["list", "set", "dict"])) if depth else "scalar"
    inner = hashable or kind in ("set", "frozenset")
    if kind == "scalar":
        name = rng.choice(SCALARS)
        word = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null"}[name]
        return name, {"type": word}
    if kind == "literal":
        values = rng.sample(["a", "b", "é", 1, 2, -5, True, None], rng.randrange(1, 4))
        words = {{str: "string", int: "integer", bool: "boolean", type(None): "null"}[type(v)] for v in values}
        schema = {"enum": values}
        if len(words) == 1:
            schema["type"] = words.pop()
        return f"Literal{values!r}", schema
    if kind == "union":
        # Without a union or a scalar twice: typing would flatten the one and merge the other.
        members = [rng.choice(SCALARS)]
        parts = [annotation_of(members[0])]
        name, schema = annotation(rng, depth - 1, inner)
        if "|" not in name and "Union" not in name and name not in members:
            members.append(name)
            parts.append(schema)
        if len(members) == 1:
            return members[0], parts[0]
        parts.sort(key=canonical)
        return f"Union[{', '.join(members)}]", {"anyOf": parts}
    if kind == "tuple":
        parts = [annotation(rng, depth - 1, inner) for _ in range(rng.randrange(1, 4))]
        return f"tuple[{', '.join(name for name, _ in parts)}]", {"type": "array",
            "prefixItems": [schema for _, schema in parts], "items": False, "minItems": len(parts),
            "maxItems": len(parts)}
    name, schema = annotation(rng, depth - 1, inner)
    if kind == "sequence":
        return f"tuple[{name}, ...]", {"type": "array", "items": schema}
    if kind == "dict":
        return f"dict[str, {name}]", {"type": "object", "additionalProperties": schema}
    if kind == "list":
        return f"list[{name}]", {"type": "array", "items": schema}
    return f"{kind}[{name}]", {"type": "array", "items": schema, "uniqueItems": True}


def annotation_of(scalar):
    return {"type": {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null"}[scalar]}


def canonical(schema):
    return json.dumps(schema, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fitting(rng, schema):
    """A value that fits the schema; sometimes one that does not, somewhere inside."""
    if rng.random() < 0.12:
        return rng.choice([None, True, 3, 2.0, 2.5, [], [1, 1], {}, {"k": 1}, {"k": "x"}])
    if "anyOf" in schema:
        return fitting(rng, rng.choice(schema["anyOf"]))
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "prefixItems" in schema:
        return [fitting(rng, part) for part in schema["prefixItems"]]
    if schema["type"] == "array":
        return [fitting(rng, schema["items"]) for _ in range(rng.randrange(4))]
    if schema["type"] == "object":
        return {rng.choice("klm"): fitting(rng, schema["additionalProperties"]) for _ in range(rng.randrange(3))}
    return {"string": "text", "integer": rng.choice([0, -7, 2 ** 60]), "number": rng.choice([0.5, 4]),
        "boolean": rng.choice([True, False]), "null": None}[schema["type"]]


def holds_text_for_another(value, schema):
    """A string where none is wanted: taken as JSON, which jsonschema does not do."""
    return isinstance(value, str) and not jsonschema.Draft202012Validator(schema).is_valid(value)


def check_tool(rng, client, number):
    name, schema = annotation(rng, 3)
    default = rng.random() < 0.3
    code = f"def tool{number}(value: {name!r}) -> 'Nowhere': return repr(value)"
    if default:
        code = f"def tool{number}(value: {name} = DEFAULT): return repr(value)"
        for _ in range(20):
            value = fitting(rng, schema)
            if jsonschema.Draft202012Validator(schema).is_valid(value) and "float" not in name:
                break
        else:
            return
        code = code.replace("DEFAULT", repr(value))
    assert client.execute(code)["ok"], code
    answer = client.answer("register_tool", {"name": f"tool{number}"})
    assert answer["ok"], (code, answer)
    property = dict(schema, **({"default": value} if default else {}))
    whole = {"type": "object", "properties": {"value": property}, "additionalProperties": False}
    if not default:
        whole["required"] = ["value"]
    registration = answer["registration"]
    assert canonical(registration["input_schema"]) == canonical(whole), (code, registration)
    assert registration["schema_fingerprint"] == hashlib.sha256(canonical(whole).encode()).hexdigest(), code
    jsonschema.Draft202012Validator.check_schema(whole)

    for _ in range(8):
        value = fitting(rng, schema)
        if holds_text_for_another(value, schema):
            continue
        valid = jsonschema.Draft202012Validator(schema).is_valid(value)
        answer = client.answer(f"tool{number}", {"value": value})
        assert answer["ok"] == valid, (code, value, answer)
        if not valid:
            assert answer["error"]["code"] == "invalid_arguments", answer
            assert "`value" in answer["error"]["message"], answer


def test_random_signatures():
    """Schema, fingerprint and check of random signatures agree with jsonschema's reading of them"""
    seed = int(os.environ.get("MCP_SEED", random.randrange(2 ** 32)))
    rng = random.Random(seed)
    with harness.Daemon() as daemon, daemon.connect() as client:
        client.open("2026-07-28")
        assert client.execute("from typing import Literal, Union")["ok"]
        for number in range(120):
            try:
                check_tool(rng, client, number)
            except AssertionError as e:
                raise AssertionError(f"seed {seed}: {e}") from e
            client.answer("unregister_tool", {"names": [f"tool{number}"]})


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules[__name__]))

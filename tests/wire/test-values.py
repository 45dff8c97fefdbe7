#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Values that go through Python and back unchanged: what no list of examples covers."""

import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import harness
import tap

sys.set_int_max_str_digits(0)

SETUP = """
import json, sys
def same(value): return value
def text(value): return json.dumps(value, sort_keys=True)
def power(n, d): return 10 ** n + d
def size(value): return [value.bit_length(), value % (2 ** 61 - 1)]
"""

CHARACTERS = "aZ09 \t\n\"\\/\x00\x1f\x7f\x85éß€\u2028\u2029\ufffd\U0001f600"


def value(rng, depth):
    """A JSON value within the bounds that nothing is cut at."""
    kind = rng.randrange(9 if depth else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.randint(-2 ** rng.choice([3, 31, 53, 63, 64, 200]), 2 ** rng.choice([3, 31, 53, 63, 64, 200]))
    if kind == 2:
        return rng.choice([0.0, -0.0, 0.1, 1e16, 1e-7, 5e-324, 1.7976931348623157e308, rng.uniform(-1e6, 1e6)])
    if kind < 6:
        return "".join(rng.choices(CHARACTERS, k=rng.randrange(12)))
    if kind == 6:
        return {("" if rng.random() < 0.1 else "k") + "".join(rng.choices(CHARACTERS, k=rng.randrange(4))):
            value(rng, depth - 1) for _ in range(rng.randrange(6))}
    return [value(rng, depth - 1) for _ in range(rng.randrange(6))]


def exactly(a, b):
    """Equal, and of the same types: 1 is neither 1.0 nor true, 0.0 is not -0.0."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def prepared():
    daemon = harness.Daemon()
    client = daemon.connect()
    client.open()
    assert client.execute(SETUP.strip())["ok"]
    return daemon, client


def test_random_values():
    """Random JSON values reach a function exactly and come back exactly"""
    seed = int(os.environ.get("MCP_SEED", random.randrange(2 ** 32)))
    rng = random.Random(seed)
    daemon, client = prepared()
    with daemon:
        for n in range(300):
            sent = value(rng, 4)
            for function, expected in (("same", sent), ("text", json.dumps(sent, sort_keys=True))):
                answer = client.answer("call_function", {"name": function, "arguments": {"value": sent}})
                assert answer["ok"] and exactly(answer["result"], expected), (seed, n, sent, answer)


def test_integers():
    """Integers around every place where they are cut into pieces are exact in both directions"""
    daemon, client = prepared()
    with daemon:
        for n in [*range(1, 60), *range(595, 650, 3), 1200, 1201, 4299, 4300, 4301, 9216, 20000, 99998, 99999]:
            for d in (-1, 0, 1, 10 ** (n // 2) + 7):
                expected = 10 ** n + d
                answer = client.answer("call_function", {"name": "power", "arguments": {"n": n, "d": d}})
                assert answer["result"] == expected, (n, d)
            sent = -(10 ** n) + 3
            answer = client.answer("call_function", {"name": "size", "arguments": {"value": sent}})
            assert answer["result"] == [sent.bit_length(), sent % (2 ** 61 - 1)], n
        answer = client.answer("call_function", {"name": "power", "arguments": {"n": 100000, "d": -1}})
        assert answer["result"] == 10 ** 100000 - 1
        answer = client.answer("call_function", {"name": "power", "arguments": {"n": 100000, "d": 0}})
        assert answer["error"]["code"] == "result_not_json" and "bits" in answer["error"]["message"], answer
        assert client.execute("sys.get_int_max_str_digits()")["result"] == 4300


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules[__name__]))

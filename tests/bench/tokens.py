#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What each profile costs a model, in tokens: the list of tools, and the answers of a fixed pandas analysis.

    make bench-tokens               from a build directory, or
    tests/bench/tokens.py BUILDDIR [--python INTERPRETER] [--show]

Counted are the JSON text of `tools` as it arrives and the text blocks of the ten answers, with the o200k
vocabulary of gpt-tokenizer, which is installed from npm into a cache outside the clone. INTERPRETER needs IPython and
pandas.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

TOKENIZER = "gpt-tokenizer@4.0.0"
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ipython-mcp-tests")
COUNT = """
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
let text = '';
for await (const piece of process.stdin) text += piece;
process.stdout.write(JSON.stringify(JSON.parse(text).map((t) => countTokens(t))));
"""
FRAME = """df = pd.DataFrame({
    'city': ['Oslo', 'Lima', 'Pune', 'Kyiv'] * 250,
    'day': range(1000),
    'value': [round((i * 37 % 101) / 7, 3) for i in range(1000)]})"""
STEPS = (
    ("execute", {"code": "import pandas as pd"}),
    ("execute", {"code": FRAME}),
    ("execute", {"code": "df"}),
    ("execute", {"code": "df.describe()"}),
    ("execute", {"code": "df.groupby('city')['value'].mean()"}),
    ("execute", {"code": "def top(n: int) -> list:\n    return df.nlargest(n, 'value')['day'].tolist()\ntop(3)"}),
    ("execute", {"code": "df['missing']"}),
    ("execute", {"code": "for i in range(60):\n    print(df.city[i], df.day[i])"}),
    ("execute", {"code": "df.day[:20].tolist()"}),
    ("execute", {"code": "df.shape"}),
)
# (profile, what) -> most tokens; compact's bound is relative and checked below.
TARGETS = {("text", "tools"): 335, ("text", "answers"): 900}


class Session:
    def __init__(self, shim, profile, environment):
        self.process = subprocess.Popen([shim, "--profile", profile], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.id = 0
        self.request("initialize", protocolVersion="2025-11-25", capabilities={},
                     clientInfo={"name": "tokens", "version": "1"})
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method, **params):
        self.id += 1
        self.write({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self.id:
                return message["result"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def count(texts):
    """Tokens of each text."""
    directory = os.path.join(CACHE, "tokenizer")
    if not os.path.isdir(os.path.join(directory, "node_modules")):
        os.makedirs(directory, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", TOKENIZER], cwd=directory,
                       check=True, stdout=sys.stderr)
    result = subprocess.run(["node", "--input-type=module", "-e", COUNT], cwd=directory, input=json.dumps(texts),
                            stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--show", action="store_true", help="print the texts, too")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    runtime = tempfile.mkdtemp(prefix="mcp-tokens-")
    environment = {**os.environ, "IPYTHON_MCP_RUNTIME_DIR": runtime, "IPYTHON_MCP_PYTHON": options.python}
    texts, places = [], []
    try:
        for profile in ("full", "compact", "text"):
            session = Session(os.path.join(build, "ipython-mcp-connect"), profile, environment)
            tools = json.dumps(session.request("tools/list")["tools"], separators=(",", ":"), ensure_ascii=False)
            answers = [session.request("tools/call", name=tool, arguments=arguments) for tool, arguments in STEPS]
            session.close()
            texts.append(tools)
            places.append((profile, "tools"))
            for answer in answers:
                texts.append("".join(b["text"] for b in answer["content"] if b["type"] == "text"))
                places.append((profile, "answers"))
    finally:
        subprocess.run([os.path.join(build, "ipython-mcp"), "stop", "--force"], env=environment,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(runtime, ignore_errors=True)

    sums = {}
    for place, text, tokens in zip(places, texts, count(texts)):
        sums[place] = sums.get(place, 0) + tokens
        if options.show:
            print(f"--- {place[0]}, {place[1]}: {tokens} tokens\n{text}")
    print(f"{'profile':8} {'tools/list':>11} {'ten answers':>12}")
    for profile in ("full", "compact", "text"):
        print(f"{profile:8} {sums[profile, 'tools']:11} {sums[profile, 'answers']:12}")
    for place, most in TARGETS.items():
        print(f"{place[0]}, {place[1]}: {sums[place]} tokens, target < {most}: {'met' if sums[place] < most else 'MISSED'}")
    ratio = sum(sums["compact", w] for w in ("tools", "answers")) / sum(sums["full", w] for w in ("tools", "answers"))
    print(f"compact: {ratio:.2f} of full, target <= 0.6: {'met' if ratio <= 0.6 else 'MISSED'}")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A short real session, as two agents would have it: what `./try` shows.

    tests/demo.py BUILDDIR

Everything goes the whole way: JSON lines into ipython-mcp-connect's stdin, over the Unix socket, into
IPython inside the daemon, and back. The daemon is a private one and ends with the demonstration.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time


def bold(text):
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


class Agent:
    """What an agent program does: starts the shim as its MCP server and talks to it over stdio."""

    def __init__(self, build, environment, name):
        self.process = subprocess.Popen([os.path.join(build, "ipython-mcp-connect")], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.n = 0
        print(f"\n{bold(name)} starts ipython-mcp-connect (process {self.process.pid})")
        server = self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": name, "version": "1"}})["serverInfo"]
        self.send({"method": "notifications/initialized"})
        tools = self.request("tools/list", {})["tools"]
        print(f"  {server['name']} {server['version']} offers: {', '.join(t['name'] for t in tools)}")

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def request(self, method, params):
        self.n += 1
        self.send({"id": self.n, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.n:
                if "error" in message:
                    sys.exit(f"{method} failed: {message['error']}")
                return message["result"]
        sys.exit("the connection ended")

    def execute(self, code, **options):
        for n, line in enumerate(code.splitlines()):
            print(f"  {'>>>' if n == 0 else '...'} {line}")
        start = time.monotonic()
        result = self.request("tools/call", {"name": "execute", "arguments": {"code": code, **options}})
        elapsed = time.monotonic() - start
        answer = json.loads(result["content"][0]["text"])
        for text in (answer["stdout"], answer["stderr"]):
            if text:
                print("  " + text.rstrip("\n").replace("\n", "\n  "))
        if answer["result"] is not None:
            print(f"  {json.dumps(answer['result'])}")
        for block in result["content"][1:]:
            data = base64.b64decode(block["data"])
            print(f"  [an image block: {block['mimeType']}, {len(data)} bytes]")
        if answer["error"]:
            print(f"  [{answer['error']['code']} after {elapsed:.1f} s] {answer['error']['message']}")
        return answer

    def leave(self):
        self.process.stdin.close()
        print(f"  the agent ends; its shim exits with status {self.process.wait(10)}")


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    with tempfile.TemporaryDirectory(prefix="ipython-mcp-try-") as directory:
        runtime = os.path.join(directory, "run")
        os.mkdir(runtime, 0o700)
        environment = {**os.environ, "IPYTHON_MCP_RUNTIME_DIR": runtime}
        for name in ("VIRTUAL_ENV", "IPYTHON_MCP_SOCKET", "IPYTHON_MCP_PYTHON"):
            environment.pop(name, None)
        try:
            first = Agent(build, environment, "The first agent")
            first.execute("import math, statistics\n"
                "primes = [n for n in range(2, 2000) if all(n % d for d in range(2, math.isqrt(n) + 1))]\n"
                "print('computed', len(primes), 'primes')\n"
                "statistics.mean(primes)")
            first.leave()
            second = Agent(build, environment, "A second agent, later,")
            found = second.execute("len(primes), primes[-1]")
            second.execute("import matplotlib.pyplot as plt\nplt.plot(primes); plt.title('primes'); plt.show()")
            second.execute("while True: pass", timeout=1)
            again = second.execute("'still here:', sum(primes)")
            second.leave()
            if found["result"] != [303, 1999] or again["result"] != ["still here:", 277050]:
                sys.exit("The variables did not survive.")
            print("\nThe daemon that kept the variables:")
        finally:
            for command in (["status"], ["stop"]):
                subprocess.run([os.path.join(build, "ipython-mcp"), *command], env=environment)


if __name__ == "__main__":
    main()

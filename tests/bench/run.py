#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first benchmark: the promises of the architecture, each against a reference of the same run.

    make bench                      from a build directory, or
    tests/bench/run.py BUILDDIR [--python INTERPRETER] [--rounds N] [--only WORD]

Prints one table: what was measured, our figure, the reference, the ratio, the target, and whether it
was met. Only ratios are to be quoted: both sides of a ratio were measured seconds apart on the same
machine with the same driver. INTERPRETER needs IPython and is used for both sides.
"""
import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

INITIALIZE = json.dumps({
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {},
               "clientInfo": {"name": "bench", "version": "1"}}})
INITIALIZED = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
IN_PROCESS = """
import sys, time, statistics
from traitlets.config import Config
from IPython.core.interactiveshell import InteractiveShell
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
"""


def call(id, tool, **arguments):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                       "params": {"name": tool, "arguments": arguments}})


class Bench:
    def __init__(self, build, python, rounds):
        self.build, self.python, self.rounds = build, python, rounds
        self.shim = os.path.join(build, "ipython-mcp-connect")
        self.directory = tempfile.mkdtemp(prefix="mcp-bench-")
        self.environment = {**os.environ, "IPYTHON_MCP_RUNTIME_DIR": self.directory,
                            "IPYTHON_MCP_PYTHON": python}
        self.rows = []

    # What both sides are measured with.

    def stopwatch(self, *arguments):
        """Median, minimum and maximum in microseconds."""
        result = subprocess.run([os.path.join(self.build, "tests/bench/stopwatch"), *arguments],
                                env=self.environment, stdout=subprocess.PIPE, check=True, text=True)
        return tuple(float(x) for x in result.stdout.split())

    def setup_file(self, *lines):
        path = os.path.join(self.directory, "setup.jsonl")
        with open(path, "w") as f:
            f.writelines(line + "\n" for line in (INITIALIZE, INITIALIZED, *lines))
        return path

    def row(self, what, unit, ours, reference, reference_name, target):
        self.rows.append((what, ours, reference, reference_name, unit, ours / reference, target))
        print(f"  measured: {what}", file=sys.stderr)

    def row_absolute(self, what, unit, ours, target):
        self.rows.append((what, ours, None, "-", unit, None, target))
        print(f"  measured: {what}", file=sys.stderr)

    # The daemon of this run.

    def stop_daemon(self):
        subprocess.run([os.path.join(self.build, "ipython-mcp"), "stop", "--force"],
                       env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @contextlib.contextmanager
    def client(self):
        """A shim with its handshake done: send(line), answer()."""
        process = subprocess.Popen([self.shim], env=self.environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, bufsize=1)

        def send(line):
            process.stdin.write(line + "\n")
            process.stdin.flush()

        def answer():
            while True:
                message = json.loads(process.stdout.readline())
                if "id" in message:
                    return message

        send(INITIALIZE)
        answer()
        send(INITIALIZED)
        try:
            yield send, answer, process
        finally:
            process.stdin.close()
            process.wait()

    def python_run(self, code, **options):
        return subprocess.run([self.python, "-c", code], env=self.environment, check=True, text=True,
                              stdout=subprocess.PIPE, **options).stdout

    # The lines of the table.

    @contextlib.contextmanager
    def echo(self):
        path = os.path.join(self.directory, "echo.sock")
        server = subprocess.Popen([os.path.join(self.build, "tests/bench/echo-server"), path])
        while not os.path.exists(path):
            time.sleep(0.01)
        try:
            yield os.path.join(self.build, "tests/bench/echo-client"), path
        finally:
            server.terminate()
            server.wait()
            os.unlink(path)

    def attach(self):
        with self.client() as (send, answer, _):
            send(call(1, "execute", code="1"))
            answer()
        with self.echo() as echo:
            reference = self.stopwatch("start", "200", INITIALIZE, "--", *echo)
            ours = self.stopwatch("start", "200", INITIALIZE, "--", self.shim)
            self.row("shim started -> initialize answered, daemon running", "us",
                     ours[0], reference[0], "echo pair", 2)
            figures = []
            for _ in range(self.rounds):
                self.stop_daemon()
                figures.append(self.stopwatch("start", "1", INITIALIZE, "--", self.shim)[0])
            self.row("the same, no daemon running", "us", statistics.median(figures),
                     reference[0], "echo pair", 6)

    def first_execute(self):
        plain, ours = [], []
        code = IN_PROCESS + "shell.run_cell('1+1', store_history=True)"
        for _ in range(self.rounds):
            begin = time.perf_counter()
            self.python_run(code)
            plain.append(time.perf_counter() - begin)
            self.stop_daemon()
            begin = time.perf_counter()
            with self.client() as (send, answer, _):
                send(call(1, "execute", code="1+1"))
                answer()
                ours.append(time.perf_counter() - begin)
        self.row("no daemon -> first execute answered", "ms", statistics.median(ours) * 1e3,
                 statistics.median(plain) * 1e3, "python -c InteractiveShell", 1.15)

    def registrations(self):
        """What looking at 100 registrations after a call costs: the difference that they make."""
        setup = self.setup_file(call(1, "execute", code="def same(x): return x"))

        def trip():
            return self.stopwatch("trip", "3000", setup, call(9, "call_function", name="same",
                arguments={"x": 1}), "--", self.shim)[1]  # the fastest: a small difference of large times

        without = trip()
        with self.client() as (send, answer, _):
            send(call(1, "execute", code="\n".join(
                f"def tool{i}(a: int, b: str = 'x', *, c: list[int] = []): return a" for i in range(100))))
            answer()
            for i in range(100):
                send(call(2, "register_tool", name=f"tool{i}"))
                answer()
            ours = trip() - without
            send(call(3, "unregister_tool", names=[f"tool{i}" for i in range(100)]))
            answer()
        self.row_absolute("100 registered tools, more per call", "us", ours, 50)

    def calls(self):
        setup = self.setup_file(call(1, "execute", code="def same(x): return x"))
        with self.echo() as echo:
            empty = os.path.join(self.directory, "empty.jsonl")
            open(empty, "w").close()
            reference = self.stopwatch("trip", "3000", empty, call(9, "echo"), "--", *echo)
            ours = self.stopwatch("trip", "3000", setup,
                                  call(9, "call_function", name="same", arguments={"x": 1}), "--", self.shim)
            self.row("call_function of a function that returns its argument", "us",
                     ours[0], reference[0], "echo round trip", 4)
        tight, spaced = self.cells_in_process(0), self.cells_in_process(100e-6)
        ours = self.stopwatch("trip", "2000", self.setup_file(), call(9, "execute", code="1"), "--",
                              self.shim)
        self.row('execute("1")', "us", ours[0], tight, "in-process run_cell", 1.0)
        # What the floor is made of: between two cells from outside the caches go cold, wherever the cell runs.
        self.row("the same, against cells that come 100 us apart", "us", ours[0], spaced,
                 "in-process run_cell", 1.0)

    def cells_in_process(self, pause):
        """Median time of run_cell("1") in microseconds, in a plain shell, with a pause before each."""
        return float(self.python_run(IN_PROCESS + f"""
import contextlib, os
times = []
with contextlib.redirect_stdout(open(os.devnull, 'w')):
    for _ in range(900):
        if {pause}:
            time.sleep({pause})
        begin = time.perf_counter()
        shell.run_cell('1', store_history=True)
        times.append(time.perf_counter() - begin)
print(statistics.median(times) * 1e6)
"""))

    def ping(self):
        ping = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "ping"})
        idle = self.stopwatch("trip", "100", self.setup_file(), ping, "--", self.shim)
        with self.client() as (send, answer, _):
            send(call(1, "execute", code="import ctypes; ctypes.PyDLL(None).usleep(3_000_000)"))
            time.sleep(0.5)
            held = self.stopwatch("trip", "100", self.setup_file(), ping, "--", self.shim)
            answer()
        self.row("ping, worst of 100, while C code holds the GIL", "us", held[2], idle[2],
                 "idle, worst of 100", 3)

    def prints(self):
        code = "for i in range(1_000_000): print(i)"
        plain, ours = [], []
        for _ in range(3):
            begin = time.perf_counter()
            subprocess.run([self.python, "-c", code], stdout=subprocess.PIPE,
                           env={**self.environment, "PYTHONUNBUFFERED": ""})
            plain.append(time.perf_counter() - begin)
            with self.client() as (send, answer, _):
                begin = time.perf_counter()
                send(call(1, "execute", code=code))
                answer()
                ours.append(time.perf_counter() - begin)
        self.row("a million print calls", "ms", statistics.median(ours) * 1e3,
                 statistics.median(plain) * 1e3, "into a pipe", 1.2)

    def cancel(self):
        for name, code in (("while True: pass", "while True: pass"),
                           ("time.sleep", "import time; time.sleep(60)"),
                           ("subprocess.run", "import subprocess; subprocess.run(['sleep', '60'])")):
            figures = []
            with self.client() as (send, answer, _):
                for i in range(self.rounds):
                    send(call(100 + i, "execute", code=code))
                    time.sleep(0.2)
                    begin = time.perf_counter()
                    send(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled",
                                     "params": {"requestId": 100 + i}}))
                    send(call(200 + i, "execute", code="1"))
                    assert answer()["id"] == 200 + i
                    figures.append(time.perf_counter() - begin)
            self.row_absolute(f"cancel -> next call answered ({name})", "ms",
                              statistics.median(figures) * 1e3, 10)

    def memory(self):
        def pss(pid):
            with open(f"/proc/{pid}/smaps_rollup") as f:
                return next(int(line.split()[1]) for line in f if line.startswith("Pss:")) / 1024

        plain = subprocess.Popen(
            [self.python, "-c", IN_PROCESS + "shell.run_cell('1+1', store_history=True)\n"
             "print('ready', flush=True); sys.stdin.read()"],
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while "ready" not in plain.stdout.readline():
            pass
        self.stop_daemon()
        with self.client() as (send, answer, process):
            send(call(1, "execute", code="1+1"))
            answer()
            send(call(2, "execute", code="import os; os.getpid()"))
            daemon = json.loads(answer()["result"]["content"][0]["text"])["result"]
            self.row_absolute("memory (PSS) of the shim", "MiB", pss(process.pid), 1)
            self.row_absolute("memory (PSS) of the daemon over a plain IPython process", "MiB",
                              max(pss(daemon) - pss(plain.pid), 0.01), 3)
        plain.stdin.close()
        plain.wait()

    def print_table(self):
        width = max(len(row[0]) for row in self.rows)
        missed = 0
        print(f"{'':{width}}  {'ours':>12}  {'reference':>12}  {'ratio':>7}  {'target':>8}  ")
        for what, ours, reference, name, unit, ratio, target in self.rows:
            met = (ratio if ratio is not None else ours) <= target
            missed += not met
            shown = f"{reference:9.1f} {unit:3}" if reference is not None else f"{'-':>12}"
            times = f"{ratio:7.2f}" if ratio is not None else f"{'-':>7}"
            goal = f"<= {target:<5g}" + ("" if ratio is not None else unit)
            print(f"{what:{width}}  {ours:9.1f} {unit:3}  {shown}  {times}  {goal:>8}  "
                  f"{'met' if met else 'MISSED'}  ({name})")
        return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    bench = Bench(os.path.abspath(options.build), options.python, options.rounds)
    try:
        for part in ("attach", "first_execute", "calls", "registrations", "ping",
                     "prints", "cancel", "memory"):
            if options.only in part:
                getattr(bench, part)()
        bench.stop_daemon()
    finally:
        shutil.rmtree(bench.directory, ignore_errors=True)
    # A missed target is information, not a failure: these machines are noisy.
    bench.print_table()


if __name__ == "__main__":
    main()

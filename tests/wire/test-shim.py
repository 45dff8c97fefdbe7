#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Agents stay, daemons come and go: the shim between a real client's lines and real daemons."""

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import harness
import paths
import tap

LIST_CHANGED = "notifications/tools/list_changed"


class Scene(contextlib.ExitStack):
    """A place of its own, where shims start what they need."""

    def __init__(self):
        super().__init__()
        self.place = self.enter_context(harness.Place())

    def client(self, *arguments, revision="2025-11-25", **environment):
        stream = harness.Stream.to_program([paths.CONNECT, *arguments],
            self.place.environment(**environment), self.place.home)
        client = self.enter_context(harness.Client(stream))
        if "--profile" in arguments:
            client.profile = arguments[arguments.index("--profile") + 1]
        client.open(revision)
        return client

    def daemon(self):
        """The one daemon's process id."""
        [pid] = harness.wait_for(self.place.daemons, "a daemon")
        return pid

    def kill(self, number=signal.SIGKILL):
        pid = self.daemon()
        os.kill(pid, number)
        harness.wait_for(lambda: pid not in self.place.daemons(), "the daemon's end")


def code_of(result):
    assert result["isError"] is True and "structuredContent" not in result, result
    return json.loads(result["content"][0]["text"])["error"]["code"]


def drain(client, method):
    """Waits for a notification."""
    while True:
        message = client.notes.pop(0) if client.notes else client.receive()
        if message["method"] == method:
            return message


def test_restart_while_idle():
    """a daemon that is restarted under an idle client: list_changed, one notice, a new namespace"""
    for number, revision in itertools.product((signal.SIGKILL, signal.SIGTERM), ("2025-11-25", "2026-07-28")):
        with Scene() as scene:
            client = scene.client(revision=revision)
            assert client.execute("a = 1")["ok"]
            shim = client.stream.process.pid
            scene.kill(number)
            if not client.modern:
                drain(client, LIST_CHANGED)
            answer = client.execute("'a' in dir()")
            assert answer["result"] is False, answer
            assert "namespace" in answer["notice"] and "new" in answer["notice"], answer
            assert "notice" not in client.execute("1"), "the notice comes once"
            assert client.stream.process.pid == shim and client.stream.process.poll() is None


def test_code_that_ends_the_daemon():
    """code that ends the process is answered namespace_lost; the next call works in a new namespace"""
    ends = ["import os; os._exit(7)", "import os; os.kill(os.getpid(), 9)",
        "import ctypes; ctypes.string_at(0)"]
    with Scene() as scene:
        client = scene.client()
        tools = client.request("tools/list")["result"]
        for code in ends:
            assert client.execute("a = 1")["ok"]
            assert code_of(client.call("execute", {"code": code})) == "namespace_lost"
            answer = client.execute("'a' in dir()")
            assert answer["result"] is False and "notice" in answer, answer
            assert client.request("tools/list")["result"] == tools


def test_lost_calls_in_every_form():
    """a lost call's answer in each profile and era"""
    with Scene() as scene:
        clients = [(scene.client("--profile", profile, revision=revision), profile, revision)
            for profile in ("full", "compact", "text") for revision in ("2025-06-18", "2026-07-28")]
        # The first one's call runs, the others' wait; all are lost.
        calls = [(client, client.start_call("execute", {"code": "import time; time.sleep(60)"}), profile, revision)
            for client, profile, revision in clients]
        # Not before all are there: a call that is still on its way belongs to the next daemon.
        with harness.Client(harness.Stream.to_socket(scene.place.socket())) as admin:
            harness.wait_for(lambda: admin.request("ipython-mcp/status")["result"]["waiting"] == len(calls) - 1,
                "all calls' arrival")
        for client, *_ in calls:
            client.response(client.start("ping", plain=True))  # so the daemon has the call, too
        scene.kill()
        for client, id, profile, revision in calls:
            result = client.response(id)["result"]
            text = result["content"][0]["text"]
            assert (result.get("resultType") == "complete") == (revision == "2026-07-28"), result
            if profile == "text":
                assert text.startswith("[namespace_lost] "), text
                continue
            error = json.loads(text)["error"]
            assert set(error) == ({"code", "message"} if profile == "compact" else {"code", "message",
                "error_type", "location", "traceback", "retryable", "retry_after_seconds", "message_truncated",
                "location_truncated", "traceback_truncated"}), error


def test_lost_batch():
    """a batch that is lost is answered by a batch"""
    with Scene() as scene:
        client = scene.client(revision="2025-03-26")
        client.send([{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "execute", "arguments": {"code": "import time; time.sleep(60)"}}},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}])
        client.fence()
        scene.kill()
        answer = client.receive()
        assert [part["id"] for part in answer] == [1, 2], answer
        assert code_of(answer[0]["result"]) == "namespace_lost"
        assert answer[1]["error"]["code"] == -32603, answer


def test_streams_survive():
    """an open listen request goes on over restarts: no second acknowledgement, told of every change"""
    for number in (signal.SIGKILL, signal.SIGTERM):
        with Scene() as scene:
            client = scene.client(revision="2026-07-28")
            client.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="listen:0")
            assert client.receive()["method"] == "notifications/subscriptions/acknowledged"
            scene.kill(number)
            tag = client.receive()
            assert tag["method"] == LIST_CHANGED, tag
            assert tag["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "listen:0", tag
            assert client.execute("def f(): pass")["ok"]
            assert client.answer("register_tool", {"name": "f"})["ok"]
            assert drain(client, LIST_CHANGED) == tag


def test_registered_tools_go_with_the_namespace():
    """a tool that was registered in a lost namespace is unlisted, and the list says so"""
    with Scene() as scene:
        client = scene.client()
        client.execute("def f(): return 1")
        client.answer("register_tool", {"name": "f"})
        drain(client, LIST_CHANGED)
        assert any(t["name"] == "f" for t in client.request("tools/list")["result"]["tools"])
        scene.kill()
        drain(client, LIST_CHANGED)
        assert all(t["name"] != "f" for t in client.request("tools/list")["result"]["tools"])


def test_client_that_is_killed():
    """a shim whose client is killed ends, and the daemon lives"""
    with Scene() as scene:
        client = scene.client()
        client.execute("a = 5")
        pid = scene.daemon()
        # Held by the killed process alone, so that its pipes end with it.
        holder = subprocess.Popen([sys.executable, "-c", "import subprocess, sys\n"
            f"p = subprocess.Popen([{paths.CONNECT!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
            "print(p.pid, flush=True); p.wait()"], env=scene.place.environment(), stdout=subprocess.PIPE)
        shim = int(holder.stdout.readline())
        holder.kill()
        holder.wait()
        holder.stdout.close()

        def has_ended():
            with contextlib.suppress(OSError):
                with open(f"/proc/{shim}/stat") as f:
                    return f.read().rsplit(")", 1)[1].split()[0] == "Z"
            return True
        harness.wait_for(has_ended, "the shim's end")
        assert scene.daemon() == pid
        assert client.execute("a")["result"] == 5


def test_answers_to_a_printf():
    """what is piped in is answered, in order, and the shim ends by itself"""
    with Scene() as scene:
        lines = "".join(json.dumps(m) + "\n" for m in (
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
                "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        result = subprocess.run([paths.CONNECT], input=lines, env=scene.place.environment(), text=True,
            capture_output=True, timeout=harness.limit())
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        assert [a["id"] for a in answers] == [0, 1] and result.returncode == 0, result
        assert result.stderr == "", result.stderr


class Busy(threading.Thread):
    """A client that never rests; counts what it was told."""

    def __init__(self, client, number, path):
        super().__init__(daemon=True)
        self.client, self.number, self.path = client, number, path
        self.is_done = threading.Event()
        self.answers = {}
        self.failure = None

    def run(self):
        try:
            while not self.is_done.is_set():
                self.step()
        except BaseException as e:
            self.failure = e

    def step(self):
        n = len(self.answers)
        mark = f"{self.number}.{n}"
        # Runs at most once: whatever runs it leaves its mark.
        code = (f"import os; fd = os.open({self.path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
            f"os.write(fd, b'{mark}\\n'); os.close(fd)")
        result = self.client.call("execute", {"code": code})
        answer = json.loads(result["content"][0]["text"])
        self.answers[mark] = "ok" if answer["ok"] else answer["error"]["code"]
        if n % 3 == 0:
            message = self.client.request("tools/list")
            assert "result" in message or message["error"]["code"] == -32603, message
        self.client.notes.clear()


def test_kills_at_random_moments():
    """a daemon killed 200 times under three busy clients: nobody hangs or dies, nothing is answered or run twice"""
    n_kills = int(os.environ.get("MCP_KILLS", "200"))
    seed = int(os.environ.get("MCP_SEED", time.time_ns()))
    chance = random.Random(seed)
    with Scene() as scene:
        path = os.path.join(scene.place.root, "marks")
        busy = [Busy(scene.client(revision=revision), i, path)
            for i, revision in enumerate(("2025-11-25", "2026-07-28", "2025-06-18"))]
        try:
            for b in busy:
                b.start()
            for _ in range(n_kills):
                pid = scene.daemon()
                time.sleep(chance.uniform(0, 0.1) if chance.random() < 0.8 else chance.uniform(0.1, 0.8))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                assert all(b.is_alive() for b in busy), [b.failure for b in busy]
                harness.wait_for(lambda: pid not in scene.place.daemons(), "the daemon's end")
        finally:
            for b in busy:
                b.is_done.set()
        for b in busy:
            b.join(harness.limit())
            assert not b.is_alive(), f"client {b.number} hangs (seed {seed})"
            assert b.failure is None, (seed, b.failure)
            assert b.client.stream.process.poll() is None
            # Nothing else is on the way, and there is a daemon that works.
            assert b.client.execute("1 + 1")["result"] == 2
            assert {note["method"] for note in b.client.notes} <= {LIST_CHANGED}, b.client.notes
        scene.daemon()
        with open(path, "a+") as f:
            f.seek(0)
            marks = f.read().split()
        assert len(marks) == len(set(marks)), f"something ran twice (seed {seed})"
        for b in busy:
            assert set(b.answers.values()) <= {"ok", "namespace_lost"}, set(b.answers.values())
            for mark, answer in b.answers.items():
                assert answer != "ok" or mark in marks, (seed, mark)


if __name__ == "__main__":
    tap.main()

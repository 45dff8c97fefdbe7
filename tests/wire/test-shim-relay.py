#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The shim between a client and a daemon that does what the test says: each line, each end, each stall."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import harness
import paths
import tap

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
RESULT = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "x", "version": "1"}}
LIST_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {}}


def response(id, result):
    return {"jsonrpc": "2.0", "id": id, "result": result}


def call(id, **more):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "execute", **more}}


def cancel(id):
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}


class Lines:
    """One end of a conversation, line by line."""

    def __init__(self, read_fd, write_fd):
        self.stream = harness.Stream(read_fd, write_fd)

    def send(self, *messages):
        self.stream.write(b"".join(json.dumps(m).encode() + b"\n" for m in messages))

    def receive(self, seconds=None):
        return json.loads(self.stream.read_line(seconds))

    def expect(self, *messages):
        for message in messages:
            got = self.receive()
            assert got == message, f"expected {message}, got {got}"

    def expect_end(self):
        try:
            line = self.stream.read_line()
        except harness.Closed:
            return
        raise AssertionError(f"expected the end, got {line[:300]!r}")


class Peer(Lines):
    """The daemon's end of one connection. The attach line has been read."""

    def __init__(self, sock):
        self.sock = sock
        super().__init__(sock.fileno(), sock.fileno())
        self.attach = self.receive()
        assert self.attach["method"] == "notifications/ipython-mcp/attach", self.attach

    def greet(self, **more):
        self.send({"jsonrpc": "2.0", "method": "notifications/ipython-mcp/attached",
            "params": {"version": "0", "pid": 1, "fingerprint": {}, **more}})

    def close(self):
        self.sock.close()


class Scene(contextlib.ExitStack):
    """A shim, a socket that it finds, and the client's end."""

    def __init__(self, *arguments, stdio="pipes", listen=True, **environment):
        super().__init__()
        try:
            self._start(arguments, stdio, listen, environment)
        except BaseException:
            self.close()
            raise

    def _start(self, arguments, stdio, listen, environment):
        self.place = self.enter_context(harness.Place())
        self.server = None
        if listen:
            self.listen()
        environment.pop("IPYTHON_MCP_PYTHON", None)
        variables = self.place.environment(**environment)
        variables.pop("IPYTHON_MCP_PYTHON", None)
        if stdio == "sockets":
            ours, theirs = zip(*(socket.socketpair() for _ in range(2)))
            self.sockets = [self.enter_context(s) for s in ours]
            files = dict(stdin=theirs[0], stdout=theirs[1])
        else:
            self.sockets, theirs = None, ()
            files = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.shim = subprocess.Popen([paths.CONNECT, *(arguments or ["--no-spawn"])], env=variables,
            cwd=self.place.home, stderr=subprocess.PIPE, bufsize=0, start_new_session=True, **files)
        for s in theirs:
            s.close()
        self.callback(self._end)
        if self.sockets:
            self.client = Lines(self.sockets[1].fileno(), self.sockets[0].fileno())
        else:
            self.client = Lines(self.shim.stdout.fileno(), self.shim.stdin.fileno())

    def _end(self):
        self.shim.kill()
        self.shim.wait()
        for f in (self.shim.stdin, self.shim.stdout, self.shim.stderr):
            if f:
                f.close()

    def listen(self):
        """A daemon begins to listen, in place of the one before."""
        self.hide()
        self.server = self.enter_context(socket.socket(socket.AF_UNIX))
        self.server.bind(self.place.socket())
        self.server.listen(16)
        self.server.settimeout(harness.limit())

    def hide(self):
        """The daemon no longer listens."""
        if self.server:
            self.server.close()
            os.unlink(self.place.socket())
            self.server = None

    def accept(self, **greeting):
        sock, _ = self.server.accept()
        sock.settimeout(None)
        self.enter_context(sock)
        peer = Peer(sock)
        peer.greet(**greeting)
        return peer

    def opened(self):
        """A connection with its legacy handshake done."""
        peer = self.accept()
        self.client.send(INITIALIZE, INITIALIZED)
        peer.expect(INITIALIZE, INITIALIZED)
        peer.send(response(0, RESULT))
        self.client.expect(response(0, RESULT))
        return peer

    def resumed(self):
        """The next connection, after the repeated handshake."""
        peer = self.accept()
        assert peer.attach["params"]["resumed"] is True, peer.attach
        again = peer.receive()
        assert again["method"] == "initialize" and again["params"] == INITIALIZE["params"], again
        assert isinstance(again["id"], str) and len(again["id"]) > 16, again
        peer.expect(INITIALIZED)
        peer.send(response(again["id"], RESULT))
        return peer

    def end_input(self):
        if self.sockets:
            self.sockets[0].close()
        else:
            self.shim.stdin.close()

    def exit_code(self):
        return self.shim.wait(harness.limit())

    def errors(self):
        """What it said on standard error; once it has ended."""
        return self.shim.stderr.read().decode()


def lost(message, id):
    """Checks an answer that the shim gave in the daemon's stead."""
    assert message["id"] == id and message["result"]["isError"] is True, message
    assert "structuredContent" not in message["result"], message
    answer = json.loads(message["result"]["content"][0]["text"])
    assert answer["ok"] is False and answer["error"]["code"] == "namespace_lost", answer


def test_hello():
    """the first line tells profile, directory, version and fingerprint; its answer goes no further"""
    with Scene("--no-spawn", "--profile", "compact", IPYTHON_MCP_MAX_RESULTS="5") as scene:
        peer = scene.accept(fingerprint={"IPYTHON_MCP_HISTORY": "0"})
        params = peer.attach["params"]
        assert params["profile"] == "compact" and params["cwd"] == os.path.realpath(scene.place.home), params
        assert params["acknowledge"] is True and "resumed" not in params, params
        assert list(params["fingerprint"]) == ["IPYTHON_MCP_MAX_RESULTS"], params
        peer.send(response(1, {}))
        scene.client.expect(response(1, {}))
        scene.end_input()
        assert scene.exit_code() == 0
        errors = scene.errors()
        assert "IPYTHON_MCP_MAX_RESULTS" in errors and "IPYTHON_MCP_HISTORY" in errors, errors
        assert "ipython-mcp stop default" in errors, errors


def test_profile_from_the_environment():
    """IPYTHON_MCP_PROFILE is --profile's default and no startup variable"""
    with Scene(IPYTHON_MCP_PROFILE="text") as scene:
        params = scene.accept().attach["params"]
        assert params["profile"] == "text" and params["fingerprint"] == {}, params
    with Scene() as scene:
        assert "profile" not in scene.accept().attach["params"]


def test_bytes():
    """whole lines go both ways as they came"""
    lines = [b'{"jsonrpc":"2.0" ,"id" : 12345678901234567890,"method":"ping","x":1E400}\n',
        b'\t{"method":"a","s":"\\ud800 caf\xc3\xa9 \\u2028"}\r\n', b"\n", b"\r\n", b"not json \xff\n", b"[]\n",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","p":"' + b"x" * 5_000_000 + b'"}\n']
    with Scene() as scene:
        peer = scene.accept()
        for ours, theirs in ((scene.client, peer), (peer, scene.client)):
            writer = threading.Thread(target=ours.stream.write, args=(b"".join(lines),))
            writer.start()
            for line in lines:
                got = theirs.stream.read_line() + b"\n"
                assert got == line, (got[:100], line[:100])
            writer.join()


def test_overlong_lines():
    """a line that no daemon would take is refused with its id, and the next one passes"""
    with Scene(IPYTHON_MCP_MAX_MESSAGE_BYTES="1000") as scene:
        peer = scene.accept()
        scene.client.send({"jsonrpc": "2.0", "id": 41, "method": "x", "params": "y" * 5000})
        scene.client.send({"jsonrpc": "2.0", "method": "x", "params": "y" * 500_000, "id": 42})
        scene.client.send(call(43))
        peer.expect(call(43))
        first, second = scene.client.receive(), scene.client.receive()
        assert first["id"] == 41 and first["error"]["code"] == -32600, first
        assert "1000" in first["error"]["message"], first
        assert "id" not in second and second["error"] == first["error"], second


def test_files_and_terminals():
    """standard input and output may be files, or a terminal"""
    with harness.Place() as place:
        lines = json.dumps(INITIALIZE) + "\n" + json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n"
        paths_in_out = [os.path.join(place.root, name) for name in ("in", "out")]
        with open(paths_in_out[0], "w") as f:
            f.write(lines)
        with open(paths_in_out[1], "w") as f:
            f.write("before\n")
        with open(paths_in_out[0]) as i, open(paths_in_out[1], "a") as o:
            assert subprocess.run([paths.CONNECT], stdin=i, stdout=o, env=place.environment()).returncode == 0
        with open(paths_in_out[1]) as f:
            first, *answers = f.read().splitlines()
        assert first == "before" and [json.loads(a)["id"] for a in answers] == [0, 1], answers

        ours, theirs = os.openpty()
        shim = subprocess.Popen([paths.CONNECT], stdin=theirs, stdout=theirs, env=place.environment(),
            start_new_session=True)
        os.close(theirs)
        terminal = harness.Stream(ours, ours)
        terminal.write(json.dumps(INITIALIZE).encode() + b"\n")
        while "result" not in json.loads(terminal.read_line()):  # the terminal echoes what is typed
            pass
        os.write(ours, b"\x04")
        assert shim.wait(harness.limit()) == 0
        os.close(ours)


def test_partial_lines_wait():
    """a line goes on when it is whole"""
    with Scene() as scene:
        peer = scene.accept()
        peer.stream.write(b'{"jsonrpc":"2.0","id":1,')
        scene.client.stream.write(b'{"jsonrpc":"2.0",')
        assert not select.select([scene.shim.stdout, peer.sock], [], [], 0.1)[0]
        peer.stream.write(b'"result":{}}\n')
        scene.client.expect(response(1, {}))
        scene.client.stream.write(b'"method":"x"}\n')
        peer.expect({"jsonrpc": "2.0", "method": "x"})


def test_end_of_input():
    """after the client's end the daemon is told, and its answers still pass"""
    for stdio in ("pipes", "sockets"):
        with Scene(stdio=stdio) as scene:
            peer = scene.accept()
            # The last line may lack its newline, as `printf` leaves it.
            scene.client.stream.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
            scene.end_input()
            peer.expect({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            peer.expect_end()
            peer.send(response(1, {}))
            scene.client.expect(response(1, {}))
            scene.client.expect_end()
            assert scene.exit_code() == 0


def test_end_of_input_during_a_call():
    """a call that goes on keeps nobody: the shim ends, status 0"""
    with Scene() as scene:
        peer = scene.accept()
        scene.client.send(call(1))
        peer.expect(call(1))
        began = time.monotonic()
        scene.end_input()
        assert scene.exit_code() == 0
        assert time.monotonic() - began < harness.limit(3)


def test_end_of_input_at_once():
    """started with nothing to read, it ends, with a daemon and without"""
    for listen in (True, False):
        with Scene(listen=listen) as scene:
            scene.end_input()
            assert scene.exit_code() == 0, scene.errors()


def test_closed_output():
    """a client that closes the shim's output ends it, although its input is open"""
    for stdio in ("pipes", "sockets"):
        with Scene(stdio=stdio) as scene:
            scene.accept()
            if scene.sockets:
                scene.sockets[1].close()
            else:
                scene.shim.stdout.close()
            scene.exit_code()


def test_signals():
    """SIGINT, SIGTERM and SIGHUP end it and are not passed on, even when the parent ignored them"""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        before = signal.signal(number, signal.SIG_IGN)
        try:
            with Scene() as scene:
                peer = scene.opened()
                scene.client.send(call(1))
                peer.expect(call(1))
                os.killpg(scene.shim.pid, number)
                assert scene.exit_code() == -number
                peer.expect_end()
        finally:
            signal.signal(number, before)


def fill(stream_fd):
    """Writes until nothing more is taken for a while; how much was."""
    os.set_blocking(stream_fd, False)
    line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"x":"' + b"x" * 65000 + b'"}}\n'
    n = 0
    while select.select([], [stream_fd], [], 0.3)[1]:
        with contextlib.suppress(BlockingIOError):
            n += os.write(stream_fd, line[n % len(line):])
        assert n < 64 << 20, "it takes whatever comes"
    return n


def test_client_that_stops_reading():
    """a client that does not read stops its daemon, not its own lines, nor its end"""
    for stdio in ("pipes", "sockets"):
        with Scene(stdio=stdio) as scene:
            peer = scene.accept()
            fill(peer.sock.fileno())
            scene.client.send(call(1))
            peer.expect(call(1))
            scene.end_input()
            assert scene.exit_code() == 0


def test_daemon_that_stops_reading():
    """a daemon that does not read stops its client, not its own lines, nor the client's end"""
    for stdio in ("pipes", "sockets"):
        with Scene(stdio=stdio) as scene:
            peer = scene.accept()
            fill(scene.client.stream.write_fd)
            peer.send(response(5, {}))
            scene.client.expect(response(5, {}))
            scene.end_input()
            assert scene.exit_code() == 0


def test_slow_reader_gets_everything():
    """what waited for a slow client comes whole and in order"""
    with Scene() as scene:
        peer = scene.accept()
        n = 300
        lines = [response(i, {"x": "y" * 20_000}) for i in range(n)]
        writer = threading.Thread(target=peer.send, args=lines)
        writer.start()
        time.sleep(0.2)
        scene.client.expect(*lines)
        writer.join()


def test_loss():
    """a lost call is answered, the next daemon learns the conversation, queued lines follow in order"""
    with Scene() as scene:
        peer = scene.opened()
        scene.client.send(call(1), {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        peer.expect(call(1), {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        peer.stream.write(b'{"jsonrpc":"2.0","id":1,"result":{"half')
        scene.hide()
        peer.close()
        lost(scene.client.receive(), 1)
        error = scene.client.receive()
        assert error["id"] == 2 and error["error"]["code"] == -32603, error
        assert error["error"]["data"] == {"reason": "daemon-restarted"}, error

        scene.client.send(cancel(1), call(3), call(4), cancel(4))
        scene.listen()
        peer = scene.resumed()
        peer.expect(call(3), call(4), cancel(4))
        scene.client.expect(LIST_CHANGED)
        peer.send(response(3, {"content": []}))
        scene.client.expect(response(3, {"content": []}))
        scene.end_input()
        assert scene.exit_code() == 0
        assert "another one has taken over" in scene.errors()


def test_loss_again_and_again():
    """each loss is answered once, however often and whenever a daemon goes"""
    with Scene() as scene:
        peer = scene.opened()
        scene.client.send(call(1))
        for i in range(1, 8):
            peer.expect(call(i))
            peer.close()
            lost(scene.client.receive(), i)
            scene.client.send(call(i + 1))
            # One that goes in the middle of the handshake.
            peer = scene.accept()
            assert peer.receive()["method"] == "initialize"
            peer.close()
            peer = scene.resumed()
            scene.client.expect(LIST_CHANGED)


def test_loss_of_modern_streams():
    """open listen requests are sent again, acknowledged once, and told that lists may have changed"""
    listen = {"jsonrpc": "2.0", "id": "listen:0", "method": "subscriptions/listen",
        "params": {"_meta": META, "notifications": {"toolsListChanged": True}}}
    tag = {"_meta": {"io.modelcontextprotocol/subscriptionId": "listen:0"}}
    ack = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {**tag, "notifications": {"toolsListChanged": True}}}
    with Scene() as scene:
        peer = scene.accept(profile="compact")
        scene.client.send(listen)
        peer.expect(listen)
        peer.send(ack)
        scene.client.expect(ack)
        scene.client.send(call(7, _meta=META))
        peer.expect(call(7, _meta=META))
        peer.close()
        answer = scene.client.receive()
        assert answer["result"]["resultType"] == "complete", answer
        assert set(json.loads(answer["result"]["content"][0]["text"])["error"]) == {"code", "message"}, answer
        peer = scene.accept()
        assert peer.attach["params"]["resumed"] is True
        peer.expect(listen)
        scene.client.send(call(8, _meta=META))
        peer.send(ack)
        peer.expect(call(8, _meta=META))
        scene.client.expect({**LIST_CHANGED, "params": tag})
        scene.end_input()
        peer.expect_end()


def test_loss_during_initialize():
    """an initialize that was in flight is sent again, and its answer is the client's"""
    with Scene() as scene:
        peer = scene.accept()
        scene.client.send(INITIALIZE)
        peer.expect(INITIALIZE)
        peer.close()
        peer = scene.accept()
        peer.expect(INITIALIZE)
        peer.send(response(0, RESULT))
        scene.client.expect(response(0, RESULT))


def test_another_revision():
    """a daemon that cannot go on with the conversation ends the shim, with a message"""
    with Scene() as scene:
        scene.opened().close()
        peer = scene.accept()
        again = peer.receive()
        peer.send(response(again["id"], {**RESULT, "protocolVersion": "2024-11-05"}))
        assert scene.exit_code() not in (0, None)
        assert "revision" in scene.errors()


def test_no_daemon():
    """without a daemon, and none to be started, requests are answered with the reason"""
    with Scene(listen=False) as scene:
        scene.client.send(INITIALIZE, call(1, _meta=META))
        answer = scene.client.receive()
        assert answer["id"] == 0 and answer["error"]["code"] == -32603, answer
        assert scene.place.socket() in answer["error"]["message"], answer
        assert "--no-spawn" in answer["error"]["message"], answer
        answer = scene.client.receive()
        assert answer["id"] == 1 and answer["result"]["isError"] is True, answer
        assert json.loads(answer["result"]["content"][0]["text"])["error"]["code"] == "startup_failed", answer
        scene.end_input()
        assert scene.exit_code() == 69
        assert scene.place.socket() in scene.errors()


def test_daemon_that_comes_late():
    """with --no-spawn a daemon that somebody else starts is waited for"""
    with Scene(listen=False) as scene:
        scene.client.send(INITIALIZE)
        time.sleep(0.2)
        scene.listen()
        peer = scene.accept()
        assert "resumed" not in peer.attach["params"]
        peer.expect(INITIALIZE)


def test_unsafe_place():
    """a place that cannot be used is told to the client, not only to standard error"""
    with harness.Place() as place:
        os.chmod(place.runtime, 0o755)
        shim = subprocess.run([paths.CONNECT], env=place.environment(), capture_output=True,
            input=json.dumps(INITIALIZE).encode())
        answer = json.loads(shim.stdout)
        assert answer["id"] == 0 and "chmod 700" in answer["error"]["message"], answer
        assert shim.returncode == 77 and b"chmod 700" in shim.stderr, shim


def test_options():
    """options are checked; --help and --version answer"""
    def run(*arguments, **environment):
        with harness.Place() as place:
            return subprocess.run([paths.CONNECT, *arguments], env=place.environment(**environment),
                capture_output=True, text=True, stdin=subprocess.DEVNULL)

    assert run("--version").stdout.startswith("ipython-mcp-connect ")
    assert "--no-spawn" in run("--help").stdout
    for arguments in (["--profile", "tiny"], ["extra"], ["--what"], ["--name"]):
        result = run(*arguments)
        assert result.returncode == 64 and not result.stdout and result.stderr, (arguments, result)
    assert run(IPYTHON_MCP_PROFILE="tiny").returncode == 64
    assert "name" in run("--no-spawn", "--name", "../x").stderr


if __name__ == "__main__":
    tap.main()

#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The shim starts daemons: one, however many ask, out of reach of what ends its client; or it says why not."""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import harness
import paths
import tap

INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})


def shim(place, *arguments, cwd=None, **variables):
    return subprocess.Popen([paths.CONNECT, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=place.environment(**variables), cwd=cwd or place.home, start_new_session=True)


def initialize(process):
    process.stdin.write(INITIALIZE.encode() + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def end(process):
    """Ends a shim as a client does; its exit code and what it said."""
    _, errors = process.communicate(timeout=harness.limit())
    return process.returncode, errors.decode()


def log(place, name="default"):
    with open(os.path.join(place.runtime, name + ".log"), errors="replace") as f:
        return f.read()


def test_race():
    """fifty rounds of twenty shims at once start one daemon each"""
    for _ in range(50):
        with harness.Place() as place:
            shims = [shim(place) for _ in range(20)]
            for process in shims:
                process.stdin.write(INITIALIZE.encode() + b"\n")
                process.stdin.flush()
            for process in shims:
                assert "result" in json.loads(process.stdout.readline())
            daemons = place.daemons()
            assert len(daemons) == 1, (daemons, log(place))
            # Nor was there another one that ended at once.
            assert log(place).count("namespace default at") == 1, log(place)
            for process in shims:
                assert end(process) == (0, "")


def test_race_for_a_stale_socket():
    """twenty shims that find the socket of a killed daemon start one"""
    for _ in range(10):
        with harness.Place() as place:
            first = shim(place)
            initialize(first)
            os.kill(place.daemons()[0], signal.SIGKILL)
            end(first)
            harness.wait_for(lambda: not place.daemons(), "the daemon's end")
            shims = [shim(place) for _ in range(20)]
            assert all("result" in initialize(process) for process in shims)
            assert len(place.daemons()) == 1, place.daemons()
            for process in shims:
                end(process)


def test_detached():
    """a daemon has a session of its own, none of the client's descriptors, and survives its signals"""
    with harness.Place() as place:
        read_end, write_end = os.pipe()
        os.set_inheritable(write_end, True)
        process = subprocess.Popen([paths.CONNECT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=place.environment(), cwd=place.home, start_new_session=True,
            close_fds=False)
        os.close(write_end)
        initialize(process)
        [pid] = place.daemons()
        # A process that holds the pipe of the client keeps the client from seeing its end.
        assert os.getsid(pid) not in (os.getsid(0), process.pid), os.getsid(pid)
        assert os.getpgid(pid) != process.pid
        # No session leader: it can never acquire a terminal by opening one.
        assert os.getsid(pid) != pid
        assert os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(place.home)
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        assert int(status["PPid"]) != process.pid
        assert int(status["SigBlk"], 16) & (1 << signal.SIGTERM - 1) == 0, status["SigBlk"]
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            os.killpg(process.pid, number)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        assert os.read(read_end, 1) == b"", "the daemon holds a descriptor of the client"
        os.close(read_end)
        assert place.daemons() == [pid]
        again = shim(place)
        assert "result" in initialize(again)
        assert end(again) == (0, "")
        assert place.daemons() == [pid]


def test_names():
    """each name, project and path has a daemon of its own"""
    with harness.Place() as place:
        project = os.path.join(place.root, "My Project")
        os.makedirs(os.path.join(project, ".git"))
        os.makedirs(os.path.join(project, "src"))
        other = os.path.join(place.root, "other.sock")
        shims = [shim(place), shim(place, "--name", "b"), shim(place, "--name", "auto", cwd=project),
            shim(place, "--name", "auto", cwd=os.path.join(project, "src")), shim(place, "--socket", other),
            shim(place, IPYTHON_MCP_SOCKET=other)]
        assert all("result" in initialize(process) for process in shims)
        assert len(place.daemons()) == 4, place.daemons()
        sockets = sorted(name for name in os.listdir(place.runtime) if name.endswith(".sock"))
        assert [name[:9] for name in sockets] == ["MyProject", "b.sock", "default.s"], sockets
        assert os.path.exists(other)
        for process in shims:
            assert end(process) == (0, "")


def test_daemon_that_cannot_listen():
    """a daemon that ends before it listens is told to the client, with its own reason"""
    with harness.Place() as place:
        with open(place.socket(), "w"):
            pass
        process = shim(place)
        answer = initialize(process)
        assert answer["error"]["code"] == -32603, answer
        message = answer["error"]["message"]
        assert "ended before it listened" in message and place.socket() in message, message
        code, errors = end(process)
        assert code == 69 and place.socket() in errors, (code, errors)
        assert os.path.getsize(place.socket()) == 0


def test_log_is_bounded():
    """a long log is put aside when a daemon starts"""
    with harness.Place() as place:
        path = os.path.join(place.runtime, "default.log")
        with open(path, "w") as f:
            f.write("x" * 2_000_000)
        process = shim(place)
        initialize(process)
        assert os.path.getsize(path) < 100_000
        assert os.path.getsize(path + ".old") == 2_000_000
        assert os.stat(path).st_mode & 0o777 == 0o600
        end(process)


def test_killed_daemon():
    """a daemon that is killed is followed by another one, under the same client"""
    with harness.Place() as place:
        process = shim(place)
        initialize(process)
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
            b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 9
        [pid] = place.daemons()
        os.kill(pid, signal.SIGKILL)
        assert json.loads(process.stdout.readline())["method"] == "notifications/tools/list_changed"
        [other] = harness.wait_for(place.daemons, "another daemon")
        assert other != pid
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        code, errors = end(process)
        assert code == 0 and "taken over" in errors, (code, errors)


if __name__ == "__main__":
    tap.main()

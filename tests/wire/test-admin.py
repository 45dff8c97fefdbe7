#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ipython-mcp, the program for people, against real daemons: each command, its output and exit status."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import harness  # noqa: E402
import tap  # noqa: E402
from paths import ADMIN  # noqa: E402

USAGE, UNAVAILABLE, NOPERM = 64, 69, 77


def admin(place, *arguments, input=None, cwd=None, **more):
    """Runs a command to its end: status, stdout, stderr."""
    done = subprocess.run([ADMIN, *arguments], env=place.environment(**more), cwd=cwd or place.home, input=input,
                          capture_output=True, timeout=harness.limit(60))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def start_admin(place, *arguments, **more):
    return subprocess.Popen([ADMIN, *arguments], env=place.environment(**more), cwd=place.home,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    out, err = process.communicate(timeout=harness.limit(30))
    return process.returncode, out.decode(), err.decode()


def status(place, name="default"):
    code, out, err = admin(place, "status", "--json", name)
    assert code == 0, err
    return json.loads(out)


def wait_running(place, line=None):
    """Waits until a call runs, and has printed that line."""
    def runs():
        running = status(place)["running"]
        return running and (line is None or running["last_line"] == line)

    return harness.wait_for(runs, "the call")


def on_terminal(place, *arguments, columns=60, until=None, act=None):
    """Runs a command on a terminal of that width: status and all that it showed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(place.home)
        os.execve(ADMIN, [ADMIN, *arguments], {**place.environment(), "TERM": "xterm"})
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = b""
    deadline = time.monotonic() + harness.limit(30)
    while time.monotonic() < deadline:
        if not select.select([fd], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(fd, 4096)
        except OSError:
            break
        if not data:
            break
        shown += data
        if until and act and until in shown:
            act(fd)
            until = None
    _, code = os.waitpid(pid, 0)
    os.close(fd)
    return os.waitstatus_to_exitcode(code), shown.decode()


@contextlib.contextmanager
def place_with_daemon(**environment):
    """A place with a daemon that exec starts, as for a person who types first."""
    with harness.Place() as place:
        code, out, err = admin(place, "exec", "40+2", **environment)
        assert (code, out, err) == (0, "42\n", ""), (code, out, err)
        yield place


def test_usage():
    """A wrong command line: status 64 and the usage line, nothing started"""
    with harness.Place() as place:
        for arguments in ((), ("fly",), ("exec",), ("exec", "a", "b", "c"), ("list", "x"), ("status", "a", "b"),
                          ("exec", "--json", "1"), ("status", "--force"), ("status", "--nonsense"), ("status", "../x"),
                          ("status", "--name", "a", "b"), ("stop", "--name")):
            code, out, err = admin(place, *arguments)
            assert code == USAGE and not out and "ipython-mcp: " in err, (arguments, code, out, err)
        code, out, err = admin(place, "--help")
        assert code == 0 and not err and "usage: ipython-mcp" in out
        assert all(len(line) <= 100 for line in out.splitlines())
        assert admin(place, "--version")[1].startswith("ipython-mcp ")
        assert not place.daemons()


def test_no_daemon():
    """Without a daemon: list is empty, the others say so and end with 69, and none is started"""
    with harness.Place() as place:
        assert admin(place, "list", "--json") == (0, "[]\n", "")
        assert admin(place, "list")[0] == 0
        for command in (["status"], ["status", "--json"], ["interrupt"], ["stop"], ["stop", "--force"]):
            code, out, err = admin(place, *command)
            assert code == UNAVAILABLE and not out and "no daemon is running for namespace default" in err, (command, err)
        assert admin(place, "logs")[0] == UNAVAILABLE
        # A socket that nobody listens on any more is the same as none.
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(place.socket())
        assert admin(place, "list", "--json") == (0, "[]\n", "")
        assert admin(place, "status")[0] == UNAVAILABLE
        assert not place.daemons()


def test_exec_output():
    """exec: streams where they belong, the value as IPython shows it, errors on stderr with status 1"""
    with place_with_daemon() as place:
        cases = [
            ("x = 5", 0, "", ""),
            ("x", 0, "5\n", ""),
            ("'text'", 0, "'text'\n", ""),
            ("None", 0, "", ""),
            ("1;", 0, "", ""),
            ("print('out', end='')", 0, "out", ""),
            ("print('out', end=''); 7", 0, "out\n7\n", ""),
            ("import sys; _ = sys.stderr.write('err\\n'); print('out')", 0, "out\n", "err\n"),
            ("[1, (2, 3), {'a': None}]", 0, "[1, (2, 3), {'a': None}]\n", ""),
            ("2**70", 0, f"{2**70}\n", ""),
            ("'\\0é'", 0, "'\\x00é'\n", ""),
            ("!echo shell", 0, "shell\n", ""),
        ]
        for code, *expected in cases:
            assert list(admin(place, "exec", code)) == expected, (code, admin(place, "exec", code))

        code, out, err = admin(place, "exec", "print('before')\n1/0")
        assert (code, out) == (1, "before\n") and err.rstrip().endswith("ZeroDivisionError: division by zero"), err
        code, out, err = admin(place, "exec", "f(")
        assert code == 1 and not out and "SyntaxError" in err, err
        code, out, err = admin(place, "exec", " ")
        assert code == 1 and "[invalid_code]" in err, err


def test_exec_arguments():
    """exec: NAME, --name, standard input, code that looks like an option, the caller's directory"""
    with place_with_daemon() as place:
        assert admin(place, "exec", "default", "1+1")[1] == "2\n"
        assert admin(place, "exec", "--name", "default", "1+1")[1] == "2\n"
        assert admin(place, "exec", "--", "-5")[1] == "-5\n"
        assert admin(place, "exec", "-", input=b"y = 3\nprint('\xc3\xa9')\ny * 2\n")[:2] == (0, "é\n6\n")
        assert admin(place, "exec", "-", input=b"'" + b"z" * 5000000 + b"'; 1")[:2] == (0, "1\n")
        for wrong in (b"\xff", b"1\0"):
            code, out, err = admin(place, "exec", "-", input=wrong)
            assert code == 1 and not out and err, (wrong, err)
        assert admin(place, "exec", "import os; os.getcwd()", cwd=place.tmp)[1] == f"'{place.tmp}'\n"
        # Another namespace is another daemon.
        assert admin(place, "exec", "lab", "'y' in dir()")[1] == "False\n"
        assert len(place.daemons()) == 2
        assert [d["name"] for d in json.loads(admin(place, "list", "--json")[1])] == ["default", "lab"]


def test_exec_long_output():
    """exec: output beyond the bounds of an answer is whole, since it was saved"""
    with place_with_daemon() as place:
        code, out, err = admin(place, "exec", "for i in range(100000): print(i)\n'end'")
        assert code == 0 and not err
        assert out == "".join(f"{i}\n" for i in range(100000)) + "'end'\n"


def test_exec_images():
    """exec: an image is named by the file that holds it"""
    with place_with_daemon() as place:
        png = ("from IPython.display import Image, display\nimport base64\n"
               "display(Image(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhg"
               "GAWjR9awAAAABJRU5ErkJggg==')))")
        code, out, err = admin(place, "exec", png)
        files = re.findall(r"^\[image: (.*)\]$", out, re.M)
        assert code == 0 and len(files) == 1 and os.path.exists(files[0]), (code, out, err)


def test_exec_shares_the_namespace():
    """exec and an agent see each other's names, and the agent is told of the cells"""
    with harness.Daemon() as daemon, daemon.connect() as client:
        client.open()
        client.execute("shared = 1")
        assert admin(daemon.place, "exec", "shared += 1; shared")[1] == "2\n"
        answer = client.execute("shared")
        assert answer["result"] == 2 and "notice" in answer, answer


def test_exec_interrupt():
    """Control-C interrupts the cell, shows what it printed, and ends with 130; the next one works"""
    with place_with_daemon() as place:
        process = start_admin(place, "exec", "import time\nprint('begun', flush=True)\ntime.sleep(60)")
        wait_running(place, "begun")
        process.send_signal(signal.SIGINT)
        code, out, err = finish(process)
        assert (code, out) == (130, "begun\n") and "KeyboardInterrupt" in err, (code, out, err)
        assert admin(place, "exec", "1")[1] == "1\n"


def test_exec_interrupt_while_waiting():
    """Control-C while it waits for its turn gives up and leaves the running call alone"""
    with place_with_daemon() as place, harness.Place() as scratch:
        flag = os.path.join(scratch.root, "flag")
        first = start_admin(place, "exec", f"import os, time\nwhile not os.path.exists({flag!r}): time.sleep(0.01)\n'done'")
        wait_running(place)
        second = start_admin(place, "exec", "'never'")
        harness.wait_for(lambda: status(place)["waiting"] == 1, "the second call")
        second.send_signal(signal.SIGINT)
        code, out, err = finish(second)
        assert code == 130 and not out, (code, out, err)
        with open(flag, "w"):
            pass
        assert finish(first) == (0, "'done'\n", "")


def test_exec_daemon_dies():
    """A daemon that dies under exec: said, and status 69; the next exec has a new one"""
    with place_with_daemon() as place:
        code, out, err = admin(place, "exec", "import os; os._exit(3)")
        assert code == UNAVAILABLE and "variables are gone" in err, (code, out, err)
        assert admin(place, "exec", "2")[1] == "2\n"


def test_list_and_status():
    """list and status: what runs, of which session, its last line, who waits; JSON says the same"""
    with harness.Daemon() as daemon, daemon.connect() as agent:
        place = daemon.place
        agent.attach(profile="compact", version="9.9", cwd="/tmp")
        agent.open()
        agent.execute("1")
        listed = json.loads(admin(place, "list", "--json")[1])
        assert len(listed) == 1 and listed[0]["pid"] == daemon.pid and listed[0]["state"] == "ready", listed
        assert len(listed[0]["sessions"]) == 1, "the asking program is no session of interest"
        code, out, err = admin(place, "list")
        assert code == 0 and re.search(rf"^default +{daemon.pid} +ready .* 1 +3\.\d+\.\d+ +/", out, re.M), out

        running = agent.start_call("execute", {"code": "import time\nprint('epoch 1\\nepoch 2', flush=True)\ntime.sleep(60)"})
        wait_running(place, "epoch 2")
        waiting = start_admin(place, "exec", "0")
        harness.wait_for(lambda: status(place)["waiting"] == 1, "the waiting call")
        shown = status(place)
        assert shown["running"]["tool"] == "execute" and shown["running"]["seconds"] >= 0, shown
        ids = {s["pid"]: s for s in shown["sessions"]}
        assert ids[os.getpid()]["id"] == shown["running"]["session"] and ids[os.getpid()]["profile"] == "compact"
        assert shown["name"] == "default" and shown["socket"] == place.socket() and shown["phase"] is None
        code, out, err = admin(place, "status")
        assert code == 0 and not err
        for text in ("running     execute of session ", "last line   epoch 2", "1 waiting", f"process     {daemon.pid}",
                     "profile compact, version 9.9", place.socket()):
            assert text in out, (text, out)
        assert admin(place, "interrupt") == (0, "default: interrupted\n", "")
        assert agent.answer_of(agent.response(running)["result"])["error"]["error_type"] == "KeyboardInterrupt"
        assert finish(waiting) == (0, "0\n", "")
        code, out, err = admin(place, "interrupt")
        assert code == 1 and not out and "nothing runs" in err


def test_status_of_a_failed_start():
    """A start that failed: status says where and why, list says so, restart with the fault says it again"""
    with harness.Daemon(environment={"IPYTHON_MCP_PRELOAD_MODULES": "no_such_module"}) as daemon:
        place = daemon.place
        harness.wait_for(lambda: status(place)["state"] == "failed", "the failure")
        code, out, err = admin(place, "status")
        assert code == 0 and "in phase preload" in out and "no_such_module" in out, out
        assert "failed" in admin(place, "list")[1]
        code, out, err = admin(place, "exec", "1")
        assert code == 1 and "[startup_failed]" in err, err
        code, out, err = admin(place, "restart")
        assert code == 1 and "no_such_module" in err, (code, out, err)


def test_answers_while_python_is_busy():
    """status, list, interrupt and stop do not wait for code that holds the GIL in C"""
    with place_with_daemon() as place:
        code = ("import ctypes\nlibc = ctypes.PyDLL(None)\nmutex = ctypes.create_string_buffer(64)\n"
                "print('held', flush=True)\nlibc.pthread_mutex_lock(mutex)\nlibc.pthread_mutex_lock(mutex)")
        process = start_admin(place, "exec", code)
        wait_running(place, "held")
        assert "held" in admin(place, "status")[1]
        assert admin(place, "interrupt")[0] == 0
        assert status(place)["running"]["interrupts"] >= 1
        code, out, err = admin(place, "stop", "--force")
        assert code == 0 and out == "default: stopped\n", (code, out, err)
        assert finish(process)[0] == UNAVAILABLE
        assert not place.daemons()


def test_stop():
    """stop: the running call is interrupted and answered, the daemon and its socket are gone"""
    with place_with_daemon() as place:
        process = start_admin(place, "exec", "import time; time.sleep(60)")
        wait_running(place)
        assert admin(place, "stop") == (0, "default: stopped\n", "")
        code, out, err = finish(process)
        assert code in (1, UNAVAILABLE) and err, (code, out, err)
        assert not place.daemons() and not os.path.exists(place.socket())


def test_stop_of_a_stopped_process():
    """A daemon that does not answer is left alone without --force, and killed with it"""
    with place_with_daemon() as place:
        [pid] = place.daemons()
        os.kill(pid, signal.SIGSTOP)
        try:
            code, out, err = admin(place, "stop")
            assert code == 1 and f"process {pid}" in err and "--force" in err, err
            assert [d["state"] for d in json.loads(admin(place, "list", "--json")[1])] == ["not answering"]
            assert admin(place, "status")[0] == 1
            assert admin(place, "stop", "--force") == (0, "default: stopped\n", "")
        finally:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        assert not place.daemons()


def test_restart_keeps_settings():
    """restart: a new process under the old one's settings and directory, not under the caller's"""
    with harness.Place() as place:
        setting = {"IPYTHON_MCP_ENVIRONMENT_VARIABLES": '{"MCP_MARK": "agent"}', "IPYTHON_MCP_MAX_RESULTS": "7"}
        assert admin(place, "exec", "keep = 1", cwd=place.tmp, **setting)[0] == 0
        [before] = place.daemons()
        code, out, err = admin(place, "restart", IPYTHON_MCP_MAX_RESULTS="9")
        [after] = place.daemons()
        assert (code, err) == (0, "") and out == f"default: restarted, process {after}\n" and after != before
        assert os.readlink(f"/proc/{after}/cwd") == place.tmp
        with open(f"/proc/{after}/environ") as f:
            assert "IPYTHON_MCP_MAX_RESULTS=7" in f.read().split("\0")
        assert admin(place, "exec", "import os; ['keep' in dir(), os.environ['MCP_MARK']]")[1] == "[False, 'agent']\n"


def test_restart_without_a_daemon():
    """restart starts one when none runs"""
    with harness.Place() as place:
        code, out, err = admin(place, "restart")
        assert code == 0 and out.startswith("default: restarted"), (code, out, err)
        assert len(place.daemons()) == 1


def test_restart_with_attached_agents():
    """restart under attached shims: one daemon, the settings it had, the agents told that names are gone"""
    with harness.Place() as place:
        assert admin(place, "exec", "old = 1", IPYTHON_MCP_MAX_RESULTS="7")[0] == 0
        shims = [harness.Client(harness.Stream.to_program([harness.paths.CONNECT], place.environment(), place.home))
                 for _ in range(3)]
        try:
            for shim in shims:
                shim.open()
                assert shim.execute("old")["result"] == 1
            code, out, err = admin(place, "restart")
            assert code == 0, (code, out, err)
            [pid] = place.daemons()
            for shim in shims:
                answer = shim.execute("'old' in dir()")
                assert answer["result"] is False and "notice" in answer, answer
            assert place.daemons() == [pid]
            with open(f"/proc/{pid}/environ") as f:
                assert "IPYTHON_MCP_MAX_RESULTS=7" in f.read().split("\0")
        finally:
            for shim in shims:
                shim.close()


def test_restart_force_of_wedged_code():
    """restart --force ends code that swallows interrupts"""
    with place_with_daemon() as place:
        process = start_admin(place, "exec", "import time\nprint('on', flush=True)\nwhile True:\n"
                              "    try: time.sleep(60)\n    except BaseException: pass")
        wait_running(place, "on")
        [before] = place.daemons()
        code, out, err = admin(place, "restart", "--force")
        assert code == 0, (code, out, err)
        assert finish(process)[0] in (1, UNAVAILABLE)
        [after] = place.daemons()
        assert after != before and admin(place, "exec", "3")[1] == "3\n"


def test_logs():
    """logs prints the log file of a daemon that a client started, without level prefixes"""
    with place_with_daemon() as place:
        code, out, err = admin(place, "logs")
        assert code == 0 and not err and re.search(r"^namespace default at ", out, re.M), out
        assert not re.search(r"^<\d>", out, re.M) and "40+2" not in out


def test_socket_option():
    """--socket and IPYTHON_MCP_SOCKET name the daemon by its socket"""
    with place_with_daemon() as place:
        other = os.path.join(place.tmp, "other.sock")
        assert admin(place, "exec", "--socket", other, "there = 1")[0] == 0
        assert admin(place, "exec", "'there' in dir()", IPYTHON_MCP_SOCKET=other)[1] == "True\n"
        assert admin(place, "exec", "'there' in dir()")[1] == "False\n"
        assert admin(place, "restart", "--socket", other)[0] == 0
        assert admin(place, "exec", "--socket", other, "'there' in dir()")[1] == "False\n"
        assert admin(place, "stop", "--socket", other)[0] == 0
        assert not os.path.exists(other)


def test_terminal():
    """On a terminal lines fit its width, a long run shows how it goes, and control-C works"""
    with place_with_daemon() as place:
        for command in ("list", "status"):
            code, shown = on_terminal(place, command, columns=50)
            assert code == 0 and all(len(line) <= 50 for line in shown.splitlines()), shown

        def press_control_c(fd):
            os.write(fd, b"\x03")

        code, shown = on_terminal(place, "exec", "import time\nprint('step 1', flush=True)\ntime.sleep(60)",
                                  until=b"step 1", act=press_control_c)
        assert code == 130 and "KeyboardInterrupt" in shown, shown


def test_broken_pipe():
    """A reader that goes away ends the command, not the daemon"""
    with place_with_daemon() as place:
        process = start_admin(place, "exec", "for i in range(200000): print(i)")
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        process.stderr.close()
        assert process.wait(harness.limit()) != 0
        assert admin(place, "exec", "4")[1] == "4\n"


if __name__ == "__main__":
    tap.main()

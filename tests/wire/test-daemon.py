#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a conversation cannot express: how the daemon starts, stops, and treats its place and its machine."""

import contextlib
import glob
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import harness
import paths
import schema
import tap

MODERN = {schema.META + "protocolVersion": schema.MODERN, schema.META + "clientCapabilities": {}}


def run_daemon(place, *arguments, **variables):
    """Runs a daemon that is expected to end by itself; its exit status and what it said."""
    done = subprocess.run([paths.DAEMON, *arguments], env=place.environment(**variables), cwd=place.home,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.limit(60))
    return done.returncode, done.stdout + done.stderr


# Starting.


def test_served_while_starting():
    """initialize, discover, ping and tools/list are answered while Python starts; a call waits, told why"""
    with harness.Place() as place:
        go = os.path.join(place.root, "go")
        library = os.path.join(place.root, "library")
        os.mkdir(library)
        with open(os.path.join(library, "slowmod.py"), "w") as f:
            f.write(f"import os, time\nwhile not os.path.exists({go!r}): time.sleep(.01)\n")
        environment = {"IPYTHON_MCP_LIBRARY_PATHS": library, "IPYTHON_MCP_PRELOAD_MODULES": "slowmod"}
        with harness.Daemon(place=place, environment=environment) as daemon, daemon.connect() as client:
            client.open()
            assert client.request("ping")["result"] == {}
            assert len(client.request("tools/list")["result"]["tools"]) == 10
            with daemon.connect() as modern:
                modern.open(schema.MODERN)
                assert "supportedVersions" in modern.request("server/discover")["result"]
            id = client.start_call("execute", {"code": "6*7", "progress_interval": 0.05}, token="t")
            told = ""
            while "preload" not in told:
                note = client.receive()
                assert note["method"] == "notifications/progress", note
                told = note["params"]["message"]
            assert daemon.status()["state"] == "starting"
            open(go, "w").close()
            assert client.answer_of(client.response(id)["result"])["result"] == 42
            assert daemon.status()["state"] == "ready"


def test_failed_start_is_told():
    """After a failed start every call is told the phase and the reason; the daemon stays and does not loop"""
    with harness.Daemon(environment={"IPYTHON_MCP_PRELOAD_MODULES": "no_such_module_xyz"}) as daemon:
        for _ in range(30):
            with daemon.connect() as client:
                client.open()
        with daemon.connect() as client:
            client.open()
            for tool in ("execute", "list", "call_function"):
                arguments = {"execute": {"code": "1"}, "list": {}, "call_function": {"name": "f", "arguments": {}}}
                error = client.answer(tool, arguments[tool])["error"]
                assert error["code"] == "startup_failed", error
                assert "preload" in error["message"] and "no_such_module_xyz" in error["message"], error
        assert daemon.is_alive()


def test_bad_settings():
    """A bad value stops the start: every call is told the variable and the rule; --check says so with status 78"""
    with harness.Place() as place:
        for name, value in (("IPYTHON_MCP_MAX_RESULTS", "0"), ("IPYTHON_MCP_MAX_RESULTS", "x"),
                ("IPYTHON_MCP_PROFILE", "huge"), ("IPYTHON_MCP_RAW_OUTPUT", "yes"),
                ("IPYTHON_MCP_MAX_WAIT_SECONDS", "-1"), ("IPYTHON_MCP_MODULE_ALIASES", "[]"),
                ("IPYTHON_MCP_LIBRARY_PATHS", "relative/path")):
            status, said = run_daemon(place, "--check", **{name: value})
            assert status == 78 and name in said, (name, value, status, said)
            with harness.Daemon(environment={name: value}) as daemon, daemon.connect() as client:
                client.open()
                error = client.execute("1")["error"]
                assert error["code"] == "startup_failed" and name in error["message"], error
                assert "configuration" in error["message"], error
        status, said = run_daemon(place, "--check", IPYTHON_MCP_MAX_RESULTS="0", IPYTHON_MCP_HISTORY="maybe")
        assert status == 78 and len(said.splitlines()) == 2, said
        assert run_daemon(place, "--check") == (0, "")
        assert not os.listdir(place.runtime)


def test_options():
    """--version and --help answer on stdout; a wrong option is a usage error"""
    for program in (paths.DAEMON, paths.CONNECT, paths.ADMIN):
        done = subprocess.run([program, "--version"], capture_output=True, text=True)
        assert done.returncode == 0 and "0." in done.stdout and not done.stderr, done
        done = subprocess.run([program, "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and "--help" in done.stdout and not done.stderr, done
        done = subprocess.run([program, "--no-such-option"], capture_output=True, text=True)
        assert done.returncode == 64 and done.stderr and not done.stdout, done


# The place (cases Z01, Z03, Z06, S08).


def test_case_Z01():
    """A stale socket is reclaimed; a live one is left alone, and who holds it is said"""
    with harness.Place() as place:
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(place.socket())
        with harness.Daemon(place=place) as daemon, daemon.connect() as client:
            client.open()
            inode = os.stat(place.socket()).st_ino
            status, said = run_daemon(place)
            assert status not in (0, None) and str(daemon.pid) in said and place.socket() in said, (status, said)
            assert os.stat(place.socket()).st_ino == inode
            assert client.execute("1+1")["result"] == 2
        assert not os.path.exists(place.socket())


def test_case_Z03():
    """A socket path of 107 bytes works; of 108 and 150 it is refused with the length and the way out"""
    for length in (107, 108, 150):
        with harness.Place() as place:
            directory = os.path.join(place.root, "d")
            directory += "x" * (length - len(directory) - len("/default.sock"))
            os.mkdir(directory, 0o700)
            place.runtime = directory
            assert len(place.socket()) == length
            if length <= 107:
                with harness.Daemon(place=place) as daemon, daemon.connect() as client:
                    client.open()
                    assert client.execute("1+1")["result"] == 2
                    with daemon.shim() as through:
                        through.open()
                        assert through.execute("2+2")["result"] == 4
            else:
                status, said = run_daemon(place)
                assert status != 0 and str(length) in said and "IPYTHON_MCP" in said, (status, said)
                done = subprocess.run([paths.CONNECT], env=place.environment(), input="", capture_output=True,
                    text=True)
                assert str(length) in done.stderr, done
                assert not os.listdir(directory)


def test_case_Z06():
    """With umask 000 directory and socket are private from the first moment; another user is refused"""
    with harness.Place() as place:
        place.runtime = os.path.join(place.root, "new")
        old = os.umask(0)
        try:
            daemon = harness.Daemon(place=place)
        finally:
            os.umask(old)
        with daemon:
            assert os.stat(place.runtime).st_mode & 0o777 == 0o700
            assert os.stat(place.socket()).st_mode & 0o777 == 0o600
            if os.getuid() == 0:
                # Even where the modes were opened up, another user's connection gets no word.
                for directory in (place.root, place.runtime):
                    os.chmod(directory, 0o755)
                os.chmod(place.socket(), 0o666)
                code = (f"import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
                    f"s.connect({place.socket()!r});"
                    "s.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\\n'); print(s.recv(100))")
                done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True)
                assert done.stdout in ("b''\n", "") and "ping" not in done.stdout, done
                assert done.stdout or "Reset" in done.stderr or "Broken" in done.stderr, done
            with daemon.connect() as client:
                client.open()
                assert client.execute("1+1")["result"] == 2


def test_wrong_places():
    """A runtime directory that is a link, a file, or open to others is refused with its path and the rule"""
    with harness.Place() as place:
        def refused(path):
            place.runtime = path
            status, said = run_daemon(place)
            assert status != 0 and path in said, (path, status, said)
            done = subprocess.run([paths.CONNECT, "--no-spawn"], env=place.environment(), input="",
                capture_output=True, text=True)
            assert path in done.stderr, done

        link = os.path.join(place.root, "link")
        os.symlink(place.home, link)
        refused(link)
        plain = os.path.join(place.root, "file")
        open(plain, "w").close()
        refused(plain)
        shared = os.path.join(place.root, "shared")
        os.mkdir(shared)
        os.chmod(shared, 0o777)
        refused(shared)
        if os.getuid() == 0:
            foreign = os.path.join(place.root, "foreign")
            os.mkdir(foreign, 0o700)
            os.chown(foreign, 65534, 65534)
            refused(foreign)


def test_case_S08():
    """Clients that pass little of the environment reach the same daemon"""
    with harness.Place() as place:
        # The place is told by IPYTHON_MCP_RUNTIME_DIR here; what an agent leaves out must not matter.
        frugal = {"HOME": place.home, "PATH": "/usr/bin:/bin", "IPYTHON_MCP_RUNTIME_DIR": place.runtime}
        with harness.Daemon(place=place, environment={"XDG_RUNTIME_DIR": place.tmp}) as daemon:
            for more in ({}, {"LOGNAME": "x", "SHELL": "/bin/sh", "USER": "x", "LANG": "C", "TERM": "dumb",
                    "TMPDIR": "/tmp", "TZ": "UTC"}):
                stream = harness.Stream.to_program([paths.CONNECT], {**frugal, **more}, place.home)
                with harness.Client(stream, daemon=daemon) as client:
                    client.open()
                    assert client.execute("import os; os.getpid()")["result"] == daemon.pid
            assert place.daemons() == [daemon.pid]


def test_runtime_directory_by_uid():
    """Without IPYTHON_MCP_RUNTIME_DIR, XDG_RUNTIME_DIR does not decide where /run/user/UID is ours"""
    own = f"/run/user/{os.getuid()}"
    # A machine without logins has none: then it is there for this command alone (as root).
    command = [] if os.path.isdir(own) else ["unshare", "--mount", "sh", "-c",
        f'mount -t tmpfs -o mode=755 tmpfs /run && mkdir -p -m 700 {own} && exec "$@"', "sh"]

    def said(**variables):
        with harness.Place() as place:
            environment = {k: v for k, v in place.environment(**variables).items() if k != "IPYTHON_MCP_RUNTIME_DIR"}
            done = subprocess.run([*command, paths.CONNECT, "--no-spawn", "--name", "no-such-name-of-a-test"],
                env={"PATH": os.environ["PATH"], **environment},
                input="{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n", capture_output=True, text=True,
                timeout=harness.limit(60))
            return done.stdout + done.stderr
    with harness.Place() as other:
        assert f"{own}/" in said(XDG_RUNTIME_DIR=other.tmp)
        assert f"{own}/" in said()


# What user code does to its process (cases P01, X03, O05, Z09, Z10).


def children(pid):
    found = []
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(task) as f:
            found += map(int, f.read().split())
    return found


def test_case_P01():
    """A child that falls out of its cell is gone: no second process listens, answers or spins"""
    with harness.Daemon() as daemon, daemon.connect() as client:
        client.open()
        answer = client.execute("import os\npid = os.fork()\nif pid == 0: print('child')\n"
            "else: os.waitpid(pid, 0); print('parent')")
        assert answer["ok"] and answer["stdout"].endswith("parent\n"), answer
        client.fence()
        harness.wait_for(lambda: not children(daemon.pid), "the end of all children")
        # A child that raises, exits, or is left alone does not go on as a daemon either.
        for code in ("if os.fork() == 0: raise ValueError", "if os.fork() == 0: sys.exit(4)",
                "if os.fork() == 0: os.execvp('true', ['true'])"):
            assert client.execute("import os, sys\n" + code)["ok"]
        client.fence()
        client.execute("import os\ntry:\n    while True: os.waitpid(-1, 0)\nexcept ChildProcessError: pass", seconds=60)
        assert daemon.place.daemons() == [daemon.pid]
        assert client.execute("1+1")["result"] == 2


def test_case_X03():
    """os._exit: the call is told that the namespace is lost; the same shim goes on with a new daemon"""
    with harness.Place() as place:
        stream = harness.Stream.to_program([paths.CONNECT], place.environment(), place.home)
        with harness.Client(stream) as client:
            client.open()
            assert client.execute("a = 1; a")["result"] == 1
            before = [tool["name"] for tool in client.request("tools/list")["result"]["tools"]]
            first = place.daemons()
            for code in ("import os; os._exit(7)", "import os; os.kill(os.getpid(), 9)",
                    "import ctypes; ctypes.string_at(0)", "import os; os.abort()"):
                answer = client.answer_of(client.call("execute", {"code": code}))
                assert answer["error"]["code"] == "namespace_lost", (code, answer)
                answer = client.execute("'a' in dir()")
                assert answer["result"] is False and answer["notice"], answer
                assert client.execute("1")["result"] == 1
            assert [tool["name"] for tool in client.request("tools/list")["result"]["tools"]] == before
            assert len(place.daemons()) == 1 and place.daemons() != first
            assert stream.process.poll() is None


def test_case_O05_memory():
    """A million lines cost the daemon no memory"""
    with harness.Daemon() as daemon, daemon.connect() as client:
        client.open()
        client.execute("for i in range(10_000): print(i)")
        before = daemon.status()["memory"]["rss_bytes"]
        answer = client.execute("for i in range(1_000_000): print(i)", seconds=120)
        assert answer["truncated"]["stdout_omitted_chars"] == 6888890 - 8192, answer["truncated"]
        grown = daemon.status()["memory"]["rss_bytes"] - before
        if "asan" not in paths.BUILDDIR:
            assert grown < 20 << 20, grown


def test_case_Z09():
    """A home that is unset or cannot be written to, LC_ALL=C, a locked history: it starts, and touches nothing"""
    for variables in ({"HOME": None}, {"HOME": "/nonexistent"}, {"HOME": "/proc"}, {"LC_ALL": "C", "LANG": None},
            {"LC_ALL": "POSIX", "LANG": None}, {"LANG": None}):
        with harness.Daemon(environment=variables) as daemon, daemon.connect() as client:
            client.open()
            answer = client.execute("import os, subprocess, sys\n"
                f"p = os.path.join({daemon.place.tmp!r}, 'né')\n"
                "with open(p, 'w') as f: _ = f.write('é')\n"
                "print('ü'); (open(p, 'rb').read() == 'é'.encode(), os.fsencode('é') == 'é'.encode(), "
                "subprocess.run([sys.executable, '-c', 'print(\"é\")'], capture_output=True).stdout == 'é\\n'.encode())")
            assert answer["result"] == [True, True, True] and answer["stdout"] == "ü\n", (variables, answer)
            assert answer["stderr"] == "", (variables, answer)
    with harness.Place() as place:
        profile = os.path.join(place.home, ".ipython", "profile_default")
        os.makedirs(profile)
        history = os.path.join(profile, "history.sqlite")
        with contextlib.closing(sqlite3.connect(history, isolation_level=None)) as database:
            database.execute("create table t (a)")
            database.execute("begin exclusive")
            with harness.Daemon(place=place) as daemon, daemon.connect() as client:
                client.open()
                answer = client.execute("1+1")
                assert answer["result"] == 2 and answer["stderr"] == "", answer
            database.execute("rollback")
            assert database.execute("select count(*) from sqlite_master").fetchone() == (1,)


def test_case_Z10():
    """The environment is that of whoever started the daemon, for every session, every time"""
    with harness.Place() as place:
        def asked(value):
            stream = harness.Stream.to_program([paths.CONNECT], place.environment(SSH_AUTH_SOCK=value), place.home)
            with harness.Client(stream) as client:
                client.open()
                return client.execute("import os; os.environ.get('SSH_AUTH_SOCK')")["result"]
        assert [asked("a"), asked("b"), asked("a")] == ["a", "a", "a"]


# Sockets from a manager (case Z04).


def test_case_Z04():
    """An inherited socket is used and never unlinked, also when the start fails"""
    with open(os.path.join(paths.BUILDDIR, "config.h")) as f:
        if "#define HAVE_SYSTEMD 1" not in f.read():
            raise tap.Skip("built without libsystemd")
    for variables in ({}, {"IPYTHON_MCP_PRELOAD_MODULES": "no_such_module_xyz"}):
        with harness.Place() as place, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place.socket())
            os.chmod(place.socket(), 0o600)
            listener.listen()
            inode = os.stat(place.socket()).st_ino
            process = subprocess.Popen(["sh", "-c", 'exec 3<&$1; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0"', paths.DAEMON,
                str(listener.fileno())], pass_fds=[listener.fileno()], env=place.environment(**variables),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=place.home)
            try:
                for _ in range(30):
                    with harness.Client(harness.Stream.to_socket(place.socket())) as client:
                        client.open()
                with harness.Client(harness.Stream.to_socket(place.socket())) as client:
                    client.open()
                    answer = client.execute("1+1")
                    assert answer["error"]["code"] == "startup_failed" if variables else answer["result"] == 2, answer
                assert process.poll() is None
            finally:
                process.terminate()
                _, log = process.communicate(timeout=harness.limit())
            assert process.returncode == 0, (process.returncode, log)
            assert os.stat(place.socket()).st_ino == inode


# Stopping.


def test_stop_while_running():
    """SIGTERM: the running call is interrupted, waiting ones are answered or dropped, the socket goes"""
    with harness.Place() as place:
        daemon = harness.Daemon(place=place)
        with daemon.connect() as client:
            client.open()
            mark = os.path.join(place.root, "runs")
            client.start_call("execute", {"code": f"import time; open({mark!r}, 'w').close(); time.sleep(300)"})
            harness.wait_for(lambda: os.path.exists(mark), "the call's start")
            os.kill(daemon.pid, signal.SIGTERM)
            assert daemon.process.wait(harness.limit(30)) == 0
        assert not os.path.exists(place.socket())
        daemon.stop()


def test_stop_ends_streams():
    """A listen stream is ended with its response and a cancellation before the connection closes"""
    with harness.Daemon() as daemon, daemon.connect() as client:
        client.open(schema.MODERN)
        daemon.wait_ready()
        client.send({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen",
            "params": {"_meta": MODERN, "notifications": {"toolsListChanged": True}}})
        assert client.receive()["method"] == "notifications/subscriptions/acknowledged"
        os.kill(daemon.pid, signal.SIGTERM)
        answer = client.receive()
        assert answer["id"] == "l" and answer["result"]["_meta"][schema.META + "subscriptionId"] == "l", answer
        assert client.receive()["method"] == "notifications/cancelled"
        client.ended()
        assert daemon.process.wait(harness.limit(30)) == 0


def test_stop_is_bounded():
    """User code that does not end, threads that do not end, exit handlers that do not: the daemon ends all the same"""
    for code in ("import threading, time; threading.Thread(target=time.sleep, args=(300,)).start()",
            "import atexit, time; atexit.register(time.sleep, 300)",
            "import time\nwhile True:\n    try: time.sleep(.05)\n    except BaseException: pass"):
        with harness.Place() as place:
            daemon = harness.Daemon(place=place)
            with daemon.connect() as client:
                client.open()
                client.execute("1")
                client.start_call("execute", {"code": code})
                harness.wait_for(lambda: (s := daemon.status()) and (s["running"] or s["calls"] > 1), "the call's start")
                os.kill(daemon.pid, signal.SIGTERM)
                daemon.process.wait(harness.limit(40))
            assert not os.path.exists(place.socket())
            daemon.stop()


def test_stop_while_threads_print():
    """A thread that prints when Python ends does not make it abort"""
    with harness.Place() as place:
        daemon = harness.Daemon(place=place)
        with daemon.connect() as client:
            client.open()
            client.execute("import threading\ndef w():\n    while True: print('y' * 100)\n"
                "for _ in range(4): threading.Thread(target=w, daemon=True).start()")
            os.kill(daemon.pid, signal.SIGTERM)
            assert daemon.process.wait(harness.limit(30)) == 0
        daemon.stop()


def test_socket_of_another():
    """A daemon that stops leaves a socket alone that is no longer its own"""
    with harness.Place() as place:
        daemon = harness.Daemon(place=place)
        daemon.wait_ready()
        os.unlink(place.socket())
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(place.socket())
            other.listen()
            daemon.process.terminate()
            assert daemon.process.wait(harness.limit(30)) == 0
            assert os.path.exists(place.socket())
        daemon.stop()


# Sessions.


def test_slow_reader():
    """A client that does not read stops nobody else, and gets all of it when it reads"""
    with harness.Daemon() as daemon, daemon.connect() as slow, daemon.connect() as other:
        slow.open()
        other.open()
        other.execute("1")
        n = 3000
        line = json.dumps({"jsonrpc": "2.0", "method": "tools/list", "id": 0}).encode() + b"\n"
        slow.stream.sock.setblocking(False)
        sent = b"".join(line.replace(b'"id": 0', b'"id": %d' % i) for i in range(n))
        done = 0
        with contextlib.suppress(BlockingIOError):
            while done < len(sent):
                done += slow.stream.sock.send(sent[done:done + 65536])
        for _ in range(20):
            assert other.execute("1+1")["result"] == 2
        # What it had written in full is answered in order.
        whole = sent[:done].count(b"\n")
        for line in sent[:done].split(b"\n")[:whole]:
            slow._note(line)
        for i in range(whole):
            assert slow.receive()["id"] == i


def test_many_sessions():
    """Two hundred sessions attach, work and leave; the limit is told to the one too many"""
    with harness.Daemon(environment={"IPYTHON_MCP_MAX_SESSIONS": "200"}) as daemon:
        clients = []
        for i in range(200):
            clients.append(daemon.connect())
            clients[-1].open()
        for client in clients[::20]:
            assert client.execute("1+1")["result"] == 2
        with daemon.connect() as extra:
            with contextlib.suppress(harness.Closed):
                extra.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
                message = extra.receive()
                assert "error" in message and "200" in message["error"]["message"], message
        for client in list(clients):
            client.close()

        def has_room():
            try:
                return len(daemon.status()["sessions"]) <= 1
            except (AssertionError, schema.Violation):
                return False  # refused: their ends are still to be noticed

        harness.wait_for(has_room, "the end of all sessions")
        with daemon.connect() as client:
            client.open()
            assert client.execute("1+1")["result"] == 2


def test_descriptors_run_out():
    """Connections beyond the descriptors' limit wait or are dropped; the daemon survives and resumes"""
    with harness.Place() as place:
        command = f"ulimit -n 40; exec {paths.DAEMON}"
        process = subprocess.Popen(["sh", "-c", command], env=place.environment(), cwd=place.home,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            harness.wait_for(lambda: os.path.exists(place.socket()), "the socket")
            with harness.Client(harness.Stream.to_socket(place.socket())) as client:
                client.open()
                assert client.execute("1+1")["result"] == 2
                crowd = []
                for _ in range(60):
                    s = socket.socket(socket.AF_UNIX)
                    s.settimeout(2)
                    with contextlib.suppress(OSError):
                        s.connect(place.socket())
                    crowd.append(s)
                assert client.execute("2+2")["result"] == 4
                for s in crowd:
                    s.close()
                assert client.execute("3+3")["result"] == 6
            with harness.Client(harness.Stream.to_socket(place.socket())) as client:
                client.open()
                assert client.execute("4+4", seconds=30)["result"] == 8
            assert process.poll() is None
        finally:
            process.terminate()
            process.communicate(timeout=harness.limit())


def test_session_that_leaves():
    """A session's waiting calls go with it, its running call goes on, nobody is answered for it"""
    with harness.Daemon() as daemon, daemon.connect() as other:
        other.open()
        other.execute("import os, time")
        go, never = (os.path.join(daemon.place.tmp, name) for name in ("go", "never"))
        leaver = daemon.connect()
        leaver.open()
        leaver.start_call("execute", {"code": f"while not os.path.exists({go!r}): time.sleep(.01)\nran = True"})
        harness.wait_for(lambda: daemon.status()["running"], "the call's start")
        leaver.start_call("execute", {"code": f"open({never!r}, 'w').close()"})
        leaver.fence()
        leaver.close()
        harness.wait_for(lambda: len(daemon.status()["sessions"]) <= 2, "the session's end")
        time.sleep(1.5)  # its waiting call has a second's grace; afterwards it must be gone
        open(go, "w").close()
        answer = other.execute("ran")
        assert answer["result"] is True, answer
        assert not os.path.exists(never)


if __name__ == "__main__":
    tap.main()

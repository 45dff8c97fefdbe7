#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The units, run by a real service manager of a user."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import manager  # noqa: E402
import paths  # noqa: E402
import tap  # noqa: E402
from harness import wait_for  # noqa: E402

SERVICE, SOCKET = "ipython-mcpd.service", "ipython-mcpd.socket"
UNITS = [SOCKET, SERVICE, "ipython-mcpd@.socket", "ipython-mcpd@.service"]
SECRET = "hunter2-never-in-a-log"

_user = None


def user():
    """The one manager that all cases share, without daemons or settings of an earlier case."""
    global _user
    if _user is None:
        _user = manager.User()
    else:
        _user.clean()
    return _user


def main_pid(m, unit=SERVICE):
    return int(m.show(unit, "MainPID"))


def module(m, name, text):
    """Makes a module that a namespace can preload; returns its directory."""
    directory = os.path.join(m.directory, "modules")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name + ".py"), "w", encoding="utf-8") as f:
        f.write(text)
    return directory


def gate(m, name):
    """A module whose import waits until the test opens its gate."""
    path = os.path.join(m.directory, name + ".open")
    directory = module(m, name, "import os, time\n"
        f"while not os.path.exists({path!r}):\n    time.sleep(0.01)\n")
    return directory, path


def test_verify():
    """systemd-analyze finds nothing wrong with the installed units"""
    m = user()
    for unit in UNITS:
        path = os.path.join(manager.prefix(), "lib/systemd/user", unit)
        done = subprocess.run(m.inside("systemd-analyze", "verify", "--user", "--recursive-errors=no", path),
            capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr.strip(), (unit, done)
    wrong = os.path.join(m.home(), "wrong.service")
    with open(wrong, "w", encoding="utf-8") as f:
        f.write("[Service]\nExecStart=/bin/true\nNoSuchKey=1\n")
    done = subprocess.run(m.inside("systemd-analyze", "verify", "--user", "--recursive-errors=no", wrong),
        capture_output=True, text=True)
    assert done.returncode != 0 and "NoSuchKey" in done.stderr, done  # or the check above checks nothing


def test_connection_starts_service():
    """a connection to the socket starts the service; readiness and status are told"""
    m = user()
    m.systemctl("enable", "--now", SOCKET)
    assert m.is_active(SOCKET) and not m.is_active(SERVICE)
    path = m.runtime("ipython-mcp/default.sock")
    inode = os.stat(path).st_ino
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    with m.connect() as client:
        client.open()
        assert client.execute("import os; os.getpid()")["result"] == main_pid(m)
        wait_for(lambda: m.is_active(SERVICE), "readiness")
        values = m.show(SERVICE, "StatusText", "Type", "Result", "NRestarts", "OOMPolicy", "MemoryAccounting",
            "TasksAccounting", "StatusErrno")
        assert values["StatusText"], values
        assert values["OOMPolicy"] == "continue" and values["MemoryAccounting"] == "yes", values
        assert values["TasksAccounting"] == "yes" and values["NRestarts"] == "0", values
    assert os.stat(path).st_ino == inode, "the manager's socket was replaced"


def test_status_says_what_runs():
    """the status line names the running call"""
    m = user()
    with m.connect() as client:
        client.open()
        client.execute("1")
        idle = m.show(SERVICE, "StatusText")
        call = client.start_call("execute", {"code": "import time\ntime.sleep(600)"})
        wait_for(lambda: m.show(SERVICE, "StatusText") != idle, "a status of the running call")
        assert "execute" in m.show(SERVICE, "StatusText"), m.show(SERVICE, "StatusText")
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}})
        assert client.execute("2")["result"] == 2


def test_shim_starts_through_unit():
    """the shim starts the unit, also with an agent's small environment, and waits for no readiness"""
    m = user()
    assert not m.is_active(SOCKET)
    directory, path = gate(m, "slow")
    m.settings(LIBRARY_PATHS=directory, PRELOAD_MODULES="slow")
    with m.connect() as client:
        client.open()
        assert client.request("tools/list")["result"]["tools"]
        assert m.is_active(SOCKET)
        assert m.show(SERVICE, "ActiveState") == "activating"
        call = client.start_call("execute", {"code": "import os; os.getpid()"})
        open(path, "w").close()
        assert client.answer_of(client.response(call)["result"])["result"] == main_pid(m)


def test_shim_starts_its_own():
    """a client that brings settings or an interpreter gets a daemon with them, not the unit's"""
    m = user()
    m.settings(PROFILE="compact")
    for environment in ({"IPYTHON_MCP_MAX_RESULTS": "7"}, {"VIRTUAL_ENV": "/usr"}):
        with m.connect(environment=environment) as client:
            client.open()
            pid = client.execute("import os; os.getpid()")["result"]
        assert not m.is_active(SOCKET) and not m.is_active(SERVICE), environment
        m.run("kill", str(pid))
        wait_for(lambda: not os.path.exists(m.runtime("ipython-mcp/default.sock")), "the daemon's end")
    project = os.path.join(m.home(), "project")
    os.makedirs(os.path.join(project, ".venv", "bin"))
    os.symlink("/usr/bin/python3", os.path.join(project, ".venv", "bin", "python"))
    with m.connect(cwd=project) as client:
        client.open()
        pid = client.execute("import os; os.getpid()")["result"]
    assert not m.is_active(SOCKET)
    m.run("kill", str(pid))
    wait_for(lambda: not os.path.exists(m.runtime("ipython-mcp/default.sock")), "the daemon's end")


def test_clients_during_slow_start():
    """clients that connect during a slow start are answered at once and served after it"""
    m = user()
    directory, path = gate(m, "slower")
    m.settings(LIBRARY_PATHS=directory, PRELOAD_MODULES="slower")
    m.systemctl("start", SOCKET)
    clients = [m.connect() for _ in range(5)]
    for client in clients:
        client.open()
    calls = [client.start_call("execute", {"code": f"{i}"}) for i, client in enumerate(clients)]
    assert m.show(SERVICE, "ActiveState") == "activating"
    wait_for(lambda: "preload" in m.show(SERVICE, "StatusText"), "the phase in the status line")
    started = subprocess.Popen(m.inside("systemctl", "--user", "start", SERVICE))
    assert started.poll() is None
    open(path, "w").close()
    for i, (client, call) in enumerate(zip(clients, calls)):
        assert client.answer_of(client.response(call)["result"])["result"] == i
    assert started.wait(60) == 0 and m.is_active(SERVICE)


def test_failed_start():
    """a start that fails for good is ready, stays, tells each client why, and is mended by a restart"""
    m = user()
    directory = module(m, "broken", "raise RuntimeError('mend me')\n")
    m.settings(LIBRARY_PATHS=directory, PRELOAD_MODULES="broken")
    m.systemctl("start", SOCKET)
    for _ in range(30):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(m.runtime("ipython-mcp/default.sock"))
    with m.connect() as client:
        client.open()
        error = client.execute("1")["error"]
        assert error["code"] == "startup_failed" and "preload" in error["message"], error
        wait_for(lambda: m.is_active(SERVICE), "readiness")
        assert "preload" in m.show(SERVICE, "StatusText"), m.show(SERVICE, "StatusText")
        assert m.show(SERVICE, "NRestarts") == "0"
        m.settings()
        m.systemctl("restart", SERVICE)
        assert client.execute("2")["result"] == 2
    assert m.is_active(SOCKET)


def test_bad_setting():
    """a setting that breaks its rule does not take the socket down"""
    m = user()
    m.settings(MAX_RESULTS="many")
    m.systemctl("start", SOCKET)
    for _ in range(30):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(m.runtime("ipython-mcp/default.sock"))
    with m.connect() as client:
        client.open()
        error = client.execute("1")["error"]
        assert error["code"] == "startup_failed" and "IPYTHON_MCP_MAX_RESULTS" in error["message"], error
        assert m.is_active(SOCKET)
        m.settings()
        m.systemctl("restart", SERVICE)
        assert client.execute("2")["result"] == 2


def test_crashing_start():
    """a preload that kills the daemon again and again does not take the socket down"""
    m = user()
    directory = module(m, "crash", "import os; os.abort()\n")
    m.settings(LIBRARY_PATHS=directory, PRELOAD_MODULES="crash")
    m.systemctl("start", SOCKET)
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(m.runtime("ipython-mcp/default.sock"))
        wait_for(lambda: int(m.show(SERVICE, "NRestarts")) >= 7, "seven restarts")
    assert m.is_active(SOCKET)
    m.settings()
    wait_for(lambda: m.is_active(SERVICE), "a start that succeeds")
    with m.connect() as client:
        client.open()
        assert client.execute("1")["result"] == 1


def test_kill():
    """after kill -9 the service is started again, and the shim's client goes on"""
    m = user()
    with m.connect() as client:
        client.open()
        client.execute("kept = 1")
        pid = main_pid(m)
        call = client.start_call("execute", {"code": "import time; time.sleep(600)"})
        wait_for(lambda: "execute" in m.show(SERVICE, "StatusText"), "the call")
        m.run("kill", "-9", str(pid))
        lost = client.response(call)["result"]
        assert lost["isError"] and "namespace_lost" in lost["content"][0]["text"], lost
        assert client.execute("'kept' in dir()")["result"] is False
        values = m.show(SERVICE, "MainPID", "NRestarts")
        assert int(values["MainPID"]) not in (0, pid) and values["NRestarts"] == "1", values


def test_watchdog():
    """a stuck event loop is ended by the watchdog; code that computes for long is not"""
    m = user()
    m.drop_in(SERVICE, "[Service]\nWatchdogSec=1s\nTimeoutAbortSec=2s\nLimitCORE=0\n")
    with m.connect() as client:
        client.open()
        answer = client.execute("import time, re\nt = time.monotonic()\n"
            "while time.monotonic() - t < 3.5:\n    re.match('(a+)+$', 'a' * 22 + 'b')\n7")
        assert answer["result"] == 7, answer
        assert m.show(SERVICE, "NRestarts") == "0"
        pid = main_pid(m)
        m.run("kill", "-STOP", str(pid))
        wait_for(lambda: m.show(SERVICE, "NRestarts") == "1", "the watchdog")
        assert client.execute("8")["result"] == 8
        assert main_pid(m) != pid
    assert any("atchdog" in line for line in m.journal_text().splitlines())


def test_stop():
    """a stopped service is started by the next client, not before; the socket stays"""
    m = user()
    m.systemctl("start", SOCKET)
    client = m.connect()
    client.open()
    client.execute("1")
    client.close()
    begin = time.monotonic()
    m.systemctl("stop", SERVICE)
    assert time.monotonic() - begin < 25
    values = m.show(SERVICE, "ActiveState", "Result", "NRestarts")
    assert values["ActiveState"] == "inactive" and values["Result"] == "success", values
    assert m.is_active(SOCKET) and os.path.exists(m.runtime("ipython-mcp/default.sock"))
    with m.connect() as again:
        again.open()
        assert again.execute("1")["result"] == 1
        # The daemon's own stop is an orderly end: no failure, no restart.
        m.run(os.path.join(manager.prefix(), "bin", "ipython-mcp"), "stop")
        wait_for(lambda: m.show(SERVICE, "Result") == "success", "an orderly end")


def test_stop_interrupts():
    """SIGTERM ends a service whose code swallows it, with its children, within the unit's time"""
    m = user()
    m.systemctl("start", SOCKET)
    client = m.connect()
    client.open()
    pids = client.execute("import subprocess\n"
        "p = subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 600'], start_new_session=True)\np.pid")["result"]
    client.start_call("execute", {"code": "import time\nwhile True:\n    try: time.sleep(60)\n"
        "    except BaseException: pass"})
    wait_for(lambda: "execute" in m.show(SERVICE, "StatusText"), "the call")
    client.close()  # an attached agent's relay would start it again; the call goes on without one
    stopping = subprocess.Popen(m.inside("systemctl", "--user", "stop", SOCKET, SERVICE))

    def says_so():
        values = m.show(SERVICE, "SubState", "StatusText")
        return values["SubState"] == "stop-sigterm" and "stop" in values["StatusText"]
    wait_for(says_so, "a status line that says so")
    assert stopping.wait(60) == 0
    values = m.show(SERVICE, "ActiveState", "Result")
    assert values["ActiveState"] == "inactive" and values["Result"] == "success", values
    assert m.run("kill", "-0", str(pids), check=False) == "" and \
        subprocess.run(m.inside("kill", "-0", str(pids)), capture_output=True).returncode != 0
    assert not os.path.exists(m.runtime("ipython-mcp/default.sock"))


def test_disable():
    """disable undoes enable, by socket or by service"""
    m = user()
    wants = os.path.join(m.home(), ".config/systemd/user/sockets.target.wants")
    for unit in (SOCKET, SERVICE):
        m.systemctl("enable", unit)
        assert os.path.lexists(os.path.join(wants, SOCKET))
        m.systemctl("disable", unit)
        assert not os.path.lexists(os.path.join(wants, SOCKET))
    m.systemctl("enable", "ipython-mcpd@lab.service")
    assert os.path.lexists(os.path.join(wants, "ipython-mcpd@lab.socket"))
    m.systemctl("disable", "ipython-mcpd@lab.service")


def test_instances():
    """two instances of the template are two namespaces with settings of their own"""
    m = user()
    names = ("alpha", "b-2.c_d")
    for i, name in enumerate(names):
        m.settings(name, MAX_RESULTS=str(5 + i))
        m.systemctl("start", f"ipython-mcpd@{name}.socket")
    pids = []
    for i, name in enumerate(names):
        with m.connect("--name", name) as client:
            client.open()
            client.execute(f"who = {name!r}")
            assert len(client.execute("list(range(20))")["result"]) == 5 + i
            pids.append(client.execute("import os; os.getpid()")["result"])
            assert pids[-1] == main_pid(m, f"ipython-mcpd@{name}.service")
    assert len(set(pids)) == 2
    with m.connect("--name", names[0]) as client:
        client.open()
        assert client.execute("who")["result"] == names[0]
    assert not m.is_active(SERVICE)


def test_journal():
    """the journal has lines with priorities and nothing of the user's"""
    m = user()
    directory = module(m, "fine", "VALUE = 1\n")
    m.settings(LIBRARY_PATHS=directory, PRELOAD_MODULES="fine")
    with m.connect() as client:
        client.open()
        client.execute(f"password = '{SECRET}'; print(password); import sys; print(password, file=sys.stderr)")
        client.execute(f"raise ValueError('{SECRET}')")
        client.answer("call_function", {"name": "len", "arguments": {"obj": SECRET}})
        client.answer("inspect", {"name": "password"})
        client.answer("call_function", {"name": SECRET, "arguments": {}})
    lines = m.journal()
    assert lines
    for line in lines:
        assert SECRET not in str(line), line
        assert line["PRIORITY"] in "34567", line
        assert not re.match(r"<\d>", line["MESSAGE"]), line
    assert any("execute" in line["MESSAGE"] for line in lines), [line["MESSAGE"] for line in lines]


def test_people():
    """ipython-mcp asks without starting anything, restarts through the unit, and shows the journal"""
    m = user()
    admin = os.path.join(manager.prefix(), "bin", "ipython-mcp")
    m.systemctl("start", SOCKET)
    done = subprocess.run(m.inside(admin, "status"), capture_output=True, text=True)
    assert done.returncode == 69 and "no daemon" in done.stderr, done
    assert subprocess.run(m.inside(admin, "list"), capture_output=True).returncode == 0
    assert m.show(SERVICE, "ActiveState") == "inactive"
    with m.connect() as client:
        client.open()
        client.execute("kept = 1")
        pid = main_pid(m)
        assert str(pid) in m.run(admin, "list")
        assert str(pid) in m.run(admin, "status")
        m.run(admin, "restart")
        wait_for(lambda: main_pid(m) not in (0, pid), "another daemon, the unit's")
        assert client.execute("'kept' in dir()")["result"] is False
    assert "execute" in m.run(admin, "logs")


def test_user_code_sees_no_manager():
    """user code and its children have no way to speak for the service, and no descriptor of its"""
    m = user()
    with m.connect() as client:
        client.open()
        names = client.execute("import os\n[n for n in ('NOTIFY_SOCKET', 'LISTEN_FDS', 'LISTEN_PID', "
            "'LISTEN_FDNAMES', 'WATCHDOG_USEC', 'WATCHDOG_PID') if n in os.environ]")["result"]
        assert names == [], names
        status = m.show(SERVICE, "StatusText")
        client.execute("import subprocess\nsubprocess.run(['systemd-notify', '--status=evil', '--ready'])")
        assert "evil" not in m.show(SERVICE, "StatusText"), status


def test_child_killed():
    """a child that the kernel kills does not end the namespace"""
    m = user()
    with m.connect() as client:
        client.open()
        code = ("import subprocess, signal\np = subprocess.Popen(['sleep', '600'])\n"
            "p.send_signal(signal.SIGKILL)\np.wait()")
        assert client.execute(code)["result"] == -9
        assert client.execute("1")["result"] == 1
        assert m.show(SERVICE, "NRestarts") == "0"


def test_hardening_drop_in():
    """the drop-in that ipython-mcpd(8) shows works"""
    m = user()
    with open(os.path.join(paths.SRCDIR, "man", "ipython-mcpd.8"), encoding="utf-8") as f:
        section = f.read().split(".Sh HARDENING")[1].split(".Sh")[0]
    m.drop_in(SERVICE, re.search(r"^\.Bd.*?\n(.*?)^\.Ed", section, re.M | re.S).group(1))
    with m.connect() as client:
        client.open()
        answer = client.execute("import subprocess\nsubprocess.run(['echo', 'hi']).returncode")
        assert answer["ok"] and answer["result"] == 0, answer
        assert client.execute("import multiprocessing as m\n"
            "with m.get_context('fork').Pool(2) as p:\n    r = p.map(abs, [-1, -2])\nr")["result"] == [1, 2]
        status = client.execute("open('/proc/self/status').read()")["result"]
        assert re.search(r"^NoNewPrivs:\s+1$", status, re.M) and re.search(r"^Seccomp:\s+2$", status, re.M)


def test_home_directory():
    """a service's own directory is the home; a session's is its agent's"""
    m = user()
    os.makedirs(os.path.join(m.home(), "work"), exist_ok=True)
    os.chown(os.path.join(m.home(), "work"), manager.UID, manager.UID)
    with m.connect(cwd=os.path.join(m.home(), "work")) as client:
        client.open()
        assert client.execute("import os; os.getcwd()")["result"] == os.path.join(m.home(), "work")
        assert os.readlink(f"/proc/{main_pid(m)}/cwd") == m.home()


def test_sigterm_directly():
    """a SIGTERM from elsewhere is an orderly end; the next client starts the service"""
    m = user()
    m.systemctl("start", SOCKET)
    with m.connect() as client:
        client.open()
        pid = client.execute("import os; os.getpid()")["result"]
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: main_pid(m) != pid, "its end")
        assert client.execute("2")["result"] == 2
        assert m.show(SERVICE, "NRestarts") == "0"


if __name__ == "__main__":
    try:
        tap.main()
    finally:
        if _user:
            _user.stop()

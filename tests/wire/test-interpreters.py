#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One build serves every CPython of the stable ABI and its environments, and says what is wrong with others."""

import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import harness
import tap

FACTS = """
import sys, site, json, IPython
[sys.executable, sys.prefix, sys.base_prefix, list(sys.version_info[:3]), IPython.__version__,
 IPython.__file__, sys.implementation.name]
"""


def environments():
    """The prepared environments: (name, python)."""
    found = sorted(glob.glob(os.path.join(harness.cache_directory(), "[0-9]*-ipython*", "bin", "python")))
    if not found:
        raise AssertionError("no environments: run tests/setup")
    return [(path.split(os.sep)[-3], path) for path in found]


def check_environment(name, python, **variables):
    with harness.Daemon("--python", python, environment=variables) as daemon, daemon.connect() as client:
        client.open()
        answer = client.execute(FACTS.strip())
        assert answer["ok"], answer
        executable, prefix, base_prefix, version, ipython, ipython_file, implementation = answer["result"]
        venv = os.path.dirname(os.path.dirname(python))
        expected = subprocess.run([python, "-c", "import sys; print(sys.base_prefix)"], text=True,
            stdout=subprocess.PIPE, check=True).stdout.strip()
        assert executable == python, (executable, python)
        assert prefix == venv, (prefix, venv)
        assert base_prefix == expected, (base_prefix, expected)
        assert ".".join(map(str, version)) == name.split("-")[0], (version, name)
        assert ipython.split(".")[0] == name[-1], (ipython, name)
        assert ipython_file.startswith(venv + "/lib/"), ipython_file
        assert implementation == "cpython"
        # A child that is started by that name is the same Python.
        answer = client.execute("import subprocess, sys; subprocess.run([sys.executable, '-c', "
            "'import sys; print(sys.version)'], capture_output=True, text=True).stdout == sys.version + '\\n'")
        assert answer["result"] is True, answer
        # What the interpreter's own thread promises.
        answer = client.execute("import threading, signal; "
            "(threading.current_thread() is threading.main_thread(), signal.getsignal(signal.SIGINT) is "
            "signal.default_int_handler)")
        assert answer["result"] == [True, True], answer
        answer = client.answer("execute", {"code": "while True: pass", "timeout": 0.3})
        assert answer["error"]["code"] == "timeout", answer
        assert client.execute("print('é'); 2**70")["result"] == 2**70
        assert client.execute("await __import__('asyncio').sleep(0, 3)")["result"] == 3
        client.fence()


def test_each_environment():
    """Each CPython and each IPython here: executable, prefix, site-packages, interrupts"""
    for name, python in environments():
        try:
            check_environment(name, python)
        except BaseException as e:
            print(f"# in {name}")
            raise


def test_another_python_first_on_path():
    """Another python3 that comes first on PATH changes nothing"""
    chosen = environments()
    other = harness.Place()
    try:
        fake = os.path.join(other.root, "python3")
        os.symlink(chosen[-1][1], fake)
        os.symlink(chosen[-1][1], os.path.join(other.root, "python"))
        check_environment(*chosen[0], PATH=other.root + ":/usr/bin:/bin")
    finally:
        other.remove()


def test_empty_path():
    """An empty PATH and none at all change nothing"""
    name, python = environments()[0]
    check_environment(name, python, PATH="")
    check_environment(name, python, PATH=None)


def test_default_interpreter():
    """Without a word the interpreter is the one found at build time, whatever PATH says"""
    with harness.Daemon(environment={"IPYTHON_MCP_PYTHON": None, "PATH": "/nonexistent"}) as daemon:
        with daemon.connect() as client:
            client.open()
            answer = client.execute("import sys; sys.executable")
            assert os.path.isabs(answer["result"]) and os.access(answer["result"], os.X_OK), answer


def test_virtual_env():
    """$VIRTUAL_ENV and the nearest .venv name the interpreter, the option and the setting before them"""
    (_, first), (_, second) = environments()[:2]

    def served(*arguments, cwd=None, **variables):
        variables.setdefault("IPYTHON_MCP_PYTHON", None)
        with harness.Daemon(*arguments, cwd=cwd, environment=variables) as daemon, daemon.connect() as client:
            client.open()
            return client.execute("import sys; sys.executable")["result"]

    venv = os.path.dirname(os.path.dirname(first))
    assert served(VIRTUAL_ENV=venv) == first
    assert served(VIRTUAL_ENV=venv, IPYTHON_MCP_PYTHON=second) == second
    assert served("--python", second, VIRTUAL_ENV=venv) == second


def failure(python, **variables):
    """What a client is told by a daemon that cannot start with this interpreter."""
    with harness.Daemon("--python", python, environment=variables) as daemon, daemon.connect() as client:
        client.open()
        result = client.call("execute", {"code": "1"})
        answer = client.answer_of(result)
        assert result["isError"] and answer["error"]["code"] == "startup_failed", answer
        # The protocol is served all the same, and the daemon stays to say it again.
        assert client.request("tools/list")["result"]["tools"]
        assert client.answer("list")["error"]["code"] == "startup_failed"
        assert daemon.is_alive()
        return answer["error"]["message"]


def fake(place, patch):
    """An interpreter that claims something about itself: the real one, told to lie."""
    path = os.path.join(place.root, "claims", "python3")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(f"#!/usr/bin/python3\nimport sys, posix\n{patch}\nexec(sys.argv[sys.argv.index('-c') + 1])\n")
    os.chmod(path, 0o755)
    return path


def test_no_such_interpreter():
    """No such interpreter: the message names it and the way out"""
    message = failure("/nonexistent/bin/python3")
    assert "/nonexistent/bin/python3" in message and "IPYTHON_MCP_PYTHON" in message, message


def test_not_executable():
    """A file that is no interpreter: the message names it"""
    with harness.Place() as place:
        path = os.path.join(place.root, "python3")
        with open(path, "w") as f:
            f.write("#!/bin/sh\nexit 3\n")
        assert path in failure(path)
        os.chmod(path, 0o755)
        assert path in failure(path)


def test_too_old():
    """An interpreter before 3.11: the message names its version and the one that is needed"""
    with harness.Place() as place:
        message = failure(fake(place,
            "sys.version_info = (3, 10, 13, 'final', 0); sys.hexversion = 0x030a0df0"))
        assert "3.10" in message and "3.11" in message, message
    for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.[689].*/bin/python3"))):
        message = failure(path)
        assert path in message and "3.11" in message, message


def test_no_shared_libpython():
    """A static build: the message says that libpython is missing"""
    with harness.Place() as place:
        message = failure(fake(place, "real = posix.stat\n"
            "def stat(path):\n"
            "    if 'libpython' in str(path): raise FileNotFoundError(path)\n"
            "    return real(path)\n"
            "posix.stat = stat\n"
            "import sysconfig; sysconfig.get_config_var = lambda name: None"))
        assert "libpython" in message, message


def test_free_threaded():
    """A free-threaded build has no stable ABI: the message says so"""
    with harness.Place() as place:
        message = failure(fake(place, "import sysconfig; sysconfig.get_config_var = lambda name: None; "
            "sys.abiflags = 't'"))
        assert "free-threaded" in message, message


def test_no_ipython():
    """No IPython in the environment: the message names it and the command that installs it"""
    with harness.Place() as place:
        venv = os.path.join(place.root, "venv")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True)
        python = os.path.join(venv, "bin", "python")
        message = failure(python)
        assert python in message and "install" in message and "ipython" in message.lower(), message


if __name__ == "__main__":
    tap.main()

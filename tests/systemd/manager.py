# SPDX-License-Identifier: MIT
"""Real service managers for tests: a user's own, and a machine's that boots.

Nothing of the machine that runs the tests is touched: each manager has mount and cgroup namespaces and a
cgroup of its own, and lives in a scratch directory. It takes root (namespaces, cgroups), a writable cgroup
tree of version 2, and systemd's programs; without them the tests fail and say so.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

import paths  # noqa: E402
from harness import Client, Stream, limit, wait_for  # noqa: E402

UID = 23456


def need():
    """Fails the test where no manager can be started, with what is missing."""
    for program in ("/lib/systemd/systemd", "/lib/systemd/systemd-journald"):
        if not os.path.exists(program):
            raise AssertionError(f"{program} is missing: run tests/setup")
    if os.geteuid() != 0:
        raise AssertionError("starting a service manager takes root: run the tests as root")
    if not cgroup_root():
        raise AssertionError("a writable cgroup tree of version 2 is missing: mount one")


def cgroup_root():
    done = subprocess.run(["findmnt", "-nro", "TARGET,OPTIONS", "-t", "cgroup2"], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        target, options = line.split()
        if "rw" in options.split(","):
            return target
    return None


@functools.lru_cache(None)
def prefix():
    """The prefix that the build under test was configured with."""
    with open(os.path.join(paths.BUILDDIR, "Makefile"), encoding="utf-8") as f:
        return re.search(r"^prefix = (.*)$", f.read(), re.M).group(1)


def install(stage):
    """`make install` below the directory `stage`, by hand or from inside `make check` alike."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-s", "-C", paths.BUILDDIR, "install", "DESTDIR=" + stage],
        capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


class Manager:
    """What both kinds have in common: a cgroup, a first process, and commands inside."""

    def __init__(self):
        need()
        self.directory = tempfile.mkdtemp(prefix="mcp-systemd-", dir="/var/tmp")
        os.chmod(self.directory, 0o755)
        self.stage = os.path.join(self.directory, "stage")
        self.pid = None
        self.process = None
        self.clients = []
        self.cgroup = os.path.join(cgroup_root(), f"mcp-test.{os.path.basename(self.directory)}")
        try:
            os.mkdir(self.cgroup)
            install(self.stage)
            self.start()
        except BaseException:
            self.stop()
            raise

    def launch(self, command):
        """Starts `command` as a session of its own inside the cgroup."""
        self.log = os.path.join(self.directory, "manager.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', self.cgroup, *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def wait_up(self, condition):
        def up():
            if self.process.poll() is not None:
                with open(self.log, encoding="utf-8", errors="replace") as f:
                    raise AssertionError("the manager ended at once:\n" + f.read())
            return condition()
        wait_for(up, "the manager's start")

    def run(self, *command, check=True, **options):
        """Runs a command inside, as the user, and returns what it printed."""
        done = subprocess.run(self.inside(*command, **options), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=limit(60))
        if check:
            assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout.strip()

    def systemctl(self, *words, **options):
        return self.run("systemctl", "--user", "--no-pager", *words, **options)

    def show(self, unit, *names):
        """Properties of a unit: the value of one, a dict of several."""
        text = self.systemctl("show", unit, *["--property=" + name for name in names])
        values = dict(line.split("=", 1) for line in text.splitlines())
        return values[names[0]] if len(names) == 1 else values

    def is_active(self, unit):
        return self.systemctl("is-active", unit, check=False) == "active"

    def connect(self, *arguments, environment=None, cwd=None):
        """An agent: the installed shim with its usual, small environment."""
        command = self.inside(os.path.join(prefix(), "bin", "ipython-mcp-connect"), *arguments,
            environment={"XDG_RUNTIME_DIR": None, **(environment or {})}, cwd=cwd)
        client = Client(Stream.to_program(command, dict(os.environ), self.directory))
        self.clients.append(client)
        return client

    def settings(self, name="default", **variables):
        """Writes the settings of a namespace's unit; without any, removes them."""
        path = os.path.join(self.home(), ".config", "ipython-mcp", name + ".env")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            for variable, value in variables.items():
                f.write(f"IPYTHON_MCP_{variable}={value}\n")

    def drop_in(self, unit, text):
        """Adds to a unit, as `systemctl edit` would."""
        directory = os.path.join(self.home(), ".config", "systemd", "user", unit + ".d")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "test.conf"), "w", encoding="utf-8") as f:
            f.write(text)
        self.systemctl("daemon-reload")

    def clean(self):
        """Between cases: no daemon, no client, no settings."""
        for client in self.clients:
            with contextlib.suppress(Exception):
                client.close()
        self.clients.clear()
        units = ["ipython-mcpd.socket", "ipython-mcpd.service", "ipython-mcpd@*.socket", "ipython-mcpd@*.service"]
        self.systemctl("stop", *units, check=False)
        self.systemctl("reset-failed", check=False)
        shutil.rmtree(os.path.join(self.home(), ".config"), ignore_errors=True)
        self.systemctl("daemon-reload")

    def stop(self):
        for client in self.clients:
            with contextlib.suppress(Exception):
                client.close()
        if self.process and self.process.poll() is None:
            os.kill(self.pid or self.process.pid, self.STOP_SIGNAL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(limit(20))
        with contextlib.suppress(OSError), open(os.path.join(self.cgroup, "cgroup.kill"), "w") as f:
            f.write("1")
        if self.process:
            self.process.wait(limit(20))
        for _ in range(200):
            for directory, _, _ in os.walk(self.cgroup, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)
            if not os.path.exists(self.cgroup):
                break
            time.sleep(0.05)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, e, trace):
        if e is not None:
            with contextlib.suppress(Exception):
                e.daemon_log = self.journal_text()
        self.stop()


class User(Manager):
    """A user's service manager, as a login starts it, with a journal."""

    STOP_SIGNAL = signal.SIGTERM

    def start(self):
        for name in ("home", "journal"):
            os.mkdir(os.path.join(self.directory, name))
        os.chown(self.home(), UID, UID)
        self.launch(["unshare", "--mount", "--cgroup", "sh", os.path.join(HERE, "inside-user.sh"), self.directory,
            str(UID), self.stage, prefix()])
        self.pid = self.process.pid
        self.wait_up(lambda: os.path.exists(self.runtime("systemd/private")))
        assert self.systemctl("is-system-running", "--wait") == "running"

    def home(self):
        return os.path.join(self.directory, "home")

    def runtime(self, path=""):
        """A path below the user's runtime directory, seen from outside."""
        return f"/proc/{self.pid}/root/run/user/{UID}/{path}"

    def inside(self, *command, environment=None, cwd=None):
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.home(), "USER": "mcptest",
            "LOGNAME": "mcptest", "SHELL": "/bin/sh", "XDG_RUNTIME_DIR": f"/run/user/{UID}", **(environment or {})}
        return ["nsenter", "-t", str(self.pid), "-m", "-C", "--wd=" + (cwd or self.home()),
            "env", "-i", *[f"{k}={v}" for k, v in variables.items() if v is not None],
            "setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", *command]

    def journal(self, unit="ipython-mcpd.service"):
        """What the journal has of a unit's own lines, as dicts."""
        subprocess.run(["nsenter", "-t", str(self.pid), "-m", "-C", "journalctl", "--sync"], check=True)
        text = self.run("journalctl", "--user", "-q", "-o", "json", "_SYSTEMD_USER_UNIT=" + unit)
        return [json.loads(line) for line in text.splitlines()]

    def journal_text(self):
        subprocess.run(["nsenter", "-t", str(self.pid), "-m", "-C", "journalctl", "--sync"], check=True)
        return self.run("journalctl", "--user", "-q", "-o", "short-monotonic")


class Machine(Manager):
    """A booted machine with a user who may linger."""

    STOP_SIGNAL = signal.SIGRTMIN + 3

    def start(self):
        self.launch(["unshare", "--mount", "--cgroup", "--pid", "--uts", "--ipc", "--net", "--fork", "--kill-child",
            "sh", os.path.join(HERE, "inside-machine.sh"), self.directory, str(UID), self.stage])
        self.wait_up(self.find_first_process)
        self.wait_up(lambda: self.root("systemctl", "is-system-running", "--wait", check=False) == "running")

    def find_first_process(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            children = f.read().split()
        if not children:
            return False
        self.pid = int(children[0])
        with open(f"/proc/{self.pid}/cmdline", "rb") as f:
            return b"systemd" in f.read().split(b"\0")[0]

    def home(self):
        return f"/proc/{self.pid}/root/home/mcptest"

    def runtime(self, path=""):
        return f"/proc/{self.pid}/root/run/user/{UID}/{path}"

    def root(self, *command, check=True):
        """Runs a command inside as root."""
        done = subprocess.run(["nsenter", "-t", str(self.pid), "-a", "-r", "-w", *command],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit(60))
        if check:
            assert done.returncode == 0, (command, done)
        return done.stdout.strip()

    def inside(self, *command, environment=None, cwd=None):
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/mcptest",
            "XDG_RUNTIME_DIR": f"/run/user/{UID}", **(environment or {})}
        return ["nsenter", "-t", str(self.pid), "-a", "-r", "-w", "env", "-i",
            *[f"{k}={v}" for k, v in variables.items() if v is not None],
            "setpriv", "--reuid", str(UID), "--regid", str(UID), "--init-groups", *command]

    def journal_text(self):
        return self.root("journalctl", "-q", "-b", "-n", "200", check=False)

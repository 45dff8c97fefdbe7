#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""More than one machine: an agent that reaches a namespace through ssh, and a namespace that reaches a
cluster. Both really, on loopback."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paths  # noqa: E402
import tap  # noqa: E402
from harness import Client, Daemon, Place, Stream, cache_directory, wait_for  # noqa: E402


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Host:
    """An ssh server on loopback that stands for another machine: its sessions see the place's directory."""

    def __init__(self, place):
        sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        if not sshd or not shutil.which("ssh"):
            raise tap.Skip("openssh is not installed")
        self.place = place
        self.port = free_port()
        self.directory = os.path.join(place.root, "ssh")
        os.mkdir(self.directory, 0o700)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.file(name)], check=True)
        shutil.copy(self.file("user.pub"), self.file("authorized_keys"))
        with open(self.file("host.pub"), encoding="utf-8") as f:
            key = " ".join(f.read().split()[:2])
        with open(self.file("known_hosts"), "w", encoding="utf-8") as f:
            f.write(f"[127.0.0.1]:{self.port} {key}\n")
        with open(self.file("sshd_config"), "w", encoding="utf-8") as f:
            f.write(f"ListenAddress 127.0.0.1:{self.port}\nHostKey {self.file('host')}\nPidFile none\n"
                f"AuthorizedKeysFile {self.file('authorized_keys')}\nStrictModes no\nUsePAM no\n"
                "PermitRootLogin prohibit-password\nPasswordAuthentication no\n"
                f"SetEnv IPYTHON_MCP_RUNTIME_DIR={place.runtime} TMPDIR={place.tmp} PATH={paths.BUILDDIR}:/usr/bin:/bin\n")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        self.log = open(self.file("log"), "wb")
        self.process = subprocess.Popen([sshd, "-D", "-e", "-f", self.file("sshd_config")],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(self.is_up, "the ssh server")

    def is_up(self):
        if self.process.poll() is not None:
            with open(self.file("log"), encoding="utf-8", errors="replace") as f:
                raise AssertionError("sshd ended: " + f.read())
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def file(self, name):
        return os.path.join(self.directory, name)

    def agent(self, *arguments):
        """What an agent's configuration for a remote namespace runs."""
        user = pwd.getpwuid(os.geteuid()).pw_name
        return Client(Stream.to_program(["ssh", "-T", "-F", "none", "-o", "BatchMode=yes", "-p", str(self.port),
            "-o", "UserKnownHostsFile=" + self.file("known_hosts"), "-i", self.file("user"), f"{user}@127.0.0.1",
            "ipython-mcp-connect", *arguments], {"PATH": "/usr/bin:/bin", "HOME": self.place.home}, self.place.root))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def test_ssh():
    """with ssh as the command the namespace is on the other machine, and outlives the connection"""
    with Place() as place, Host(place) as host:
        with host.agent() as client:
            client.open()
            assert client.execute("kept = 41\nimport os\n'SSH_CONNECTION' in os.environ")["result"] is True
            assert client.execute("kept + 1")["result"] == 42
        assert len(place.daemons()) == 1
        with host.agent() as client:
            client.open("2026-07-28")
            assert client.execute("kept")["result"] == 41


def test_ssh_breaks():
    """a connection that breaks in the middle leaves the running code alone"""
    with Place() as place, Host(place) as host:
        client = host.agent()
        client.open()
        opened, done = os.path.join(place.root, "open"), os.path.join(place.root, "done")
        client.start_call("execute", {"code": f"import os, time\nopen({done!r} + '.started', 'w').close()\n"
            f"while not os.path.exists({opened!r}):\n    time.sleep(0.01)\nresult = 7\nopen({done!r}, 'w').close()"})
        wait_for(lambda: os.path.exists(done + ".started"), "the call")
        os.kill(client.stream.process.pid, signal.SIGKILL)
        client.close()
        open(opened, "w").close()
        wait_for(lambda: os.path.exists(done), "the end of the call")
        with host.agent() as again:
            again.open()
            assert again.execute("result")["result"] == 7


CLUSTER = """
import atexit
from dask.distributed import Client, LocalCluster

cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1")
client = Client(cluster)
atexit.register(cluster.close)
atexit.register(client.close)
"""


def test_dask():
    """a preload holds a cluster's client, and work runs on its workers"""
    python = os.path.join(cache_directory(), "dask", "bin", "python")
    if not os.path.exists(python):
        raise tap.Skip("the environment dask is not set up")
    with Place() as place:
        library = os.path.join(place.root, "library")
        os.mkdir(library)
        with open(os.path.join(library, "compute.py"), "w", encoding="utf-8") as f:
            f.write(CLUSTER)
        with Daemon(place=place, environment={"IPYTHON_MCP_PYTHON": python, "IPYTHON_MCP_LIBRARY_PATHS": library,
                "IPYTHON_MCP_PRELOAD_MODULES": "compute",
                "IPYTHON_MCP_MODULE_ALIASES": '{"compute": "compute"}'}) as daemon:
            with daemon.connect() as client:
                client.open()
                answer = client.execute("import os\nfutures = [compute.client.submit(os.getpid, pure=False, "
                    "workers=[w]) for w in compute.client.scheduler_info()['workers']]\n"
                    "sorted(set(compute.client.gather(futures)))", seconds=60)
                assert answer["ok"], answer
                pids = answer["result"]
                assert len(pids) == 2 and daemon.pid not in pids, pids
                answer = client.execute("def square(x):\n    return x * x\n"
                    "sum(compute.client.gather(compute.client.map(square, range(100))))", seconds=60)
                assert answer["result"] == sum(x * x for x in range(100)), answer
                answer = client.execute("def wrong(x):\n    raise ValueError(x)\n"
                    "compute.client.submit(wrong, 5).result()", seconds=60)
                assert answer["error"]["error_type"] == "ValueError", answer
                # Another session finds the same cluster and the results that stayed on its workers.
                client.execute("kept = compute.client.submit(square, 12)")
            with daemon.connect() as other:
                other.open()
                assert other.execute("kept.result()", seconds=60)["result"] == 144
            daemon.process.terminate()
            assert daemon.process.wait(60) == 0
        for pid in pids:
            wait_for(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), "the workers' end")


if __name__ == "__main__":
    tap.main()

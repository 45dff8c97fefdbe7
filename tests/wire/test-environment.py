#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The startup environment with the real uv: made, reused, refused, raced for, and nothing left behind."""

import fcntl
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import harness  # noqa: E402
import tap  # noqa: E402
from paths import ADMIN, DAEMON  # noqa: E402

METADATA = ".ipython-mcp-environment.json"
PREFIX = "IPYTHON_MCP_"


def uv():
    path = os.path.join(harness.cache_directory(), "tools", "bin", "uv")
    path = path if os.access(path, os.X_OK) else shutil.which("uv")
    if not path:
        raise AssertionError("uv is missing: run tests/setup")
    return path


def make_wheel(directory, name, version, code="", **files):
    """A wheel of one module that says its version."""
    path = os.path.join(directory, f"{name}-{version}-py3-none-any.whl")
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": f"__version__ = {version!r}\n{code}", **files,
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return path


class Lab(harness.Place):
    """A place with a workspace, a PATH that has uv and nothing else of its folder, and uv's own cache."""

    def __init__(self):
        super().__init__()
        self.workspace = os.path.join(self.root, "workspace")
        self.wheels = os.path.join(self.root, "wheels")
        self.bin = os.path.join(self.root, "bin")
        self.cache = os.path.join(self.root, "cache")
        for directory in (self.wheels, self.bin, self.cache):
            os.mkdir(directory)
        os.symlink(uv(), os.path.join(self.bin, "uv"))

    def settings(self, name="lab", requirements=(), variables=None, **more):
        settings = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "UV_CACHE_DIR": self.cache,
            "UV_OFFLINE": "1",
            PREFIX + "ENVIRONMENT_WORKSPACE": self.workspace,
            PREFIX + "ACTIVE_ENVIRONMENT": name,
            PREFIX + "ENVIRONMENT_REQUIREMENTS": json.dumps(list(requirements)),
            PREFIX + "ENVIRONMENT_VARIABLES": json.dumps(variables or {}),
        }
        settings.update({k if k in ("PATH", "UV_OFFLINE") else PREFIX + k: v for k, v in more.items()})
        return settings

    def start(self, **more):
        return harness.Daemon(place=self, environment=self.settings(**more))

    def wheel(self, name, version, code="", **files):
        """The requirement that a wheel made here satisfies."""
        return f"{name} @ file://{make_wheel(self.wheels, name, version, code, **files)}"

    def listing(self):
        return sorted(os.listdir(self.workspace)) if os.path.isdir(self.workspace) else None

    def metadata(self, name="lab"):
        with open(os.path.join(self.workspace, name, METADATA), encoding="utf-8") as f:
            return json.load(f)


def value(lab, code, **more):
    """What the code gives in a daemon of that lab."""
    with lab.start(**more) as daemon, daemon.connect() as client:
        client.open()
        answer = client.execute(code, seconds=90)
        assert answer["ok"], answer["error"]
        return answer["result"]


def failure(lab, **more):
    """The phase and message that a start failed with, and the daemon's log."""
    with lab.start(**more) as daemon, daemon.connect() as client:
        client.open()
        answer = client.execute("1", seconds=90)
        error = answer["error"]
        assert not answer["ok"] and error["code"] == "startup_failed", answer
        # Still there, still serving the protocol, and of the same opinion.
        assert len(client.request("tools/list")["result"]["tools"]) == 10
        assert client.execute("1")["error"]["message"] == error["message"]
        status = client.request("ipython-mcp/status")["result"]
        assert status["state"] == "failed" and status["phase"] in error["message"], (status, error)
        assert status["failure"] in error["message"], (status, error)
        return status["phase"], error["message"], daemon.log()


def files_with(text, *directories):
    """Files below these directories that hold the text."""
    found = []
    for directory in directories:
        for parent, _, names in os.walk(directory):
            for name in names:
                path = os.path.join(parent, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as f:
                        if text.encode() in f.read():
                            found.append(path)
    return found


def snapshot(directory):
    """Everything below a directory: type, size, time of change."""
    found = {}
    for parent, directories, names in os.walk(directory):
        for name in directories + names:
            st = os.lstat(os.path.join(parent, name))
            found[os.path.join(parent, name)] = (st.st_mode, st.st_size, st.st_mtime_ns, st.st_ino)
    return found


def test_new_environment():
    """A new environment: packages first on sys.path, .pth files honoured, variables, library paths, aliases"""
    with Lab() as lab:
        library = os.path.join(lab.root, "library")
        os.mkdir(library)
        with open(os.path.join(library, "libmod.py"), "w") as f:
            f.write("import os, alpha\nseen = os.environ['MCP_TOKEN']\n")
        extra = os.path.join(lab.root, "extra")
        os.mkdir(extra)
        requirement = lab.wheel("alpha", "1.5", **{"alpha_more.pth": extra + "\n"})
        result = value(lab, "import sys, os\n"
                       "[alpha_alias.__version__, libmod.seen, sys.path, os.environ['MCP_TOKEN'], 'beta' in dir()]\n",
                       requirements=[requirement, requirement], variables={"MCP_TOKEN": "tøken"},
                       LIBRARY_PATHS=library, PRELOAD_MODULES="alpha, libmod",
                       MODULE_ALIASES='{"alpha":"alpha_alias","libmod":"libmod"}')
        version, seen, path, token, has_beta = result
        assert (version, seen, token, has_beta) == ("1.5", "tøken", "tøken", False), result
        packages = os.path.join(lab.workspace, "lab", "lib", f"python{lab.metadata()['python']}", "site-packages")
        assert path[:3] == [packages, extra, library], path
        assert lab.listing() == ["lab"]

        metadata = lab.metadata()
        text = json.dumps([requirement], separators=(",", ":"))
        assert metadata == {"format": 1, "python": metadata["python"], "requirements": [requirement],
                            "requirements_fingerprint": hashlib.sha256(text.encode()).hexdigest(),
                            "system_site_packages": False}, metadata


def test_without_requirements():
    """An environment without requirements is a plain venv"""
    with Lab() as lab:
        assert value(lab, "1") == 1
        assert lab.metadata()["requirements"] == []
        assert os.path.exists(os.path.join(lab.workspace, "lab", "pyvenv.cfg"))


def test_reuse():
    """The same settings reuse it without uv and leave it as it is; other spellings of them too"""
    with Lab() as lab:
        one, two = lab.wheel("alpha", "1.0"), lab.wheel("beta", "2.0")
        assert value(lab, "import alpha; alpha.__version__", requirements=[one, two]) == "1.0"
        before = snapshot(lab.workspace)
        again = one.replace(" @ ", "@ ")
        assert value(lab, "import sys; sys.dont_write_bytecode = True; import beta; beta.__version__",
                     requirements=[again, two, one], PATH="/usr/bin:/bin") == "2.0"
        after = snapshot(lab.workspace)
        changed = [path for path in before | after if before.get(path) != after.get(path)
                   and "__pycache__" not in path and not path.endswith("site-packages")]
        assert not changed, changed


def test_scripts_work_in_place():
    """A script that a package installs runs under the environment's own name"""
    with Lab() as lab:
        requirement = lab.wheel("alpha", "1.0", code="def main(): print('from the script')\n",
                                **{"alpha-1.0.dist-info/entry_points.txt":
                                   "[console_scripts]\nalpha-say = alpha:main\n"})
        assert value(lab, "1", requirements=[requirement]) == 1
        script = os.path.join(lab.workspace, "lab", "bin", "alpha-say")
        done = subprocess.run([script], capture_output=True, text=True, check=True)
        assert done.stdout == "from the script\n", done


def test_conflicting_environments():
    """Two environments hold versions that exclude each other"""
    with Lab() as lab:
        for name, version in (("old", "1.0"), ("new", "2.0")):
            requirement = lab.wheel("alpha", version)
            assert value(lab, "import alpha; alpha.__version__", name=name, requirements=[requirement]) == version
        assert value(lab, "import alpha; alpha.__version__", name="old",
                     requirements=[lab.wheel("alpha", "1.0")]) == "1.0"
        assert lab.listing() == ["new", "old"]


def test_conflicting_requirements():
    """Requirements that exclude each other fail in phase dependency_install and leave nothing"""
    with Lab() as lab:
        lab.wheel("alpha", "1.0")
        phase, message, _ = failure(lab, requirements=[lab.wheel("alpha", "1.0"), "alpha==2.0"])
        assert phase == "dependency_install" and "alpha" in message, (phase, message)
        assert lab.listing() is None, "the workspace that was made for it has to go as well"


def test_other_requirements_are_refused():
    """An environment made for other requirements is an error and stays as it was"""
    with Lab() as lab:
        one, two = lab.wheel("alpha", "1.0"), lab.wheel("beta", "1.0")
        assert value(lab, "1", requirements=[one]) == 1
        before = snapshot(lab.workspace)
        for requirements in ([two], [one, two], []):
            phase, message, _ = failure(lab, requirements=requirements)
            assert phase == "reuse_validation" and "other requirements" in message, (phase, message)
        assert snapshot(lab.workspace) == before
        assert value(lab, "1", requirements=[one]) == 1


def test_other_metadata_is_refused():
    """Metadata that was edited, or is missing, is an error; so is a directory that is not ours"""
    with Lab() as lab:
        assert value(lab, "1") == 1
        path = os.path.join(lab.workspace, "lab", METADATA)
        whole = lab.metadata()
        for member, content in (("format", 2), ("python", "3.1"), ("system_site_packages", True),
                                ("requirements", ["alpha"]), ("requirements_fingerprint", "0" * 64), ("more", 1)):
            with open(path, "w") as f:
                json.dump({**whole, member: content}, f)
            phase, message, _ = failure(lab)
            assert phase == "reuse_validation" and "lab" in message, (member, phase, message)
        with open(path, "w") as f:
            f.write("{")
        assert failure(lab)[0] == "reuse_validation"
        os.unlink(path)
        assert failure(lab)[0] == "reuse_validation"
        os.mkdir(os.path.join(lab.workspace, "mine"))
        assert failure(lab, name="mine")[0] == "reuse_validation"
        with open(os.path.join(lab.workspace, "file"), "w"):
            pass
        assert failure(lab, name="file")[0] == "reuse_validation"


def test_symlinks_are_refused():
    """A link as the environment, in the workspace's path, as its metadata, or on the way to a library"""
    with Lab() as lab:
        assert value(lab, "1") == 1
        os.symlink("lab", os.path.join(lab.workspace, "link"))
        phase, message, _ = failure(lab, name="link")
        assert phase == "path_validation" and "symbolic link" in message, (phase, message)

        way = os.path.join(lab.root, "way")
        os.symlink(lab.workspace, way)
        for workspace in (way, os.path.join(way, "deeper")):
            phase, message, _ = failure(lab, ENVIRONMENT_WORKSPACE=workspace)
            assert phase == "path_validation" and way + " is a symbolic link" in message, (phase, message)
        assert not os.path.exists(os.path.join(lab.workspace, "deeper"))

        metadata = os.path.join(lab.workspace, "lab", METADATA)
        os.rename(metadata, metadata + ".real")
        os.symlink(metadata + ".real", metadata)
        assert failure(lab)[0] == "reuse_validation"
        os.rename(metadata + ".real", metadata)

        phase, message, _ = failure(lab, LIBRARY_PATHS=way)
        assert phase == "library_paths" and "symbolic link" in message, (phase, message)
        phase, message, _ = failure(lab, LIBRARY_PATHS=os.path.join(lab.root, "nowhere"))
        assert phase == "library_paths" and "does not exist" in message, (phase, message)


def test_validation_comes_first():
    """A library path that is not there is found before uv is run"""
    with Lab() as lab:
        phase, _, _ = failure(lab, LIBRARY_PATHS=os.path.join(lab.root, "nowhere"))
        assert phase == "library_paths" and lab.listing() is None


def test_no_uv():
    """uv is looked for when an environment is to be made, and only then"""
    with Lab() as lab:
        phase, message, _ = failure(lab, PATH="/usr/bin:/bin")
        assert phase == "provisioning" and "uv" in message and "PATH" in message, (phase, message)
        assert lab.listing() is None
        with harness.Daemon(place=lab, environment={"PATH": "/usr/bin:/bin"}) as daemon, daemon.connect() as client:
            client.open()
            assert client.execute("1")["result"] == 1


def test_missing_source():
    """A source that does not exist: the phase, what uv said, and nothing left"""
    with Lab() as lab:
        gone = f"alpha @ file://{lab.wheels}/alpha-1.0-py3-none-any.whl"
        phase, message, log = failure(lab, requirements=[gone])
        assert phase == "dependency_install" and "alpha-1.0" in message, (phase, message)
        assert lab.listing() is None
        # The next start, with what was missing there, works.
        assert value(lab, "1", requirements=[lab.wheel("alpha", "1.0")]) == 1


class Index(http.server.ThreadingHTTPServer):
    """Serves wheels to whoever knows the password, and hangs when asked for /hang."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, directory, authorization):
        self.is_over = threading.Event()

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args, **more):
                super().__init__(*args, directory=directory, **more)

            def do_GET(self):
                if self.path.startswith("/hang"):
                    self.server.is_over.wait(60)
                elif self.headers.get("Authorization") != authorization:
                    self.send_error(401)
                else:
                    super().do_GET()

            def do_HEAD(self):
                if self.headers.get("Authorization") == authorization:
                    super().do_HEAD()
                else:
                    self.send_error(401)

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *exc):
        self.is_over.set()
        self.shutdown()
        super().__exit__(*exc)


PASSWORD = "s3cr3t-p%40ss"
AUTHORIZATION = "Basic dXNlcjpzM2NyM3QtcEBzcw=="  # user:s3cr3t-p@ss


def secrets():
    return ["s3cr3t", "p%40ss", "p@ss"]


def test_url_with_password():
    """A password in a URL serves the installation and is never written, shown or logged"""
    with Lab() as lab:
        make_wheel(lab.wheels, "alpha", "1.0")
        with Index(lab.wheels, AUTHORIZATION) as index:
            url = f"http://user:{PASSWORD}@127.0.0.1:{index.server_port}"
            with lab.start(requirements=[f"alpha @ {url}/alpha-1.0-py3-none-any.whl"], UV_OFFLINE=None) as daemon, \
                    daemon.connect() as client:
                client.open()
                assert client.execute("import alpha; alpha.__version__", seconds=90)["result"] == "1.0"
                log = daemon.log()
            assert lab.metadata()["requirements"] == \
                [f"alpha @ ***127.0.0.1:{index.server_port}/alpha-1.0-py3-none-any.whl"]
            for secret in secrets():
                assert secret not in log
                assert not files_with(secret, lab.workspace, lab.cache, lab.home, lab.runtime, lab.tmp)

            # The same with another password is the same environment.
            assert value(lab, "1", UV_OFFLINE=None, requirements=[
                f"alpha @ http://user:other@127.0.0.1:{index.server_port}/alpha-1.0-py3-none-any.whl"]) == 1

            # Refused, not there, another package: whatever uv says of it.
            make_wheel(lab.wheels, "gamma", "1.0")
            for address in (f"http://user:{PASSWORD}x@127.0.0.1:{index.server_port}/gamma-1.0-py3-none-any.whl",
                            f"{url}/alpha-9.0-py3-none-any.whl", f"{url}/beta-1.0-py3-none-any.whl",
                            f"http://user:{PASSWORD}/x@127.0.0.1/alpha-1.0-py3-none-any.whl"):
                name = "gamma" if "gamma" in address else "alpha"
                phase, message, log = failure(lab, name="bad", requirements=[f"{name} @ {address}"], UV_OFFLINE=None)
                assert phase == "dependency_install", (phase, message)
                for secret in secrets():
                    assert secret not in message and secret not in log, message
                    assert not files_with(secret, lab.workspace, lab.cache, lab.home, lab.runtime, lab.tmp)
            assert lab.listing() == ["lab"]


def test_variables_are_redacted():
    """A variable's value is in no message, log or file, wherever it occurs"""
    with Lab() as lab:
        secret = "hunter2-wheels"
        os.mkdir(os.path.join(lab.root, secret))
        missing = f"alpha @ file://{lab.root}/{secret}/alpha-1.0-py3-none-any.whl"
        phase, message, log = failure(lab, requirements=[missing], variables={"TOKEN": secret})
        assert phase == "dependency_install" and "***" in message, (phase, message)
        assert secret not in message and secret not in log, message

        module = os.path.join(lab.root, "library")
        os.mkdir(module)
        with open(os.path.join(module, "failing.py"), "w") as f:
            f.write("import os\nraise RuntimeError('it is ' + os.environ['TOKEN'])\n")
        phase, message, log = failure(lab, variables={"TOKEN": "val-ue42"}, LIBRARY_PATHS=module,
                                      PRELOAD_MODULES="failing")
        assert phase == "preload" and "RuntimeError: it is ***" in message, (phase, message)
        assert "val-ue42" not in message and "val-ue42" not in log
        assert not files_with("val-ue42", lab.workspace, lab.runtime, lab.tmp)


def test_uv_does_not_see_our_settings():
    """Neither values of variables nor requirements are in uv's environment or arguments"""
    with Lab() as lab:
        seen = os.path.join(lab.root, "seen")
        os.unlink(os.path.join(lab.bin, "uv"))
        with open(os.path.join(lab.bin, "uv"), "w") as f:
            f.write(f"#!/bin/sh\ntr '\\0' '\\n' </proc/$$/cmdline >>{seen}\nenv >>{seen}\nexec {uv()} \"$@\"\n")
        os.chmod(os.path.join(lab.bin, "uv"), 0o755)
        requirement = lab.wheel("alpha", "1.0")
        assert value(lab, "1", requirements=[requirement], variables={"TOKEN": "val-ue42"}) == 1
        with open(seen) as f:
            text = f.read()
        assert "UV_NO_CONFIG=1" in text and "--no-project" in text, text
        assert "val-ue42" not in text and "alpha" not in text and "IPYTHON_MCP_" not in text, text


def test_timeout():
    """A step that takes too long is ended with all that it started, and nothing is left"""
    with Lab() as lab:
        mark = os.path.join(lab.root, "started")
        os.unlink(os.path.join(lab.bin, "uv"))
        with open(os.path.join(lab.bin, "uv"), "w") as f:
            f.write(f"#!/bin/sh\n[ $1 != pip ] || {{ sleep 7654 & touch {mark}; echo waiting; trap '' TERM; sleep 7653; }}\n"
                    f"exec {uv()} \"$@\"\n")
        os.chmod(os.path.join(lab.bin, "uv"), 0o755)
        phase, message, _ = failure(lab, requirements=[lab.wheel("alpha", "1.0")],
                                    ENVIRONMENT_SETUP_TIMEOUT_SECONDS="1.5")
        assert phase == "dependency_install", (phase, message)
        assert "1.5 seconds" in message and "ENVIRONMENT_SETUP_TIMEOUT_SECONDS" in message and "waiting" in message
        assert os.path.exists(mark)
        assert lab.listing() is None
        for seconds in ("7653", "7654"):
            assert not running(["sleep", seconds])


def running(command):
    """True when a process runs under that command line."""
    wanted = b"\0".join(word.encode() for word in command) + b"\0"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read() == wanted:
                    return True
        except OSError:
            pass
    return False


def test_slow_source():
    """M02: while the environment is made, the protocol is served and a call waits, told the phase"""
    with Lab() as lab:
        with Index(lab.wheels, None) as index:
            requirement = f"alpha @ http://127.0.0.1:{index.server_port}/hang/alpha-1.0-py3-none-any.whl"
            with lab.start(requirements=[requirement], UV_OFFLINE=None) as daemon, daemon.connect() as client:
                client.open()
                assert len(client.request("tools/list")["result"]["tools"]) == 10
                call = client.start_call("execute", {"code": "1", "progress_interval": 0.2}, token="p")
                message = client.receive()
                while "dependency_install" not in message["params"].get("message", ""):
                    message = client.receive()
                # Ended in the middle: the daemon goes at once, and so does what it began.
                began = time.monotonic()
                daemon.process.terminate()
                answer = client.answer_of(client.response(call)["result"])
                assert answer["error"]["code"] in ("startup_failed", "namespace_lost", "busy"), answer
                assert daemon.process.wait(harness.limit()) == 0, daemon.log()
                assert time.monotonic() - began < harness.limit(20)
        assert lab.listing() is None


def test_race():
    """Daemons that race for one name all end with the winner's environment, and no temporary one is left"""
    with Lab() as lab:
        requirement = lab.wheel("alpha", "1.0")
        places = [Lab() for _ in range(3)]
        daemons = []
        try:
            for place in places:
                place.workspace = lab.workspace
                daemons.append(harness.Daemon(place=place, environment=place.settings(requirements=[requirement])))
            for daemon in daemons:
                with daemon.connect() as client:
                    client.open()
                    result = client.execute("import alpha; [alpha.__version__, alpha.__file__]", seconds=90)["result"]
                    assert result[0] == "1.0" and result[1].startswith(lab.workspace + "/lab/lib/"), result
            assert lab.listing() == ["lab"]
        finally:
            for daemon in daemons:
                daemon.stop()
            for place in places:
                place.remove()


def kill_uv(directory):
    """Ends the uv that works in that directory; true when nobody holds its lock any more."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if directory.encode() in f.read().split(b"\0"):
                    os.kill(int(pid), 9)
        except OSError:
            pass
    fd = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def test_killed_daemon_is_swept():
    """What a killed daemon and its uv left is removed by the next one; what a living one makes is not"""
    with Lab() as lab:
        with Index(lab.wheels, None) as index:
            requirement = f"alpha @ http://127.0.0.1:{index.server_port}/hang/alpha-1.0-py3-none-any.whl"
            killed = lab.start(requirements=[requirement], UV_OFFLINE=None)
            harness.wait_for(lab.listing, "a temporary directory")
            killed.process.kill()
            killed.process.wait()
            left = harness.wait_for(lab.listing, "the directory that was left")
            assert len(left) == 1 and left[0].startswith(".lab."), left
            harness.wait_for(lambda: kill_uv(os.path.join(lab.workspace, left[0])), "the end of uv")

            other = Lab()
            other.workspace = lab.workspace
            living = harness.Daemon(place=other, environment=other.settings(requirements=[requirement], UV_OFFLINE=None))
            try:
                harness.wait_for(lambda: lab.listing() != left and len(lab.listing()) == 1, "the sweep")
                making = lab.listing()
                assert value(lab, "1") == 1
                assert lab.listing() == sorted(making + ["lab"]), (making, lab.listing())
            finally:
                living.stop()
                other.remove()
        assert lab.listing() == ["lab"]


def test_read_only_directories_are_removed():
    """Rollback removes what a package made read-only"""
    with Lab() as lab:
        os.unlink(os.path.join(lab.bin, "uv"))
        with open(os.path.join(lab.bin, "uv"), "w") as f:
            f.write(f"#!/bin/sh\n[ $1 != pip ] || {{ mkdir -p $4/a/b; touch $4/a/b/c; ln -s / $4/a/b/root; "
                    f"chmod 500 $4/a/b $4/a; exit 3; }}\nexec {uv()} \"$@\"\n")
        os.chmod(os.path.join(lab.bin, "uv"), 0o755)
        phase, message, _ = failure(lab, requirements=[lab.wheel("alpha", "1.0")])
        assert phase == "dependency_install" and "status 3" in message, (phase, message)
        assert lab.listing() is None


def test_diagnostic_is_bounded():
    """A long diagnostic is cut to MAX_TEXT_CHARS, and no part of a secret stands at its end"""
    with Lab() as lab:
        os.unlink(os.path.join(lab.bin, "uv"))
        with open(os.path.join(lab.bin, "uv"), "w") as f:
            f.write("#!/bin/sh\nprintf 'ä%.0s' $(seq 300); for i in $(seq 2000); do printf 'hunter2'; done; exit 1\n")
        os.chmod(os.path.join(lab.bin, "uv"), 0o755)
        phase, message, _ = failure(lab, variables={"TOKEN": "hunter2"}, MAX_TEXT_CHARS="400")
        assert phase == "provisioning", (phase, message)
        assert message.endswith("…") and "hunt" not in message, message


def test_preload_failures():
    """A preload that is missing, raises, or exits: phase preload, with its name"""
    with Lab() as lab:
        library = os.path.join(lab.root, "library")
        os.mkdir(library)
        for name, code, said in (("raising", "1/0", "ZeroDivisionError"), ("leaving", "import sys; sys.exit(4)", "SystemExit"),
                                 ("broken", "def f(:", "SyntaxError")):
            with open(os.path.join(library, name + ".py"), "w") as f:
                f.write(code + "\n")
            phase, message, _ = failure(lab, LIBRARY_PATHS=library, PRELOAD_MODULES=name)
            assert phase == "preload" and name in message and said in message, (phase, message)
        phase, message, _ = failure(lab, PRELOAD_MODULES="no.such.module")
        assert phase == "preload" and "no.such.module" in message, (phase, message)


def test_variables_reach_children():
    """Variables are in os.environ, in the C library's environment, and in children"""
    with Lab() as lab:
        result = value(lab, "import os, subprocess, ctypes\n"
                       "get = ctypes.CDLL(None).getenv; get.restype = ctypes.c_char_p\n"
                       "[os.environ['MCP_A'], get(b'MCP_A').decode(), "
                       "subprocess.run(['sh', '-c', 'echo $MCP_A'], capture_output=True, text=True).stdout]",
                       variables={"MCP_A": "1 é\n2"})
        assert result == ["1 é\n2", "1 é\n2", "1 é 2\n"], result


def test_workspace_outside_of_the_project():
    """A workspace in the tree of the directory that the starting client told is refused; elsewhere it is not"""
    with Lab() as lab:
        project = os.path.join(lab.root, "project")
        os.makedirs(os.path.join(project, "src"))
        os.mkdir(os.path.join(project, ".git"))
        settings = lab.settings(ENVIRONMENT_WORKSPACE=os.path.join(project, "envs"))
        for cwd in (project, os.path.join(project, "src")):
            done = subprocess.run([ADMIN, "exec", "1"], env=lab.environment(**settings), cwd=cwd, capture_output=True,
                                  text=True)
            assert done.returncode == 1 and "[startup_failed]" in done.stderr, done
            assert "phase configuration" in done.stderr and f"it lies in the project {project}" in done.stderr, done
            subprocess.run([ADMIN, "stop"], env=lab.environment(), check=True, stdout=subprocess.DEVNULL)
        assert not os.path.exists(os.path.join(project, "envs"))
        # The home directory is nobody's project, and who starts a daemon by hand has told nothing.
        done = subprocess.run([ADMIN, "exec", "1"], env=lab.environment(**settings), cwd=lab.home, capture_output=True,
                              text=True)
        assert done.stdout == "1\n", done


def test_check():
    """--check finds a workspace's link and a missing library path, starts nothing, creates nothing"""
    with Lab() as lab:
        def check(**more):
            done = subprocess.run([DAEMON, "--check"], env=lab.environment(**lab.settings(**more)), cwd=lab.home,
                                  capture_output=True, text=True)
            assert done.stdout == "", done
            return done.returncode, done.stderr.splitlines()

        assert check() == (0, [])
        assert lab.listing() is None
        os.symlink(lab.root, os.path.join(lab.home, "way"))
        status, lines = check(ENVIRONMENT_WORKSPACE=os.path.join(lab.home, "way", "w"),
                              LIBRARY_PATHS=os.path.join(lab.root, "nowhere"), MAX_RESULTS="0")
        assert status == 78 and len(lines) == 3, (status, lines)
        for line, name in zip(sorted(lines), ("ENVIRONMENT_WORKSPACE", "LIBRARY_PATHS", "MAX_RESULTS")):
            assert PREFIX + name in line, line


if __name__ == "__main__":
    tap.main()

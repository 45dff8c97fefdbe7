# SPDX-License-Identifier: MIT
"""A real daemon in a private runtime directory, and clients that talk to it.

    with Daemon() as daemon, daemon.connect() as client:
        client.open("2025-11-25")
        assert client.execute("1+1")["result"] == 2

Every message that arrives is validated against its revision's schema (schema.py). Waiting is always for
an event, with a limit that is patience and not an expectation. What the daemon logged is kept and shown
only when a test fails.
"""

import contextlib
import glob
import itertools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import paths
import schema

LIMIT = 30.0

sys.set_int_max_str_digits(0)  # the daemon's integers are longer than what Python reads by default


def limit(seconds=None):
    return (LIMIT if seconds is None else seconds) * paths.PATIENCE


class Timeout(AssertionError):
    """What was waited for did not come."""


class Closed(AssertionError):
    """The other side closed the connection."""


def wait_for(condition, what, seconds=None):
    """Polls until condition() is true and returns its value."""
    deadline = time.monotonic() + limit(seconds)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Timeout(f"{what} did not happen within {limit(seconds):g} s")
        time.sleep(0.01)


def clean_environment(home, **more):
    """What a frugal client passes on, and nothing of ours."""
    environment = {
        "HOME": home,
        "PATH": os.environ.get("MCP_TEST_PATH", "/usr/local/bin:/usr/bin:/bin"),
        "LANG": "C.UTF-8",
    }
    if os.environ.get("MCP_PYTHON"):
        environment["IPYTHON_MCP_PYTHON"] = os.environ["MCP_PYTHON"]
    environment.update(more)
    return {k: v for k, v in environment.items() if v is not None}


class Place:
    """A scratch folder with a home and a private runtime directory."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="mcp-test-")
        self.home = os.path.join(self.root, "home")
        self.runtime = os.path.join(self.root, "run")
        self.tmp = os.path.join(self.root, "tmp")
        for directory in (self.home, self.runtime, self.tmp):
            os.mkdir(directory, 0o700)

    def socket(self, name="default"):
        return os.path.join(self.runtime, name + ".sock")

    def environment(self, **more):
        # The daemon's standard error is user code's, so sanitizers complain to files. What Python leaves
        # at its end is no leak of ours, and there is so much of it that looking through it takes minutes.
        log = f"log_path={self.root}/sanitizer"
        sanitizers = {
            "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:{log}",
            "UBSAN_OPTIONS": f"print_stacktrace=1:{log}",
            "TSAN_OPTIONS": log,
        }
        return clean_environment(self.home, **{"IPYTHON_MCP_RUNTIME_DIR": self.runtime, "TMPDIR": self.tmp,
            **sanitizers, **more})

    def complaints(self):
        """What sanitizers had to say, in any process of this place."""
        text = ""
        for path in glob.glob(os.path.join(self.root, "sanitizer*")):
            with open(path, errors="replace") as f:
                said = f.read()
            if "ERROR:" in said or "runtime error:" in said:
                text += said  # else a warning, as of memory that a test asked too much of
        return text

    def daemons(self):
        """Process ids of the daemons whose runtime directory this is, their forked children left out."""
        mark = f"IPYTHON_MCP_RUNTIME_DIR={self.runtime}".encode()
        parents = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    program = os.path.basename(f.read().split(b"\0")[0])
                if program not in (b"ipython-mcpd", b"lt-ipython-mcpd"):
                    continue
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if mark not in f.read().split(b"\0") or os.stat(f"/proc/{pid}").st_uid != os.getuid():
                        continue
                with open(f"/proc/{pid}/stat") as f:
                    parents[int(pid)] = int(f.read().rsplit(")", 1)[1].split()[1])
        return sorted(pid for pid, parent in parents.items() if parent not in parents)

    def remove(self):
        """Ends what is left of this place's daemons and removes it."""
        for pid in self.daemons():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class Daemon:
    """A daemon that this process started, and its place."""

    def __init__(self, *arguments, environment=None, place=None, cwd=None, wait=True):
        self.own_place = place is None
        self.place = place or Place()
        self.log_path = os.path.join(self.place.root, f"daemon-{time.monotonic_ns()}.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [paths.DAEMON, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=cwd or self.place.home, start_new_session=True,
                env=self.place.environment(**(environment or {})))
        self.pid = self.process.pid
        self.clients = []
        if wait:
            try:
                self.wait_listening()
            except BaseException as e:
                e.daemon_log = self.log()
                self.stop()
                raise

    def wait_listening(self):
        def listening():
            if self.process.poll() is not None:
                raise AssertionError(f"the daemon ended at once, status {self.process.returncode}:\n{self.log()}")
            with socket.socket(socket.AF_UNIX) as s:
                try:
                    s.connect(self.place.socket())
                except OSError:
                    return False
                return True
        wait_for(listening, "the daemon's socket")

    def log(self):
        with open(self.log_path, "r", errors="replace") as f:
            return f.read() + self.place.complaints()

    def status(self):
        """What `ipython-mcp status` asks for."""
        with self.connect() as client:
            return client.request("ipython-mcp/status")["result"]

    def wait_ready(self):
        wait_for(lambda: self.status()["state"] != "starting", "the shell's start", 60)

    def is_alive(self):
        return self.process.poll() is None

    def connect(self, **options):
        return Client(Stream.to_socket(self.place.socket()), daemon=self, **options)

    def shim(self, *arguments, environment=None, **options):
        return Client(Stream.to_program([paths.CONNECT, *arguments],
            self.place.environment(**(environment or {})), self.place.home), daemon=self, **options)

    def stop(self):
        """SIGTERM, then SIGKILL; the exit status."""
        for client in self.clients:
            client.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(limit(10))
            except subprocess.TimeoutExpired:
                self.process.kill()
        status = self.process.wait()
        if self.own_place:
            self.place.remove()
        return status

    def __enter__(self):
        return self

    def __exit__(self, kind, e, trace):
        if e is not None and not getattr(e, "daemon_log", ""):
            e.daemon_log = self.log()
        self.stop()


class Stream:
    """Lines to and from a socket, or a program's stdin and stdout."""

    def __init__(self, read_fd, write_fd, process=None, sock=None, stderr_path=None):
        self.read_fd, self.write_fd = read_fd, write_fd
        self.process, self.sock = process, sock
        self.stderr_path = stderr_path
        self.buffer = bytearray()
        self.scanned = 0
        self.at_end = False

    @classmethod
    def to_socket(cls, path):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        return cls(s.fileno(), s.fileno(), sock=s)

    @classmethod
    def to_program(cls, command, environment, cwd):
        fd, stderr_path = tempfile.mkstemp(prefix="stderr-", dir=cwd)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=fd,
            env=environment, cwd=cwd, bufsize=0)
        os.close(fd)
        return cls(process.stdout.fileno(), process.stdin.fileno(), process=process, stderr_path=stderr_path)

    def stderr(self):
        with open(self.stderr_path, errors="replace") as f:
            return f.read()

    def write(self, data):
        """Writes all of it, reading meanwhile so that neither side waits for the other."""
        view = memoryview(data)
        deadline = time.monotonic() + limit(60)
        os.set_blocking(self.write_fd, False)
        while view:
            readable, writable, _ = select.select([] if self.at_end else [self.read_fd], [self.write_fd], [],
                max(0.0, deadline - time.monotonic()))
            if readable:
                self._fill()
            if writable:
                try:
                    view = view[os.write(self.write_fd, view[:1 << 16]):]
                except BlockingIOError:
                    pass
                except (BrokenPipeError, ConnectionResetError) as e:
                    raise Closed("the other side no longer reads") from e
            if not readable and not writable:
                raise Timeout("the other side does not read")

    def _fill(self):
        try:
            data = os.read(self.read_fd, 1 << 16)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if data:
            self.buffer += data
        else:
            self.at_end = True

    def read_line(self, seconds=None):
        deadline = time.monotonic() + limit(seconds)
        while True:
            end = self.buffer.find(b"\n", self.scanned)
            if end >= 0:
                line = bytes(self.buffer[:end])
                del self.buffer[:end + 1]
                self.scanned = 0
                return line
            self.scanned = len(self.buffer)
            if self.at_end:
                if self.buffer:
                    raise AssertionError(f"the stream ended inside a line: {bytes(self.buffer[:200])!r}")
                raise Closed("the connection is closed")
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([self.read_fd], [], [], remaining)[0]:
                raise Timeout(f"no line came within {limit(seconds):g} s")
            self._fill()

    def half_close(self):
        if self.sock:
            self.sock.shutdown(socket.SHUT_WR)
        else:
            self.process.stdin.close()

    def close(self):
        if self.sock:
            self.sock.close()
        elif self.process:
            for f in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(OSError):
                    f.close()
            try:
                self.process.wait(limit(10))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def _unique(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise schema.Violation(f"an object holds a name twice: {names}")
    return dict(pairs)


def _no_constant(text):
    raise schema.Violation(f"{text} is no JSON")


def parse(line):
    """Strict JSON of one line from the daemon."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as e:
        raise schema.Violation(f"a line is not UTF-8: {e}") from None
    for bad in "\u0085\u2028\u2029":
        if bad in text:
            raise schema.Violation(f"U+{ord(bad):04X} unescaped in a line")
    if len(line) > 8388608:
        raise schema.Violation(f"a line of {len(line)} bytes")
    message = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    if "\\ud" in text.lower():
        try:
            json.dumps(message, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise schema.Violation("an unpaired surrogate in a line") from None
    return message


# outputSchema of each tool by revision, as tools/list showed it.
_output_schemas = {}

META = schema.META


class Client:
    """One connection: sends lines, checks and returns what comes."""

    def __init__(self, stream, daemon=None):
        self.stream = stream
        self.daemon = daemon
        self.revision = None      # of the legacy handshake
        self.requested = None     # by an initialize whose answer may be under way
        self.modern = False       # requests carry the modern metadata
        self.profile = "full"
        self.pending = {}         # id -> (method, revision, params)
        self.cancelled = {}       # id -> the same; a response may have been under way
        self.tokens = {}          # progress token -> (id, revision), while in flight
        self.progress = {}        # progress token -> last value
        self.notes = []           # notifications that came while a response was waited for
        self.counter = itertools.count(1)
        self.transcript = []
        self.unsent = b""         # the beginning of a line whose end is still to be sent
        if daemon:
            daemon.clients.append(self)

    # Lines.

    def send_text(self, text):
        """Sends a line as it is; what it asks is remembered so that its answer can be checked."""
        self.send_bytes(text.encode("utf-8", "surrogateescape") + b"\n")

    def send_bytes(self, data):
        *lines, self.unsent = (self.unsent + data).split(b"\n")
        for line in filter(bytes.strip, lines):
            self._note(line)
            self.transcript.append("> " + line[:600].decode("utf-8", "replace"))
        self.stream.write(data)

    def send(self, message):
        self.send_text(json.dumps(message, ensure_ascii=False))

    def _note(self, line):
        try:
            message = json.loads(line.decode("utf-8").lstrip("\ufeff"), strict=False)
        except (ValueError, RecursionError):
            return
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, dict):
                self._note_message(part)

    def _note_message(self, message):
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta") if isinstance(params.get("_meta"), dict) else {}
        if method == "notifications/cancelled" and "id" not in message:
            key = self._key(params.get("requestId"))
            if key in self.pending:
                self.cancelled[key] = self.pending.pop(key)
                self.tokens = {t: v for t, v in self.tokens.items() if v[0] != key}
            return
        if not isinstance(method, str) or "id" not in message:
            return
        key = self._key(message["id"])
        if key in self.pending:
            return  # the second of two with one id is refused; the first goes on
        revision = self.revision or self.requested
        if META + "protocolVersion" in meta and not (
                method == "initialize" and meta[META + "protocolVersion"] != schema.MODERN):
            revision = schema.MODERN
        elif method in ("server/discover", "subscriptions/listen", "tasks/update"):
            revision = schema.MODERN
        elif method == "initialize":
            version = params.get("protocolVersion")
            revision = version if version in schema.LEGACY else "2025-11-25"
            self.requested = self.requested or revision
        self.pending[key] = (method, revision, params)
        token = meta.get("progressToken")
        if isinstance(token, (str, int)) and not isinstance(token, bool):
            self.tokens[self._key(token)] = (key, revision)

    @staticmethod
    def _key(id):
        # 1, "1" and 1.0 are three ids; half of a surrogate pair comes back as U+FFFD.
        return json.dumps(id, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def receive(self, seconds=None):
        """The next message, validated."""
        line = self.stream.read_line(seconds)
        self.transcript.append("< " + line[:600].decode("utf-8", "replace"))
        message = parse(line)
        if isinstance(message, list):
            if self.revision != "2025-03-26":
                raise schema.Violation("a batch outside 2025-03-26")
            schema.require("2025-03-26", "JSONRPCBatchResponse", [m for m in message if "id" in m])
            if not message:
                raise schema.Violation("an empty batch")
            for part in message:
                self._check(part)
        else:
            self._check(message)
        return message

    def _check(self, message):
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise schema.Violation(f"no JSON-RPC message: {str(message)[:200]}")
        if "method" in message:
            if "id" in message:
                raise schema.Violation("the server sent a request")
            self._check_notification(message)
            return
        if ("result" in message) == ("error" in message):
            raise schema.Violation("a response needs exactly one of result and error")
        if "id" not in message:
            if "result" in message:
                raise schema.Violation("a result without an id")
            schema.check_error(self.revision, message)
            return
        key = self._key(message["id"])
        if key in self.pending:
            method, revision, params = self.pending[key]
            duplicate = "error" in message and message["error"].get("code") == -32600 and method != "initialize"
            if not (duplicate and "in flight" in message["error"]["message"]):
                del self.pending[key]
                self.tokens = {t: v for t, v in self.tokens.items() if v[0] != key}
        elif key in self.cancelled:
            raise schema.Violation(f"a response to cancelled request {message['id']!r}")
        elif "error" in message and message["error"].get("code") in (-32600, -32700, -32602):
            method, revision, params = None, self.revision, {}  # refused before it could be read
        else:
            raise schema.Violation(f"a response to {message['id']!r}, which is not in flight")
        if "error" in message:
            schema.check_error(revision, message)
            return
        if method.startswith("ipython-mcp/"):
            return
        if method == "ping" and revision is None:
            revision = "2025-11-25"
        schema.check_success(revision, method, message)
        result = message["result"]
        if method == "initialize":
            self.revision = result["protocolVersion"]
        elif method == "tools/list" and self.profile == "full":
            for tool in result["tools"]:
                _output_schemas[revision, tool["name"]] = tool.get("outputSchema")
        elif method == "tools/call":
            self._check_call(revision, params, result)

    def _check_call(self, revision, params, result):
        """What the contract says of every answer to tools/call."""
        content = result["content"]
        is_lost = "namespace_lost" in content[0].get("text", "") if content else False
        is_image_alone = self.profile == "text" and content and content[0]["type"] == "image"
        if not content or (content[0]["type"] != "text" and not is_image_alone):
            raise schema.Violation("the first content block is not text")
        if result.get("isError") and any(block["type"] == "image" for block in content):
            raise schema.Violation("an image in an answer with isError")
        structured = result.get("structuredContent")
        if self.profile != "full":
            if structured is not None:
                raise schema.Violation(f"structuredContent in profile {self.profile}")
            return
        answer = json.loads(content[0]["text"], object_pairs_hook=_unique, parse_constant=_no_constant)
        if structured is not None and structured != answer:
            raise schema.Violation("structuredContent and text differ")
        if params.get("name") != "reload" and not is_lost:
            if bool(result.get("isError")) != (answer.get("error") is not None):
                raise schema.Violation("isError does not say whether error is null")
        output = _output_schemas.get((revision, params.get("name")))
        if output and not is_lost:
            if structured is None:
                raise schema.Violation("outputSchema, and no structuredContent")
            import jsonschema
            jsonschema.validators.validator_for(output)(output).validate(structured)

    def _check_notification(self, message):
        params = message.get("params", {})
        method = message["method"]
        meta = params.get("_meta", {})
        revision = self.revision or schema.MODERN
        if method == "notifications/ipython-mcp/attached":
            if self.stream.process:
                raise schema.Violation("the shim passed on what is meant for itself")
            return
        if META + "subscriptionId" in meta:
            revision = schema.MODERN
            key = self._key(meta[META + "subscriptionId"])
            if self.pending.get(key, ("",))[0] != "subscriptions/listen":
                raise schema.Violation("a notification for a stream that is not open")
        elif method == "notifications/progress":
            key = self._key(params["progressToken"])
            if key not in self.tokens:
                raise schema.Violation(f"progress for {params['progressToken']!r}, which is not in flight")
            revision = self.tokens[key][1] or "2025-11-25"
            if params["progress"] <= self.progress.get((key, self.tokens[key][0]), -1):
                raise schema.Violation("progress that does not rise")
            self.progress[key, self.tokens[key][0]] = params["progress"]
        elif method == "notifications/cancelled":
            revision = schema.MODERN
        elif self.revision is None:
            raise schema.Violation(f"an unsolicited {method} without a handshake")
        schema.check_notification(revision, message)

    # Requests.

    def attach(self, **params):
        self.profile = params.get("profile", self.profile)
        self.send({"jsonrpc": "2.0", "method": "notifications/ipython-mcp/attach", "params": params})

    def open(self, revision="2025-11-25", initialized=True):
        """The handshake of that revision; the modern one has none."""
        self.modern = revision == schema.MODERN
        if self.modern:
            return None
        answer = self.request("initialize", {"protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}, plain=True)
        assert answer["result"]["protocolVersion"] == revision, answer
        if initialized:
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def params(self, params=None, token=None, plain=False):
        """Params with the request's metadata: in the modern era version and capabilities."""
        params = dict(params or {})
        meta = dict(params.get("_meta", {}))
        if self.modern and not plain:
            meta[META + "protocolVersion"] = schema.MODERN
            meta[META + "clientCapabilities"] = {}
        if token is not None:
            meta["progressToken"] = token
        if meta:
            params["_meta"] = meta
        return params

    def start(self, method, params=None, id=None, token=None, plain=False):
        """Sends a request and returns its id."""
        id = f"t{next(self.counter)}" if id is None else id
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        params = self.params(params, token, plain)
        if params:
            message["params"] = params
        self.send(message)
        return id

    def response(self, id, seconds=None):
        """Waits for the response to `id`; notifications that come before it go to self.notes."""
        deadline = time.monotonic() + limit(seconds)
        while True:
            message = self.receive((deadline - time.monotonic()) / paths.PATIENCE)
            if isinstance(message, dict) and "method" not in message and message.get("id") == id:
                return message
            if isinstance(message, dict) and "method" in message:
                self.notes.append(message)
                continue
            raise AssertionError(f"waited for the response to {id!r}, got {str(message)[:500]}")

    def request(self, method, params=None, seconds=None, plain=False, **more):
        return self.response(self.start(method, params, plain=plain, **more), seconds)

    def start_call(self, tool, arguments=None, **more):
        return self.start("tools/call", {"name": tool, "arguments": arguments or {}}, **more)

    def call(self, tool, arguments=None, seconds=None, **more):
        """A tools/call; its result object."""
        message = self.response(self.start_call(tool, arguments, **more), seconds)
        assert "result" in message, message
        return message["result"]

    def answer(self, tool, arguments=None, seconds=None, **more):
        """A tools/call; its answer object, or its text in profile text."""
        return self.answer_of(self.call(tool, arguments, seconds, **more))

    def answer_of(self, result):
        text = result["content"][0]["text"]
        return text if self.profile == "text" else json.loads(text)

    def execute(self, code, seconds=None, **arguments):
        return self.answer("execute", {"code": code, **arguments}, seconds)

    def fence(self):
        """Proves that nothing unexpected was on the way: the next line is the answer to a ping."""
        id = f"fence{next(self.counter)}"
        self.send({"jsonrpc": "2.0", "id": id, "method": "ping"})
        message = self.receive()
        assert isinstance(message, dict) and message.get("id") == id, f"expected silence, got {str(message)[:800]}"

    def ended(self, seconds=None):
        """Waits for the other side to close, with nothing more said."""
        try:
            message = self.receive(seconds)
        except Closed:
            return
        raise AssertionError(f"expected the end of the connection, got {str(message)[:500]}")

    def close(self):
        self.stream.close()
        if self.daemon and self in self.daemon.clients:
            self.daemon.clients.remove(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, e, trace):
        if e is not None and not hasattr(e, "transcript"):
            e.transcript = self.transcript
        self.close()


def cache_directory():
    """Where tests/setup keeps what it installs."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ipython-mcp-tests")


def environment_with(what):
    """The interpreter of a prepared environment (`ipython8`, `ipython9`; `matplotlib` is in both)."""
    configured = os.environ.get("MCP_PYTHON")
    if what == "matplotlib" and configured and subprocess.run([configured, "-c", "import matplotlib"],
            stderr=subprocess.DEVNULL).returncode == 0:
        return configured
    name = "ipython9" if what == "matplotlib" else what
    path = os.path.join(cache_directory(), name, "bin", "python")
    return path if os.path.exists(path) else None

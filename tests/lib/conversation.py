# SPDX-License-Identifier: MIT
"""Conversations: text files that say what goes over the wire, played against a real daemon.

tests/wire/README describes the notation. This file has the patterns (what a line that arrives is
compared with), the reader of a file, and the player of its steps.
"""

import ast
import json
import os
import re
import shlex
import time

import harness
import schema

# Patterns: JSON, and what JSON has no words for.


class Mismatch(AssertionError):
    """What came is not what the conversation expects."""


class Absent:
    """The value of a member that is not there."""

    def __repr__(self):
        return "nothing"


ABSENT = Absent()

KINDS = {
    "any": lambda v: v is not ABSENT,
    "string": lambda v: isinstance(v, str),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "bool": lambda v: isinstance(v, bool),
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "absent": lambda v: v is ABSENT,
}


def _show(value):
    text = repr(value) if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 600 else f"{text[:400]} … {text[-150:]}"


class Literal:
    def __init__(self, value):
        self.value = value

    def match(self, value, variables, place):
        if type(value) is not type(self.value) or value != self.value:
            raise Mismatch(f"at {place}: expected {_show(self.value)}, got {_show(value)}")


class Kind:
    def __init__(self, name):
        self.name = name

    def match(self, value, variables, place):
        if not KINDS[self.name](value):
            raise Mismatch(f"at {place}: expected <{self.name}>, got {_show(value)}")


class Regex:
    def __init__(self, text):
        self.regex = re.compile(text, re.DOTALL)

    def match(self, value, variables, place):
        if not isinstance(value, str) or not self.regex.search(value):
            raise Mismatch(f"at {place}: expected /{self.regex.pattern}/, got {_show(value)}")


class Variable:
    def __init__(self, name):
        self.name = name

    def match(self, value, variables, place):
        if self.name not in variables:
            if value is ABSENT:
                raise Mismatch(f"at {place}: nothing to call ${self.name}")
            variables[self.name] = value
        else:
            Literal(variables[self.name]).match(value, variables, place)


class Object:
    def __init__(self, members, optional, is_open):
        self.members, self.optional, self.is_open = members, optional, is_open

    def match(self, value, variables, place):
        if not isinstance(value, dict):
            raise Mismatch(f"at {place}: expected an object, got {_show(value)}")
        for name, pattern in self.members.items():
            if name in self.optional and name not in value:
                continue
            pattern.match(value.get(name, ABSENT), variables, f"{place}.{name}")
        extra = set(value) - set(self.members)
        if extra and not self.is_open:
            raise Mismatch(f"at {place}: unexpected {', '.join(sorted(extra))} in {_show(value)}")


class Array:
    """Items in order; None among them stands for any run of others."""

    def __init__(self, items):
        self.items = items

    def match(self, value, variables, place):
        if not isinstance(value, list):
            raise Mismatch(f"at {place}: expected an array, got {_show(value)}")
        n_fixed = sum(item is not None for item in self.items)
        if len(value) < n_fixed or (len(value) > n_fixed and None not in self.items):
            raise Mismatch(f"at {place}: expected {n_fixed} items, got {len(value)}: {_show(value)}")
        error = self._match_from(0, 0, value, variables, place)
        if error:
            raise error

    def _match_from(self, i, j, value, variables, place):
        if i == len(self.items):
            return None if j == len(value) else Mismatch(f"at {place}: unexpected {_show(value[j:])}")
        if self.items[i] is None:
            error = None
            for k in range(j, len(value) + 1):
                error = self._match_from(i + 1, k, value, variables, place)
                if not error:
                    return None
            return error
        if j == len(value):
            return Mismatch(f"at {place}: not among {_show(value)}")
        try:
            trial = dict(variables)
            self.items[i].match(value[j], trial, f"{place}[{j}]")
        except Mismatch as e:
            return e
        error = self._match_from(i + 1, j + 1, value, trial, place)
        if not error:
            variables.update(trial)
        return error


class PatternReader:
    """A recursive descent over JSON with <kind>, /regex/, $variable, ... and "name"?: members."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def read(self):
        pattern = self.value()
        self.space()
        if self.at != len(self.text):
            self.fail("more than one pattern")
        return pattern

    def fail(self, what):
        raise SyntaxError(f"{what} at column {self.at}: {self.text[self.at:self.at + 40]!r}")

    def space(self):
        while self.at < len(self.text) and self.text[self.at] in " \t\n":
            self.at += 1

    def take(self, token):
        self.space()
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def need(self, token):
        if not self.take(token):
            self.fail(f"expected {token}")

    def regex(self, expression):
        self.space()
        m = re.compile(expression, re.DOTALL).match(self.text, self.at)
        if m:
            self.at = m.end()
        return m

    def string(self):
        m = self.regex(r'"(?:[^"\\]|\\.)*"')
        if not m:
            self.fail("expected a string")
        return json.loads(m.group(), strict=False)

    def value(self):
        self.space()
        c = self.text[self.at:self.at + 1]
        if c == "{":
            return self.object()
        if c == "[":
            return self.array()
        if c == '"':
            return Literal(self.string())
        if m := self.regex(r"<(\w+)>"):
            if m[1] not in KINDS:
                self.fail(f"no kind {m[1]}")
            return Kind(m[1])
        if m := self.regex(r"/((?:[^/\\]|\\.)*)/"):
            return Regex(m[1].replace("\\/", "/"))
        if m := self.regex(r"\$(\w+)"):
            return Variable(m[1])
        if m := self.regex(r"[-+.\w]+"):
            return Literal(json.loads(m.group()))
        self.fail("expected a pattern")

    def object(self):
        members, optional, is_open = {}, set(), False
        self.need("{")
        while not self.take("}"):
            if self.take("..."):
                is_open = True
            else:
                name = self.string()
                if self.take("?"):
                    optional.add(name)
                self.need(":")
                members[name] = self.value()
            if not self.take(","):
                self.need("}")
                break
        return Object(members, optional, is_open)

    def array(self):
        items = []
        self.need("[")
        while not self.take("]"):
            items.append(None if self.take("...") else self.value())
            if not self.take(","):
                self.need("]")
                break
        return Array(items)


# A file's steps.

STEP = re.compile(r"(?:(?P<session>[A-Z]): )?(?P<kind>>b|>|<~|<|=>|=|X|call|@)(?P<rest>.*)", re.DOTALL)
HEADER = {"open", "own", "env", "via", "profile", "attach", "needs"}


class Step:
    def __init__(self, number, session, kind, rest):
        self.number, self.session, self.kind, self.rest = number, session, kind, rest


class Conversation:
    """One file: its title, how the daemon and the sessions are started, and the steps."""

    def __init__(self, path):
        self.path = path
        self.title = ""
        self.revisions = [None]
        self.is_own = False
        self.environment = {}
        self.shim = None  # arguments, when sessions go through the shim
        self.attach = None
        self.needs = None
        self.steps = []
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        for number, line in enumerate(lines, 1):
            if number == 1:
                if not line.startswith("# "):
                    raise SyntaxError(f"{path}:1: the first line says what the conversation proves")
                self.title = line[2:]
            elif not line or line.startswith("#"):
                continue
            elif line == "|" or line.startswith("| "):
                self.steps[-1].rest += "\n" + line[2:]
            else:
                m = STEP.fullmatch(line)
                if not m:
                    raise SyntaxError(f"{path}:{number}: no step: {line}")
                step = Step(number, m["session"], m["kind"], m["rest"])
                if not (step.kind == "@" and step.session is None and not self.steps and self.header(step)):
                    self.steps.append(step)

    def header(self, step):
        words = shlex.split(step.rest)
        if words[0] not in HEADER:
            return False
        name, values = words[0], words[1:]
        if name == "open":
            named = {"legacy": schema.LEGACY, "all": schema.REVISIONS}
            self.revisions = [r for v in values for r in named.get(v, [v])]
        elif name == "own":
            self.is_own = True
        elif name == "env":
            self.is_own = True
            self.environment.update(v.split("=", 1) for v in values)
        elif name == "via":
            self.shim = values[1:]
        elif name == "profile":
            self.attach = {**(self.attach or {}), "profile": values[0]}
        elif name == "attach":
            self.attach = {**(self.attach or {}), **json.loads(step.rest.split(None, 1)[1])}
        elif name == "needs":
            self.needs = values[0]
        return True


class Seat:
    """A session of a conversation, and the call whose answer is still to be looked at."""

    def __init__(self, client):
        self.client = client
        self.unsettled = None
        self.last = None
        self.is_over = False


class Player:
    def __init__(self, conversation, revision, daemon):
        self.conversation, self.revision, self.daemon = conversation, revision, daemon
        self.tmp = os.path.join(daemon.place.tmp, f"c{time.monotonic_ns()}")
        os.mkdir(self.tmp)
        self.variables = {"tmp": self.tmp, "home": daemon.place.home, "pid": daemon.pid,
            "revision": revision,
            "modern": f'"{schema.META}protocolVersion":"2026-07-28","{schema.META}clientCapabilities":{{}}'}
        self.seats = {}
        self.limit = None
        self.may_die = False
        self.step = None

    def play(self):
        try:
            for self.step in self.conversation.steps:
                self.perform(self.step)
            self.step = None
            self.settle()
            for seat in self.seats.values():
                if not seat.is_over:
                    seat.client.fence()
            if not self.may_die and not self.daemon.is_alive():
                raise AssertionError(f"the daemon ended, status {self.daemon.process.returncode}")
        except BaseException as e:
            e.daemon_log = self.daemon.log()
            raise
        finally:
            for seat in self.seats.values():
                seat.client.close()

    def transcript(self):
        lines = []
        for name, seat in self.seats.items():
            prefix = f"{name}: " if len(self.seats) > 1 else ""
            lines += [prefix + line for line in seat.client.transcript[-30:]]
        return "\n".join(lines)

    def substitute(self, text):
        def value(m):
            if m[1]:
                return int(m[1]) * m[2].encode().decode("unicode_escape")
            return str(self.variables[m[3]])
        return re.sub(r"\$\{(?:(\d+)\*([^}]*)|(\w+))\}", value, text)

    def seat(self, name, open=True):
        name = name or "A"
        if name not in self.seats:
            attach = self.conversation.attach
            if self.conversation.shim is None:
                client = self.daemon.connect()
            else:
                client = self.daemon.shim(*map(self.substitute, self.conversation.shim))
                for a, b in zip(self.conversation.shim, self.conversation.shim[1:]):
                    if a == "--profile":
                        client.profile = b
            client.profile = self.conversation.environment.get("IPYTHON_MCP_PROFILE", client.profile)
            self.seats[name] = Seat(client)
            if attach is not None:
                client.attach(**json.loads(self.substitute(json.dumps(attach))))
            if open and self.revision:
                client.open(self.revision)
        return self.seats[name]

    def settle(self):
        """Calls whose answer nobody looked at must have succeeded."""
        for seat in self.seats.values():
            if seat.unsettled is not None:
                result = self.awaited(seat)
                if result.get("isError"):
                    raise Mismatch(f"a call that should succeed gave {_show(result['content'])}")

    def awaited(self, seat, id=None):
        """The result of the call under way: the very next message has to be its response."""
        id = seat.unsettled if id is None else id
        if id is not None:
            seat.unsettled = None
            message = seat.client.receive(self.limit)
            if not isinstance(message, dict) or message.get("id") != id or "result" not in message:
                raise Mismatch(f"expected the result of {id!r}, got {_show(message)}")
            seat.last = message["result"]
        if seat.last is None:
            raise SyntaxError("no call to look at")
        return seat.last

    def expect(self, seat, patterns):
        """Each line that comes matches one of the patterns, each pattern one line."""
        patterns = list(patterns)
        while patterns:
            message = seat.client.receive(self.limit)
            failures = []
            for pattern in patterns:
                trial = dict(self.variables)
                try:
                    pattern.match(message, trial, "message")
                except Mismatch as e:
                    failures.append(str(e))
                    continue
                self.variables = trial
                patterns.remove(pattern)
                break
            else:
                raise Mismatch("\n".join(failures) + f"\nmessage: {_show(message)}")

    def perform(self, step):
        text = self.substitute(step.rest)
        if step.kind not in ("<", "<~", "=", "=>"):
            self.settle()
        if step.kind == "@":
            self.direct(step, text.strip())
            return
        seat = self.seat(step.session)
        client = seat.client
        if step.kind == ">":
            client.send_text(text[1:] if text.startswith(" ") else text)
        elif step.kind == ">b":
            client.send_bytes(text[1:].encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1"))
        elif step.kind == "<":
            self.expect(seat, [PatternReader(text).read()])
        elif step.kind == "<~":
            steps = self.conversation.steps
            first = steps.index(step)
            if first and steps[first - 1].kind == "<~" and steps[first - 1].session == step.session:
                return  # taken with the first of its group
            group = []
            for other in steps[first:]:
                if other.kind != "<~" or other.session != step.session:
                    break
                group.append(PatternReader(self.substitute(other.rest)).read())
            self.expect(seat, group)
        elif step.kind in ("=", "=>"):
            m = re.match(r"\((.*?)\)", text)
            result = self.awaited(seat, ast.literal_eval(m[1]) if m else None)
            value = client.answer_of(result) if step.kind == "=" else result
            PatternReader(text[m.end():] if m else text).read().match(value, self.variables, "answer")
        elif step.kind == "X":
            options, code = self.options(text)
            self.start_call(seat, "execute", {"code": code}, options)
        elif step.kind == "call":
            options, rest = self.options(text)
            tool, _, arguments = rest.partition(" ")
            self.start_call(seat, tool, json.loads(arguments) if arguments.strip() else {}, options)

    @staticmethod
    def options(text):
        """`&(id=5, timeout=1) rest` -> options and rest."""
        options = {"background": text.startswith("&")}
        text = text.removeprefix("&")
        if text.startswith("("):
            m = re.match(r"\(((?:[^()\"]|\"[^\"]*\")*)\)", text)
            for keyword in ast.parse(f"f({m[1]})", mode="eval").body.keywords:
                options[keyword.arg] = ast.literal_eval(keyword.value)
            text = text[m.end():]
        return options, text.removeprefix(" ")

    def start_call(self, seat, tool, arguments, options):
        background, id, token = options.pop("background"), options.pop("id", None), options.pop("token", None)
        id = seat.client.start_call(tool, {**arguments, **options}, id=id, token=token)
        if not background:
            seat.unsettled = id

    def direct(self, step, text):
        word, _, rest = text.partition(" ")
        if word == "open":
            self.seat(step.session, open=False).client.open(rest)
        elif word == "attach":
            self.seat(step.session, open=False).client.attach(**json.loads(rest))
        elif word == "connect":
            self.seat(step.session)
        elif word == "quiet":
            self.seat(step.session).client.fence()
        elif word == "skip-progress":
            # Takes the response to this id and the progress, as much as comes, before it.
            seat = self.seat(step.session)
            seat.last = seat.client.response(ast.literal_eval(rest), self.limit)["result"]
            if any(note["method"] != "notifications/progress" for note in seat.client.notes):
                raise Mismatch(f"more than progress came: {_show(seat.client.notes)}")
        elif word == "close":
            self.seats.pop(step.session or "A").client.close()
        elif word == "eof":
            self.seat(step.session).client.stream.half_close()
        elif word == "ended":
            seat = self.seat(step.session)
            seat.client.ended(self.limit)
            seat.is_over = True
        elif word == "over":
            self.seat(step.session).is_over = True  # no fence: it cannot be written to any more
        elif word == "limit":
            self.limit = float(rest)
        elif word == "ready":
            self.daemon.wait_ready()
        elif word == "touch":
            with open(rest, "w", encoding="utf-8"):
                pass
        elif word == "exists":
            harness.wait_for(lambda: os.path.exists(rest), f"the file {rest}", self.limit)
        elif word == "missing":
            if os.path.exists(rest):
                raise Mismatch(f"{rest} exists")
        elif word == "gone":
            harness.wait_for(lambda: not _runs(rest), f"the end of {rest!r}", self.limit)
        elif word == "dies":
            self.may_die = True
            harness.wait_for(lambda: not self.daemon.is_alive(), "the daemon's end", self.limit)
        elif word == "log":
            verb, _, needle = rest.partition(" ")
            if (needle in self.daemon.log()) != (verb == "has"):
                raise Mismatch(f"the log does not fit: {rest}")
        else:
            raise SyntaxError(f"no directive {word}")


def _runs(command):
    """True when a process runs under this command line."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read().rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace") == command:
                    return True
        except OSError:
            pass
    return False

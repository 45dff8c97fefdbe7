#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ipython-mcp-connect --print-config, --install and --uninstall, in scratch homes."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap  # noqa: E402
from harness import Place, cache_directory  # noqa: E402
from paths import CONNECT  # noqa: E402

# What each agent's file is called, and where the entry lies in it.
AGENTS = {
    "claude": (".claude.json", "mcpServers"),
    "codex": (".codex/config.toml", "mcp_servers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", "servers"),
    "zed": (".config/zed/settings.json", "context_servers"),
}
LIMITS = {"codex": ("tool_timeout_sec", 3600), "gemini": ("timeout", 3600000), "zed": ("timeout", 3600)}


class Home:
    """A scratch home whose PATH holds only what the test puts there."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.path = self.directory.name
        self.bin = os.path.join(self.path, "bin")
        os.mkdir(self.bin)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.directory.cleanup()

    def run(self, *args, code=0, **environment):
        done = subprocess.run([CONNECT, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={"HOME": self.path, "PATH": self.bin, **environment}, timeout=60)
        assert done.returncode == code, (args, done)
        return done

    def file(self, agent):
        return os.path.join(self.path, AGENTS[agent][0])

    def write(self, agent, text, mode=0o600):
        path = self.file(agent)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)

    def read(self, agent):
        with open(self.file(agent), encoding="utf-8") as f:
            return f.read()

    def command(self, name, script):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/usr/bin/python3\n" + script)
        os.chmod(path, 0o755)

    def others(self, agent):
        """What lies beside the agent's file."""
        directory, name = os.path.split(self.file(agent))
        return sorted(set(os.listdir(directory)) - {name, "bin"})


def parse(agent, text):
    return tomllib.loads(text) if agent == "codex" else json.loads(text)


def entry(agent, text, name="ipython"):
    return parse(agent, text)[AGENTS[agent][1]][name]


def test_print():
    """--print-config prints a whole, valid file with command, arguments and time limit"""
    with Home() as home:
        for agent in AGENTS:
            done = home.run("--print-config", agent, "--profile", "text")
            it = entry(agent, done.stdout)
            assert it["command"] == os.path.realpath(CONNECT), it
            assert it["args"] == ["--profile", "text"], it
            if agent in LIMITS:
                key, value = LIMITS[agent]
                assert it[key] == value, it
            assert home.file(agent) in done.stderr
            assert not os.path.exists(home.file(agent))


def test_entry_names():
    """a named namespace gets an entry of its own, in letters that agents take"""
    with Home() as home:
        for name, expected in (("default", "ipython"), ("auto", "ipython"), ("lab", "ipython-lab"),
                               ("a.b", "ipython-a-b")):
            done = home.run("--print-config", "codex", "--name", name)
            assert entry("codex", done.stdout, expected)["args"] == ["--name", name]


def test_unknown_agent():
    """an unknown agent is refused, and the known ones are named"""
    with Home() as home:
        done = home.run("--install", "emacs", code=64)
        assert "claude, codex, gemini, cursor, vscode, zed" in done.stderr


def test_nothing_there():
    """without a file, --install makes one and --uninstall removes it"""
    with Home() as home:
        for agent in AGENTS:
            done = home.run("--install", agent)
            assert "+" in done.stdout and home.file(agent) in done.stdout, done
            assert entry(agent, home.read(agent))["command"] == os.path.realpath(CONNECT)
            assert stat.S_IMODE(os.stat(home.file(agent)).st_mode) == 0o600
            before = home.read(agent)
            done = home.run("--install", agent)
            assert "already" in done.stdout and home.read(agent) == before
            home.run("--uninstall", agent)
            assert not os.path.exists(home.file(agent)), agent
            assert not home.others(agent), home.others(agent)
            home.run("--uninstall", agent)


JSON_TEXT = """\
{
    // kept by hand
    "theme": "dark", /* and */ "odd":   [1,2,   3],
    "mcpServers": { "other": {"command": "x"} },
    "servers": {
        "other": {"command": "x"}, // trailing
    },
    "context_servers": {},
}
"""
TOML_TEXT = '''\
model = "m"   # mine
notes = """
[mcp_servers.ipython]
"""

[mcp_servers.other]
command = "x"
args = [
  "a", # ]
]

# about profiles
[profiles.p]
model = "q"
'''


def test_exact_undo():
    """an edit keeps every other byte and the mode, and --uninstall gives back the very file"""
    with Home() as home:
        for agent in AGENTS:
            text = TOML_TEXT if agent == "codex" else JSON_TEXT
            home.write(agent, text, 0o640)
            done = home.run("--install", agent)
            now = home.read(agent)
            lines = now.splitlines()
            for line in text.splitlines():
                assert any(line.rstrip(",}; \t") in other for other in lines), (agent, line)
            with open(home.file(agent) + ".before-ipython", encoding="utf-8") as f:
                assert f.read() == text
            assert ".before-ipython" in done.stdout
            assert stat.S_IMODE(os.stat(home.file(agent)).st_mode) == 0o640
            # A second install with other options updates the entry and keeps the first backup.
            home.run("--install", agent, "--profile", "compact")
            assert '"compact"' in home.read(agent)
            home.run("--uninstall", agent)
            assert home.read(agent) == text, agent
            assert not home.others(agent), home.others(agent)


def test_undo_after_other_changes():
    """what changed since stays; the backup stays, too"""
    with Home() as home:
        home.write("cursor", '{\n  "mcpServers": {\n    "a": {}\n  }\n}\n')
        home.run("--install", "cursor")
        home.write("cursor", home.read("cursor").replace('"a": {}', '"a": {}, "b": {}'))
        home.run("--uninstall", "cursor")
        assert home.read("cursor") == '{\n  "mcpServers": {\n    "a": {}, "b": {}\n  }\n}\n'
        assert home.others("cursor") == ["mcp.json.before-ipython"]


def test_own_members_stay():
    """an update of the entry keeps what its owner added, a time limit included"""
    with Home() as home:
        home.write("gemini", '{"mcpServers": {"ipython": {"command": "old", "timeout": 5, "trust": true}}}')
        home.run("--install", "gemini")
        it = entry("gemini", home.read("gemini"))
        assert it == {"command": os.path.realpath(CONNECT), "args": [], "timeout": 5, "trust": True}, it
        home.write("codex", '[mcp_servers.ipython]\ncommand = "old"\ntool_timeout_sec = 9\n'
                            '[mcp_servers.ipython.env]\nA = "b"\n')
        home.run("--install", "codex")
        it = entry("codex", home.read("codex"))
        assert it["tool_timeout_sec"] == 9 and it["env"] == {"A": "b"}
        assert it["command"] == os.path.realpath(CONNECT)


def test_refusals():
    """a file that cannot be read safely is left alone, with the line and the way out"""
    with Home() as home:
        for agent, text, says in (
                ("cursor", '{\n  "a": 1\n  "b": 2\n}', "line 3"),
                ("cursor", "[]", "by hand"),
                ("cursor", '{"mcpServers": 1}', "by hand"),
                ("codex", 'a = "x\nb = 1\n', "line 1"),
                ("codex", 'mcp_servers = { ipython = { command = "x" } }\n', "by hand"),
                ("codex", 'mcp_servers.ipython.command = "x"\n', "by hand")):
            home.write(agent, text)
            done = home.run("--install", agent, code=78)
            assert says in done.stderr and "--print-config " + agent in done.stderr, done
            assert home.read(agent) == text
            assert not home.others(agent)
        with open(home.file("cursor"), "wb") as f:
            f.write(b"{}\0")
        assert "no text file" in home.run("--install", "cursor", code=1).stderr


def test_symlink():
    """a file behind a symlink is changed where it is, and the link stays"""
    with Home() as home:
        os.makedirs(os.path.join(home.path, "dotfiles"))
        os.makedirs(os.path.join(home.path, ".cursor"))
        target = os.path.join(home.path, "dotfiles", "mcp.json")
        with open(target, "w", encoding="utf-8") as f:
            f.write("{}\n")
        os.symlink(target, home.file("cursor"))
        home.run("--install", "cursor")
        assert os.path.islink(home.file("cursor"))
        with open(target, encoding="utf-8") as f:
            assert "ipython" in f.read()
        home.run("--uninstall", "cursor")
        assert os.path.islink(home.file("cursor")) and home.read("cursor") == "{}\n"


def test_places():
    """files follow the agents' own variables"""
    with Home() as home:
        for agent, variable, file in (("claude", "CLAUDE_CONFIG_DIR", ".claude.json"),
                                      ("codex", "CODEX_HOME", "config.toml"),
                                      ("zed", "XDG_CONFIG_HOME", "zed/settings.json")):
            place = os.path.join(home.path, "elsewhere", agent)
            home.run("--install", agent, **{variable: place})
            assert os.path.exists(os.path.join(place, file))
        done = home.run("--install", "cursor", code=78, HOME="")
        assert "HOME" in done.stderr


# Stands for an agent's own command: records its words and edits the file as the real one would.
FAKE_CLAUDE = """
import json, os, sys
path = os.path.join(os.environ["HOME"], ".claude.json")
with open(os.path.join(os.environ["HOME"], "words"), "a") as f:
    f.write(json.dumps(sys.argv[1:]) + "\\n")
try:
    state = json.load(open(path))
except FileNotFoundError:
    state = {"numStartups": 1}
servers = state.setdefault("mcpServers", {})
if sys.argv[1:5] == ["mcp", "add", "-s", "user"]:
    name, dashes, command, *args = sys.argv[5:]
    assert dashes == "--"
    servers[name] = {"type": "stdio", "command": command, "args": args, "env": {}}
else:
    assert sys.argv[1:5] == ["mcp", "remove", "-s", "user"]
    del servers[sys.argv[5]]
json.dump(state, open(path, "w"), indent=2)
"""
FAKE_CODEX = """
import os, sys
path = os.path.join(os.environ["HOME"], ".codex", "config.toml")
os.makedirs(os.path.dirname(path), exist_ok=True)
text = open(path).read() if os.path.exists(path) else ""
assert sys.argv[1] == "mcp"
if sys.argv[2] == "add":
    name, dashes, command, *args = sys.argv[3:]
    text += "[mcp_servers.%s]\\ncommand = %r\\nargs = %r\\n" % (name, command, args)
else:
    sys.exit(3)
open(path, "w").write(text)
"""


def test_own_command():
    """an agent's own command makes and removes the entry; the rest of its file is its own"""
    with Home() as home:
        home.command("claude", FAKE_CLAUDE)
        done = home.run("--install", "claude", "--profile", "text")
        assert "Running: claude mcp add -s user ipython -- " in done.stdout, done.stdout
        assert entry("claude", home.read("claude"))["args"] == ["--profile", "text"]
        assert parse("claude", home.read("claude"))["numStartups"] == 1
        done = home.run("--uninstall", "claude")
        assert "Running: claude mcp remove -s user ipython" in done.stdout
        assert parse("claude", home.read("claude")) == {"numStartups": 1, "mcpServers": {}}
        with open(os.path.join(home.path, "words"), encoding="utf-8") as f:
            assert len(f.readlines()) == 2


def test_own_command_and_limit():
    """what the agent's command cannot say is added to its entry; a failing one is made up for"""
    with Home() as home:
        home.command("codex", FAKE_CODEX)
        home.write("codex", 'model = "m"\n')
        home.run("--install", "codex")
        it = entry("codex", home.read("codex"))
        assert it == {"command": os.path.realpath(CONNECT), "args": [], "tool_timeout_sec": 3600}, it
        home.run("--uninstall", "codex")
        assert home.read("codex") == 'model = "m"\n'
        home.command("gemini", "import sys; sys.exit(1)")
        done = home.run("--install", "gemini")
        assert "editing the file instead" in done.stdout
        assert entry("gemini", home.read("gemini"))["timeout"] == 3600000


def test_vscode_command():
    """VS Code is given the entry as JSON"""
    with Home() as home:
        home.command("code", 'import json, sys; assert sys.argv[1] == "--add-mcp"; it = json.loads(sys.argv[2])\n'
                             'assert it["name"] == "ipython" and it["type"] == "stdio" and it["args"] == [], it\n')
        done = home.run("--install", "vscode")
        assert "profile in use" in done.stdout, done


# The real agents, where they are set up: their command, what lists their servers, what it then says.
REAL = {
    "claude": ("cc", ["claude", "mcp", "list"], "ipython: .*Connected"),
    "codex": ("codex", ["codex", "mcp", "list"], "ipython .*enabled"),
    "gemini": ("gem", ["gemini", "mcp", "list"], "ipython: .*Connected"),
}


def use_real(agent):
    folder, command, pattern = REAL[agent]
    programs = os.path.join(cache_directory(), "agents", folder, "node_modules", ".bin")
    node = shutil.which("node")
    if not os.path.exists(os.path.join(programs, agent)) or not node:
        raise AssertionError(f"{agent} is missing: run tests/setup")
    with Place() as place, Home() as home:
        environment = place.environment(HOME=home.path, TERM="dumb", GEMINI_CLI_TRUST_WORKSPACE="true",
            PATH=":".join([programs, os.path.dirname(node), "/usr/bin", "/bin"]))
        # Nothing is asked of the network: there is none.
        alone = ["unshare", "--net"] if os.geteuid() == 0 else []

        def run(*words):
            done = subprocess.run([*alone, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                env=environment, cwd=home.path, timeout=120)
            return done.stdout + done.stderr
        said = run(CONNECT, "--install", agent, "--profile", "text")
        assert f"Running: {agent} mcp add" in said and "+" in said, said
        it = entry(agent, home.read(agent))
        assert it["command"] == os.path.realpath(CONNECT) and it["args"] == ["--profile", "text"], it
        if agent in LIMITS:
            assert it[LIMITS[agent][0]] == LIMITS[agent][1], it
        said = run(*command)
        assert re.search(pattern, said), said
        said = run(CONNECT, "--install", agent, "--profile", "text")
        assert "already" in said, said
        said = run(CONNECT, "--uninstall", agent)
        assert f"Running: {agent} mcp remove" in said, said
        if agent == "claude":  # its file holds more than servers
            assert "ipython" not in home.read(agent)
        else:
            assert not os.path.exists(home.file(agent)), home.read(agent)


def test_real_claude():
    """the real Claude Code takes the entry, connects, and gives it back"""
    use_real("claude")


def test_real_codex():
    """the real Codex takes the entry with its limit, and gives it back"""
    use_real("codex")


def test_real_gemini():
    """the real Gemini CLI takes the entry, connects, and gives it back"""
    use_real("gemini")


if __name__ == "__main__":
    tap.main()

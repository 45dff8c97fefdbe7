#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Five real agent programs, their whole loop offline, against the real shim and daemon.

A scripted endpoint (model.py) stands in the model's place: it makes the calls that the script names and
writes down what the model would have seen of each answer. That is what is asserted here, for each agent
and each profile. Speaks TAP. Needs `unshare`, `ip`, node and the programs that ./install brings.

    test-agents.py [AGENT…]
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("MCP_BUILDDIR") or sys.exit("MCP_BUILDDIR must name the build directory")
SHIM = os.path.join(BUILD, "ipython-mcp-connect")
ADMIN = os.path.join(BUILD, "ipython-mcp")
AGENTS = ("claude", "codex", "opencode", "gemini", "qwen")
PROFILES = ("full", "compact", "text")
FOLDERS = {"claude": "cc/node_modules/.bin/claude", "codex": "codex/node_modules/.bin/codex",
           "opencode": "oc/node_modules/.bin/opencode", "gemini": "gem/node_modules/.bin/gemini",
           "qwen": "qwen/node_modules/.bin/qwen"}


class Namespace:
    """A private runtime directory with its daemon, a scratch folder, agents run in it."""

    def __init__(self, cache, agent, profile):
        self.cache, self.agent, self.profile = cache, agent, profile
        self.directory = tempfile.mkdtemp(prefix="mcp-agent-")
        self.runtime = os.path.join(self.directory, "run")
        os.mkdir(self.runtime, 0o700)
        self.variables = {"IPYTHON_MCP_RUNTIME_DIR": self.runtime,
                          "IPYTHON_MCP_PYTHON": os.environ.get("MCP_TEST_PYTHON", "/usr/bin/python3")}
        self.runs = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([ADMIN, "stop", "--force"], env={**os.environ, **self.variables},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.directory, ignore_errors=True)

    def fill(self, template, path, limit, url, work):
        """A settings template with this run's values in it."""
        with open(os.path.join(HERE, "conf", template)) as f:
            text = f.read()
        arguments = ["--profile", self.profile]
        values = {
            "@URL@": url, "@COMMAND@": SHIM, "@WORK@": work, "@ARGS@": json.dumps(arguments),
            "@ARGV@": json.dumps([SHIM, *arguments]), "@ENV@": json.dumps(self.variables),
            "@ENV_TOML@": "\n".join(f"{k} = {json.dumps(v)}" for k, v in self.variables.items()),
            "@LIMIT_MS@": str(limit * 1000), "@LIMIT_S@": str(limit)}
        for key, value in values.items():
            text = text.replace(key, value)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def command(self, home, work, url, limit):
        """Writes the agent's settings; returns its command line and the variables it needs."""
        if self.agent == "claude":
            self.fill("claude.mcp.json", f"{work}/mcp.json", limit, url, work)
            self.fill("claude.home.json", f"{home}/.claude.json", limit, url, work)
            return (["-p", "go", "--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools", "mcp__py",
                     "--output-format", "stream-json", "--verbose"],
                    {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "dummy", "ENABLE_TOOL_SEARCH": "false",
                     "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
                     "MCP_TOOL_TIMEOUT": str(limit * 1000)})
        if self.agent == "codex":
            self.fill("codex.config.toml", f"{home}/.codex/config.toml", limit, url, work)
            return ["exec", "--skip-git-repo-check", "--json", "go"], {"SCRIPTED_KEY": "dummy"}
        if self.agent == "opencode":
            self.fill("opencode.json", f"{home}/.config/opencode/opencode.json", limit, url, work)
            return (["run", "--format", "json", "go"],
                    {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
                     "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"})
        if self.agent == "gemini":
            self.fill("gemini.settings.json", f"{home}/.gemini/settings.json", limit, url, work)
            return (["-m", "gemini-2.5-flash", "-o", "stream-json", "-p", "go"],
                    {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "dummy",
                     "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"})
        self.fill("qwen.settings.json", f"{home}/.qwen/settings.json", limit, url, work)
        return (["--auth-type", "openai", "--exclude-tools", "tool_search", "-o", "stream-json", "-p", "go"],
                {"OPENAI_BASE_URL": url + "/v1", "OPENAI_API_KEY": "dummy", "OPENAI_MODEL": "scripted",
                 "QWEN_CODE_NO_RELAUNCH": "true"})

    def run(self, *turns, limit=600):
        """One agent run over the script; returns what the model saw of each call, in order."""
        self.runs += 1
        base = os.path.join(self.directory, str(self.runs))
        home, work, log = f"{base}/home", f"{base}/work", f"{base}/model.jsonl"
        os.makedirs(home)
        os.makedirs(work)
        with open(f"{base}/script.json", "w") as f:
            json.dump([*turns, {"text": "ALL DONE"}], f)
        arguments = ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh",
                     sys.executable, os.path.abspath(__file__), "--inside", base, self.agent,
                     os.path.join(self.cache, FOLDERS[self.agent])]
        with open(f"{base}/plan.json", "w") as f:
            json.dump({"profile": self.profile, "variables": self.variables, "limit": limit,
                       "directory": self.directory}, f)
        subprocess.run(arguments, check=False, timeout=240)
        with open(log) as f:
            requests = [r for r in map(json.loads, f) if r.get("tools")]
        if not requests:
            with open(f"{base}/stderr", errors="replace") as f:
                raise AssertionError(f"{self.agent} asked the model nothing: {f.read()[-2000:]}")
        last = requests[-1]
        assert last["say"] == {"text": "ALL DONE"}, f"the run ended with {last['say']}"
        return [Seen(s) for s in last["seen"]]


class Seen:
    """What the model saw of one tool result."""

    def __init__(self, seen):
        self.error = seen["error"]
        self.text = "".join(p.get("text", "") for p in seen["parts"])
        self.images = [p for p in seen["parts"] if "image" in p]


def inside(base, agent, program):
    """In the network namespace: the scripted endpoint, then the agent until it ends."""
    with open(f"{base}/plan.json") as f:
        plan = json.load(f)
    namespace = Namespace.__new__(Namespace)
    namespace.agent, namespace.profile = agent, plan["profile"]
    namespace.variables = plan["variables"]
    model = subprocess.Popen([sys.executable, os.path.join(HERE, "model.py"), f"{base}/script.json",
                              f"{base}/model.jsonl"], stdout=subprocess.PIPE, text=True)
    try:
        url = model.stdout.readline().strip()
        home, work = f"{base}/home", f"{base}/work"
        arguments, variables = namespace.command(home, work, url, plan["limit"])
        node = os.path.dirname(shutil.which("node"))
        with open(f"{base}/stdout", "w") as out, open(f"{base}/stderr", "w") as err:
            subprocess.run([program, *arguments], cwd=work, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                           timeout=200, env={"HOME": home, "PATH": f"{node}:/usr/bin:/bin", "LANG": "C.UTF-8",
                                             "TERM": "dumb", "SHELL": "/bin/sh", **variables})
    finally:
        model.terminate()
        model.wait()


def execute(code, **arguments):
    return {"tool": "execute", "args": {"code": code, **arguments}}


# The cases. Each gets the cache of programs, an agent, a profile.


def case_answers(cache, agent, profile):
    """a result, an error, a plot, output above the bounds and a registered function"""
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    with Namespace(cache, agent, profile) as n:
        turns = [execute("print('HELLO'); 6*7"), execute("[6, 7]"), execute("1/0"), execute(plot),
                 execute("for i in range(20000): print('line', i)"),
                 execute("def double(x: int) -> int:\n    return 2 * x")]
        if profile == "full":
            turns.append({"tool": "register_tool", "args": {"name": "double"}})
        turns.append({"tool": "call_function", "args": {"name": "double", "arguments": {"x": 21}}})
        seen = n.run(*turns)
    assert "HELLO" in seen[0].text and "42" in seen[0].text, seen[0].text
    # One agent takes a text that is JSON for something else.
    assert re.search(r"\[\s*6,\s*7\s*\]", seen.pop(1).text)
    assert "ZeroDivisionError" in seen[1].text and "division by zero" in seen[1].text, seen[1].text
    assert "rror" in seen[1].text
    assert len(seen[2].images) == 1, f"images: {seen[2].images}, text {seen[2].text[:500]}"
    assert seen[2].images[0]["image"].startswith("image/")
    assert "iVBOR" not in seen[2].text, "base64 in the text"
    assert "line 0" in seen[3].text and "line 19999" in seen[3].text, "head or tail lost: " + seen[3].text[-300:]
    assert len(seen[3].text) < 25000 and "omitted" in seen[3].text
    assert "42" in seen[-1].text, seen[-1].text
    if profile == "full":
        assert "double" in seen[5].text and "call_function" in seen[5].text, seen[5].text


def case_second_run(cache, agent, profile):
    """a second run of the agent finds the first one's variables"""
    with Namespace(cache, agent, profile) as n:
        n.run(execute("answer = 6 * 7"))
        seen = n.run(execute("answer + 1"))
    assert "43" in seen[0].text, seen[0].text


def case_runaway(cache, agent, profile):
    """a loop that the agent's own limit cancels: the next call works, variables intact"""
    with Namespace(cache, agent, profile) as n:
        seen = n.run(execute("kept = 'still here'"), execute("while True: pass"), execute("kept"), limit=4)
    assert "still here" not in seen[1].text
    assert "still here" in seen[2].text, seen[2].text


def case_killed(cache, agent, profile):
    """the daemon dies in the middle: the call says so, the next one works in a new namespace"""
    with Namespace(cache, agent, profile) as n:
        seen = n.run(execute("lost = 1"), execute("import os; os.kill(os.getpid(), 9)"),
                     execute("'lost' in globals()"))
    assert "namespace_lost" in seen[1].text, seen[1].text
    assert re.search(r"\bfalse\b|\bFalse\b", seen[2].text), seen[2].text
    assert "new" in seen[2].text, "no notice of the new namespace: " + seen[2].text


CASES = ((case_answers, PROFILES), (case_second_run, ("full",)), (case_runaway, ("full", "text")),
         (case_killed, PROFILES))


def main():
    if sys.argv[1:2] == ["--inside"]:
        return inside(*sys.argv[2:5])
    cache = subprocess.run(["sh", os.path.join(HERE, "install")], stdout=subprocess.PIPE, check=True,
                           text=True).stdout.strip()
    agents = sys.argv[1:] or AGENTS
    plan = [(case, agent, profile) for case, profiles in CASES for agent in agents for profile in profiles]
    print(f"1..{len(plan)}", flush=True)
    failed = 0
    for number, (case, agent, profile) in enumerate(plan, 1):
        begin = time.monotonic()
        try:
            case(cache, agent, profile)
            verdict = "ok"
        except Exception as e:  # one agent's failure must not hide the others'
            verdict = "not ok"
            failed += 1
            for line in f"{type(e).__name__}: {e}".splitlines():
                print("# " + line[:1000])
        print(f"{verdict} {number} - {agent}, {profile}: {case.__doc__} "
              f"({time.monotonic() - begin:.1f} s)", flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

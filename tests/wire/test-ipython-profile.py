#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""IPYTHON_MCP_IPYTHON_PROFILE: a person's own IPython, loaded as `ipython --profile` does."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import harness
import tap


class Profile:
    """A place whose home holds an IPython profile `work`."""

    def __init__(self, config="", startup=(), extension=""):
        self.place = harness.Place()
        root = os.path.join(self.place.home, ".ipython")
        directory = os.path.join(root, "profile_work")
        os.makedirs(os.path.join(directory, "startup"))
        os.mkdir(os.path.join(root, "extensions"))
        with open(os.path.join(directory, "ipython_config.py"), "w") as f:
            f.write("c = get_config()\n" + config)
        for name, text in startup:
            with open(os.path.join(directory, "startup", name), "w") as f:
                f.write(text)
        self.library = os.path.join(self.place.root, "library")
        os.mkdir(self.library)
        with open(os.path.join(self.library, "my_extension.py"), "w") as f:
            f.write(extension or "def load_ipython_extension(ip): ip.user_ns['from_extension'] = 'loaded'\n")

    def daemon(self, **variables):
        return harness.Daemon(place=self.place, environment={"IPYTHON_MCP_IPYTHON_PROFILE": "work",
            "IPYTHON_MCP_LIBRARY_PATHS": self.library, **variables})

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.place.remove()


def test_loaded():
    """Configuration, extensions, lines and startup files of the profile are in force, in their order"""
    with Profile("c.InteractiveShellApp.extensions = ['my_extension']\n"
            "c.InteractiveShellApp.exec_lines = ['from_line = 1']\n"
            "c.InteractiveShell.ast_node_interactivity = 'all'\n"
            "c.InteractiveShell.autocall = 0\n",
            [("10-first.py", "from_startup = ['first']\n"), ("20-second.ipy", "from_startup.append('second')\n%alias_magic t timeit\n")]) as p:
        with p.daemon() as daemon, daemon.connect() as client:
            client.open()
            answer = client.execute("(from_extension, from_line, from_startup)")
            assert answer["result"] == ["loaded", 1, ["first", "second"]], answer
            assert answer["execution_count"] == 1, answer
            assert client.execute("'t' in get_ipython().magics_manager.magics['line']")["result"] is True
            assert client.execute("1+1")["result"] == 2


def test_not_loaded():
    """Without the setting nothing of a profile is loaded"""
    with Profile(startup=[("x.py", "leaked = 1\n")]) as p:
        with p.daemon(IPYTHON_MCP_IPYTHON_PROFILE=None) as daemon, daemon.connect() as client:
            client.open()
            assert client.execute("'leaked' in globals()")["result"] is False


def failure(p, **variables):
    with p.daemon(**variables) as daemon, daemon.connect() as client:
        client.open()
        error = client.execute("1")["error"]
        assert error["code"] == "startup_failed" and "preload" in error["message"], error
        return error["message"]


def test_failures():
    """A file, an extension or a line that fails ends the start, phase preload, and is named"""
    with Profile(startup=[("bad.py", "1/0\n")]) as p:
        message = failure(p)
        assert "bad.py" in message and "ZeroDivisionError" in message, message
    with Profile("c.InteractiveShellApp.extensions = ['no_such_extension']\n") as p:
        assert "no_such_extension" in failure(p)
    with Profile("c.InteractiveShellApp.exec_lines = ['raise KeyError(5)']\n") as p:
        assert "KeyError" in failure(p)
    with Profile("1 +\n") as p:
        assert "ipython_config.py" in failure(p)
    with Profile() as p:
        message = failure(p, IPYTHON_MCP_IPYTHON_PROFILE="nosuch")
        assert "nosuch" in message, message


def test_autoreload():
    """The extension autoreload works in cells, with a profile and without"""
    with Profile("c.InteractiveShellApp.extensions = ['autoreload']\n"
            "c.InteractiveShellApp.exec_lines = ['%autoreload 2']\n") as p:
        module = os.path.join(p.library, "changing.py")
        for variables, before in (({}, ""), ({"IPYTHON_MCP_IPYTHON_PROFILE": None}, "%load_ext autoreload\n%autoreload 2\n")):
            with open(module, "w") as f:
                f.write("def f(): return 'old'\n")
            os.utime(module, (1, 1))
            with harness.Daemon(place=p.place, environment={"IPYTHON_MCP_IPYTHON_PROFILE": "work",
                    "IPYTHON_MCP_LIBRARY_PATHS": p.library, **variables}) as daemon, daemon.connect() as client:
                client.open()
                answer = client.execute(before + "import changing; changing.f()")
                assert answer["result"] == "old", answer
                with open(module, "w") as f:
                    f.write("def f(): return 'newer'\n")
                answer = client.execute("changing.f()")
                assert answer["result"] == "newer", answer


if __name__ == "__main__":
    tap.main()

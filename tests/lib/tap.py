# SPDX-License-Identifier: MIT
"""TAP for tests in Python: functions named test_*, run in order, each one case.

A test's docstring's first line is what the case is called; an exception fails it. Cases named on the
command line run alone.
"""

import inspect
import os
import sys
import traceback


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


class Report:
    """Prints results as they come and the plan, truly counted, at the end."""

    def __init__(self):
        self.n = 0
        self.n_failed = 0

    def result(self, passed, name, detail="", skip=None):
        self.n += 1
        self.n_failed += not passed
        name = name.replace("#", "\\#").replace("\n", " ")
        directive = f" # SKIP {skip}" if skip else ""
        for line in detail.splitlines():
            print("# " + line)
        print(f"{'ok' if passed else 'not ok'} {self.n} - {name}{directive}", flush=True)

    def done(self):
        print(f"1..{self.n}", flush=True)
        return 1 if self.n_failed else 0


def run(module):
    """Runs every test of the module and returns the exit code."""
    wanted = sys.argv[1:]
    report = Report()
    for name, test in list(vars(module).items()):
        if not name.startswith("test_") or not inspect.isfunction(test):
            continue
        if wanted and name not in wanted:
            continue
        title = (inspect.getdoc(test) or name).splitlines()[0]
        try:
            test()
        except Skip as e:
            report.result(True, title, skip=str(e))
        except BaseException as e:  # also KeyboardInterrupt: the harness must say what it did
            report.result(False, f"{title} ({name})", explain(e))
            if isinstance(e, KeyboardInterrupt):
                break
        else:
            report.result(True, title)
    return report.done()


def explain(e):
    """An exception for people: its message, the test's own line, and what the daemon logged."""
    text = "".join(traceback.format_exception(type(e), e, e.__traceback__))
    logs = getattr(e, "daemon_log", "")
    if logs:
        text += "--- daemon's log (end)\n" + logs[-int(os.environ.get("MCP_LOG_CHARS", "6000")):]
    return text


def main():
    """For `if __name__ == "__main__": tap.main()`."""
    sys.exit(run(sys.modules["__main__"]))

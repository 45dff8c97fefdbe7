#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Plays every conversation under tests/wire against a real daemon; one case for each revision it names.

    run.py                  all of them
    run.py legacy modern/x  those whose path contains one of the words
"""

import glob
import multiprocessing
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import conversation
import harness
import paths
import tap

FOLDERS = ("legacy", "modern", "hostile", "tools")
N_WORKERS = int(os.environ.get("MCP_WORKERS", "2"))


def cases():
    """(path, revision) of every case, in order."""
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(paths.SRCDIR, "tests/wire", folder, "*.txt"))):
            if sys.argv[1:] and not any(word in path for word in sys.argv[1:]):
                continue
            try:
                revisions = conversation.Conversation(path).revisions
            except Exception:
                revisions = [None]  # play() reports it
            for revision in revisions:
                yield path, revision


class Worker:
    """Plays cases one after the other. Those that do not ask for their own daemon share one, each in
    sessions of its own; after a failure a fresh one is started."""

    def __init__(self):
        self.shared = None

    def play(self, path, revision):
        name = os.path.relpath(path, os.path.join(paths.SRCDIR, "tests/wire")).removesuffix(".txt")
        title = f"{name}: "
        daemon = player = None
        try:
            talk = conversation.Conversation(path)
            title += talk.title + (f" [{revision}]" if len(talk.revisions) > 1 else "")
            environment = dict(talk.environment)
            if talk.needs:
                python = harness.environment_with(talk.needs)
                if not python:
                    return True, title, "", f"no interpreter with {talk.needs}; run tests/setup"
                environment["IPYTHON_MCP_PYTHON"] = python
            if talk.is_own or talk.needs:
                daemon = harness.Daemon(environment=environment)
            else:
                if self.shared is None:
                    self.shared = harness.Daemon()
                daemon = self.shared
            player = conversation.Player(talk, revision, daemon)
            player.play()
            return True, title, "", None
        except Exception as e:
            detail = f"{path}:{player.step.number if player and player.step else '(end)'}\n"
            if isinstance(e, AssertionError) and str(e):
                detail += f"{type(e).__name__}: {e}\n"
            else:
                detail += tap.explain(e)
            if player:
                detail += "--- transcript (end)\n" + player.transcript() + "\n"
            log = getattr(e, "daemon_log", "")
            if log:
                detail += "--- daemon's log (end)\n" + log[-4000:]
            if daemon is self.shared:
                self.stop()
            return False, title, detail, None
        finally:
            if daemon is not None and daemon is not self.shared:
                status = daemon.stop()
                if status not in (0, -9) and not (player and player.may_die):
                    print(f"# {title}: the daemon's exit status was {status}")

    def stop(self):
        if self.shared:
            self.shared.stop()
        self.shared = None


def work(tasks, results):
    worker = Worker()
    while (task := tasks.get()) is not None:
        number, path, revision = task
        results.put((number, *worker.play(path, revision)))
    worker.stop()
    results.put(None)


def main():
    tasks, results = multiprocessing.SimpleQueue(), multiprocessing.SimpleQueue()
    workers = [multiprocessing.Process(target=work, args=(tasks, results)) for _ in range(N_WORKERS)]
    for worker in workers:
        worker.start()
    feeder = multiprocessing.Process(target=feed, args=(tasks, list(cases())))
    feeder.start()
    report = tap.Report()
    n_left = N_WORKERS
    while n_left:
        result = results.get()
        if result is None:
            n_left -= 1
            continue
        _, passed, title, detail, skip = result
        report.result(passed, title, detail, skip)
    for process in [feeder, *workers]:
        process.join()
    return report.done()


def feed(tasks, all_cases):
    for number, (path, revision) in enumerate(all_cases):
        tasks.put((number, path, revision))
    for _ in range(N_WORKERS):
        tasks.put(None)


if __name__ == "__main__":
    sys.exit(main())

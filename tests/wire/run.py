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
            if daemon is not self.shared:
                self.end(daemon, player.may_die)
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
            if daemon is not None and daemon is not self.shared and daemon.is_alive():
                daemon.stop()

    @staticmethod
    def end(daemon, may_die=False):
        """Stops a daemon, which must end cleanly: a sanitizer's complaint shows here at the latest."""
        daemon.own_place = False
        try:
            status = daemon.stop()
            if (status != 0 and not may_die) or daemon.place.complaints():
                e = AssertionError(f"the daemon ended with status {status}")
                e.daemon_log = daemon.log()
                raise e
        finally:
            daemon.place.remove()

    def stop(self):
        """Stops the shared daemon; what is wrong with its end, or None when there is none."""
        shared, self.shared = self.shared, None
        if not shared:
            return None
        try:
            self.end(shared)
        except AssertionError as e:
            return f"{e}\n{getattr(e, 'daemon_log', '')[-4000:]}"
        return ""


def work(tasks, results):
    worker = Worker()
    while (task := tasks.get()) is not None:
        results.put(worker.play(*task))
    complaint = worker.stop()
    if complaint is not None:
        results.put((not complaint, "the daemon that conversations shared ends cleanly", complaint, None))
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
        report.result(*result)
    for process in [feeder, *workers]:
        process.join()
    return report.done()


def feed(tasks, all_cases):
    for case in all_cases:
        tasks.put(case)
    for _ in range(N_WORKERS):
        tasks.put(None)


if __name__ == "__main__":
    sys.exit(main())

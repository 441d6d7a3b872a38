# SPDX-License-Identifier: GPL-2.0
"""Which selftest is next: those that take longest first, so that no VM runs alone at the end."""

import os
import pathlib
import threading
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
# Lines of the last part of a run's output: seconds and the test's path.
SECONDS = HERE.parent / "seconds"


class Job(NamedTuple):
    """A selftest, by its path from the directory of all, and the cases to run; all if none is
    named."""

    path: pathlib.PurePath
    cases: tuple[str, ...] = ()


def _seconds():
    """How long each selftest takes, by the end of its path."""
    lines = SECONDS.read_text(encoding="utf-8").splitlines()
    pairs = (line.split() for line in lines if line and not line.startswith("#"))
    return {name: int(seconds) for seconds, name in pairs}


class Waiting:
    """The selftests of a kernel that no VM has taken yet."""

    def __init__(self, jobs):
        known = _seconds()
        longest = max(known.values())

        def seconds(job):
            # One that nobody has measured may take long, and one that is not run whole does not.
            return 0 if job.cases else known.get("/".join(job.path.parts[-2:]), longest)

        self._jobs = sorted(jobs, key=seconds, reverse=True)
        self._lock = threading.Lock()

    def take(self, directory=None):
        """The one that takes longest, of a directory if that is given; None if there is none."""
        with self._lock:
            for job in self._jobs:
                if directory in (None, job.path.parent):
                    self._jobs.remove(job)
                    return job
        return None

    def give_back(self, job):
        """It was taken and has not begun: it is the next one."""
        with self._lock:
            self._jobs.insert(0, job)

    def left(self):
        """Those that nobody has taken."""
        with self._lock:
            return [job.path for job in self._jobs]


class Supply:
    """The selftests of one VM, all of a directory. The VM reads a line from `reading` when the
    selftest before has ended: its name, and the cases to run if not all. An empty line is the end.
    """

    def __init__(self, waiting, first, most):
        self.directory = first.path.parent
        self.reading, self._writing = os.pipe()
        self._waiting = waiting
        self._left = most
        self._last = first
        self._say(first)

    def following(self):
        """Name the next one, or the end."""
        self._say(self._waiting.take(self.directory) if self._left else None)

    def stop(self):
        """Name the end."""
        self._say(None)

    def close(self, begun):
        """The VM is over, and this is the name of the last test that began there."""
        if self._last and self._last.path.name != begun:
            self._waiting.give_back(self._last)
        os.close(self.reading)
        os.close(self._writing)

    def _say(self, job):
        self._left -= 1
        self._last = job
        words = [job.path.name, *job.cases] if job else []
        os.write(self._writing, f"{' '.join(words)}\n".encode())

# SPDX-License-Identifier: GPL-2.0
"""The order of selftests: the longest first, so that no VM runs alone at the end."""

import os
import pathlib
import threading
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
# Each line has the duration of a test in seconds, and the end of the test's path.
SECONDS = HERE.parent / "seconds"


class Job(NamedTuple):
    """A selftest, as its path below build.SELFTESTS, and the cases to run (none: all).

    `without` has the cases that do not run.
    """

    path: pathlib.PurePath
    cases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def words(self):
        """The line of the selftest for the guest."""
        return [self.path.name, *self.cases, *(f"-{case}" for case in self.without)]


def _seconds():
    """Return the duration of each selftest in seconds, by the end of its path."""
    lines = SECONDS.read_text(encoding="utf-8").splitlines()
    pairs = (line.split() for line in lines if line and not line.startswith("#"))
    return {name: int(seconds) for seconds, name in pairs}


class Waiting:
    """The selftests of a kernel that no VM has taken yet; from `until` on, none is taken."""

    def __init__(self, jobs, until=None):
        self._until = until
        known = _seconds()
        longest = max(known.values())

        def seconds(job):
            # A test without a known duration may take long. One that runs some cases does not.
            return 0 if job.cases else known.get("/".join(job.path.parts[-2:]), longest)

        self._jobs = sorted(jobs, key=seconds, reverse=True)
        self._lock = threading.Lock()

    def take(self, directory=None):
        """Remove and return the longest selftest, of `directory` if given; None if none is left."""
        if self._until and time.monotonic() > self._until:
            return None
        with self._lock:
            for job in self._jobs:
                if directory in (None, job.path.parent):
                    self._jobs.remove(job)
                    return job
        return None

    def give_back(self, job):
        """Put back a selftest that was taken but did not begin; it is the next one."""
        with self._lock:
            self._jobs.insert(0, job)

    def left(self):
        """Return the paths of the selftests that no VM has taken."""
        with self._lock:
            return [job.path for job in self._jobs]


class Supply:
    """The selftests of one VM, all from one directory.

    When a selftest has ended, the VM reads a line for the next one from `reading`: its name, and
    the cases to run (none: all), or `-CASE` for each that does not run. An empty line ends the run.
    """

    def __init__(self, waiting, first, most):
        self.directory = first.path.parent
        self.reading, self._writing = os.pipe()
        self._waiting = waiting
        self._left = most
        self._last = first
        self._say(first)

    def following(self):
        """Write the line of the next selftest, or an empty one."""
        self._say(self._waiting.take(self.directory) if self._left else None)

    def stop(self):
        """Write an empty line: no selftest follows."""
        self._say(None)

    def close(self, begun):
        """Close the pipe when the VM has ended. `begun` is the last selftest that began in it."""
        if self._last and self._last.path.name != begun:
            self._waiting.give_back(self._last)
        os.close(self.reading)
        os.close(self._writing)

    def _say(self, job):
        self._left -= 1
        self._last = job
        words = job.words if job else []
        os.write(self._writing, f"{' '.join(words)}\n".encode())

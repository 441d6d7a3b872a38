# SPDX-License-Identifier: GPL-2.0
"""Read the results of selftests from the output of their VM."""

import pathlib
import re
import time

from . import ktap
from .log import note

_BEGIN = re.compile(r"# selftests: \S+ (\S+)$")
_END = re.compile(r"# status (\d+)$")

# Exit statuses of a test that timed out and was killed.
KILLED = (124, 137)


class Reader:
    """Reads results from the output of the runner; shows the output of a test when it has ended.

    `done` has the tests that have ended, `passed` the seconds of each that passed. `begun` is the
    last one that began. `cut_short` is set if the VM ended while a test ran.
    """

    def __init__(self, release, supply, tally, show, neighbour=None):
        self.begun = None
        self.done = []
        self.passed = {}
        self.cut_short = False
        self._release = release
        self._supply = supply
        self._tally = tally
        self._show = show
        self._neighbour = neighbour
        self._test = None
        self._began = 0.0
        self._case_began = 0.0
        self._output = []
        self._partial = b""

    def take(self, data):
        """Handle output of the runner."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._output.append(line + b"\n")
            self._line(line.decode("utf-8", "replace"))

    def end(self):
        """Handle the end of the VM."""
        if self._test:
            self.cut_short = True
            self._finish(None)
        self._show(b"".join(self._output) + self._partial)

    def _line(self, line):
        begin = _BEGIN.match(line)
        end = _END.match(line)
        if begin and self._test is None:
            self._begin(begin[1])
        elif end and self._test:
            self._finish(int(end[1]))
        elif self._test and line.startswith("# "):
            if case := self._test.see(line[2:]):
                self._took(case)
            if self._neighbour:
                self._neighbour.see(line[2:])

    def _begin(self, name):
        title = f"{self._release} {pathlib.PurePath(self._supply.directory).name}/{name}"
        note(f"{title} ...")
        self.begun = name
        self._test = ktap.Test(title)
        self._began = self._case_began = time.monotonic()

    def _took(self, case):
        """Note the time from the end of the last case to that of this one."""
        now = time.monotonic()
        self._tally.cases.append((now - self._case_began, case))
        self._case_began = now

    def _finish(self, status):
        self._test.end(status, self._tally)
        seconds = time.monotonic() - self._began
        self._tally.took.append((seconds, self._test.name))
        self.done.append(self.begun)
        if self._test.passed():
            self.passed[self.begun] = seconds
        self._test = None
        self._show(b"".join(self._output))
        self._output = []
        # A killed test has not cleaned up, so other tests would fail in this VM.
        if status in KILLED:
            self._supply.stop()
        elif status is not None:
            self._supply.following()

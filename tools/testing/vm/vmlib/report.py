# SPDX-License-Identifier: GPL-2.0
"""Find the faults that the kernel reports on the console."""

import pathlib
import re

_HARNESS = pathlib.Path(__file__).resolve().parents[2] / \
    "selftests/drivers/infiniband/lib/harness.sh"


def _pattern(variable, *others):
    """Return the pattern in a variable of the harness, or another one."""
    parts = re.findall(rf"^{variable}\+?='(.+)'$", _HARNESS.read_text(encoding="utf-8"),
                       re.MULTILINE)
    if not parts:
        raise ValueError(f"no {variable} in {_HARNESS}")
    return re.compile("|".join(["".join(parts), *others]))


# A line that matches makes the run fail.
_REPORT = _pattern(
    "FAULTS",
    r"Kernel panic",
    r"rnvmf-vm: kmemleak does not scan",
    r"rnvmf-vm: process \d+ .* cannot be killed")

# Known faults of other code, which are ignored.
_KNOWN = _pattern("KNOWN_FAULTS")

# Number of lines that are shown of a report.
FOLLOWING = 40

# The lines that tell where the kernel was: functions, but not those that it only guesses.
_TELLING = re.compile(r"RIP: |Comm: |Workqueue: |(?<!\? )\b[\w.]+\+0x[0-9a-f]+/0x")
# Number of these lines that a failure repeats.
TELLING = 15


# The guest logs which test it runs: a report is attributed to that test.
_PLACE = re.compile(r"rnvmf-vm: at (\S+)$")


class Fault:
    """A report of the kernel: its lines, and the test that ran."""

    def __init__(self, place):
        self.place = place
        self.lines = []

    def failure(self, what):
        """Return a failure for a tally: `what`, and the lines that tell most."""
        first, *others = self.lines
        return "\n".join([what, first, *filter(_TELLING.search, others)][:1 + TELLING])


class Watch:
    """Collects the reports on the console, and for each the test that ran."""

    def __init__(self):
        self.faults = []
        self._place = "boot"
        self._more = 0

    def see(self, line):
        """Handle a line of the console."""
        place = _PLACE.search(line)
        if place:
            self._place = place[1]
        if _REPORT.search(line) and not _KNOWN.search(line):
            # A report often has several matching lines: count it once.
            if not self._more or self.faults[-1].place != self._place:
                self.faults.append(Fault(self._place))
            self._more = FOLLOWING
        if self._more:
            self._more -= 1
            self.faults[-1].lines.append(line)

# SPDX-License-Identifier: GPL-2.0
"""Find the faults that the kernel reports on the console."""

import pathlib
import re

# A line that matches makes the run fail.
_REPORT = re.compile("|".join([
    r"Kernel panic",
    r"BUG: ",
    r"BUG \S+ \(.*\): ",
    r"kernel BUG at ",
    r"Oops: ",
    r"Oops\b.*\[#\d+\]",
    r"general protection fault",
    r"WARNING: ",
    r"KASAN: ",
    r"UBSAN: ",
    r"KFENCE: ",
    r"INFO: task .* blocked for more than",
    r"INFO: possible (recursive locking|circular locking|irq lock inversion)",
    r"INFO: inconsistent lock state",
    r"INFO: trying to register non-static key",
    r"possible deadlock",
    r"(soft|hard) lockup",
    r"rcu.*(self-)?detected.* stalls?\b",
    r"refcount_t: ",
    r"list_(add|del) corruption",
    r"sleeping function called from invalid context",
    r"scheduling while atomic",
    r"suspicious RCU usage",
    r"kmemleak: \d+ new suspected memory leaks",
    r"kmemleak: .* disabled",
    r"rnvmf-vm: kmemleak does not scan",
    r"rust_kernel: panicked",
    r"Bad page state",
    r"Workqueue .* lockup",
    r"rnvmf-vm: process \d+ .* cannot be killed",
]))

_HARNESS = pathlib.Path(__file__).resolve().parents[2] / \
    "selftests/drivers/infiniband/lib/harness.sh"


def _known():
    """Return the pattern of the harness for known faults of other code."""
    pattern, = re.findall("^KNOWN_FAULTS='(.+)'$", _HARNESS.read_text(encoding="utf-8"),
                          re.MULTILINE)
    return re.compile(pattern)


# Known faults, which are ignored.
_KNOWN = _known()

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

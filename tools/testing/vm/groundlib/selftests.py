# SPDX-License-Identifier: GPL-2.0
"""Run the selftests in VMs and count what they report."""

import re
import sys

from . import build, ktap, launch, machine, report
from .say import GroundError, note

DIRECTORY = "drivers/block/rnvme"
RUNNER = "/opt/rnvme/src/tools/testing/vm/guest/selftests"

# Tests that share a boot: few, so that they disturb one another little.
PER_VM = 6
# For all the tests of one VM; each has a limit of its own besides.
VM_SECONDS = 1800

_BEGIN = re.compile(r"# selftests: \S+ (\S+)$")
_END = re.compile(r"# status (\d+)$")


def names(makefile):
    """The tests that a selftest Makefile lists in TEST_PROGS."""
    text = makefile.read_text(encoding="utf-8").replace("\\\n", " ")
    lists = re.findall(r"^TEST_PROGS\s*[:+]?=([^#\n]*)", text, re.MULTILINE)
    return " ".join(lists).split()


class Reader:
    """Passes the runner's output on and notes the results; the tests done are in `done`."""

    def __init__(self, tally):
        self.done = []
        self.test = None
        self._tally = tally
        self._partial = b""

    def take(self, data):
        """Handle output of the runner."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._line(line.decode("utf-8", "replace"))

    def _line(self, line):
        begin = _BEGIN.match(line)
        end = _END.match(line)
        if begin and self.test is None:
            self.test = ktap.Test(begin[1])
        elif end and self.test:
            self.finish(int(end[1]))
        elif self.test and line.startswith("# "):
            self.test.see(line[2:])

    def finish(self, status):
        """The running test is over."""
        self.test.end(status, self._tally)
        self.done.append(self.test.name)
        self.test = None


def _boot(tree, tests, tally):
    """Run tests in one VM as far as they get; return those that have a result."""
    reader = Reader(tally)
    settings = machine.Settings([RUNNER, DIRECTORY, *tests], timeout=VM_SECONDS)
    watch = report.Watch()
    status = launch.launch(tree, settings, stdout=reader.take, watch=watch)
    if reader.test:
        reader.finish(None)
    elif not reader.done:
        raise GroundError(f"the VM ran no test (status {status})")
    tally.failures += [f"{place}: the kernel reported a fault" for place in watch.places]
    if status not in (0, launch.KERNEL_REPORT) and len(reader.done) == len(tests):
        tally.failures.append(f"the VM of {' '.join(reader.done)} ended with status {status}")
    return reader.done


def run(tree, tally):
    """Run all selftests on a kernel; tests after one that took its VM along get a new one."""
    makefile = build.CHECKOUT / "tools/testing/selftests" / DIRECTORY / "Makefile"
    if not makefile.exists():
        raise GroundError(f"{makefile} is missing: there are no selftests")
    left = names(makefile)
    while left:
        note(f"selftests on {tree.release}: {len(left)} to go")
        done = _boot(tree, left[:PER_VM], tally)
        left = [name for name in left if name not in done]

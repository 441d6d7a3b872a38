# SPDX-License-Identifier: GPL-2.0
"""Run the selftests in VMs and count what they report."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from . import build, ktap, launch, machine, neighbour, report
from .log import ToolError, note

RUNNER = "/opt/rnvmf/src/tools/testing/vm/guest/selftests"
GUARD = build.CHECKOUT / "tools/testing/bench/run"

# Tests that share a boot: few, so that they disturb one another little. Of a slow kernel's fewer,
# so that the last VM does not run long when the others are done.
PER_VM = 6
PER_SLOW_VM = 3
# For all the tests of one VM with a stock kernel; each has a limit of its own besides.
VM_SECONDS = 1800
# By what that is multiplied in a long run, and the limit of each file, too.
LONG_TIMES = 12
# VMs at a time: tests wait about as much as they work, but a VM has two processors to work with.
VMS = (os.cpu_count() or 1) + 1

_BEGIN = re.compile(r"# selftests: \S+ (\S+)$")
_END = re.compile(r"# status (\d+)$")


class Reader:
    """Notes the results in the runner's output, and shows what it says of a test when the test has
    ended; the tests done are in `done`."""

    def __init__(self, release, directory, tally, show, neighbour=None):
        self.done = []
        self.test = None
        self._show = show
        self._output = []
        self._release = release
        self._directory = directory
        self._name = None
        self._tally = tally
        self._neighbour = neighbour
        self._partial = b""

    def take(self, data):
        """Handle output of the runner."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._output.append(line + b"\n")
            self._line(line.decode("utf-8", "replace"))

    def end(self):
        """The VM is over."""
        if self.test:
            self._finish(None)
        self._show(b"".join(self._output) + self._partial)

    def _line(self, line):
        begin = _BEGIN.match(line)
        end = _END.match(line)
        if begin and self.test is None:
            self._name = begin[1]
            title = f"{self._release} {pathlib.PurePath(self._directory).name}/{begin[1]}"
            note(f"{title} ...")
            self.test = ktap.Test(title)
        elif end and self.test:
            self._finish(int(end[1]))
        elif self.test and line.startswith("# "):
            self.test.see(line[2:])
            if self._neighbour:
                self._neighbour.see(line[2:])

    def _finish(self, status):
        self.test.end(status, self._tally)
        self.done.append(self._name)
        self.test = None
        self._show(b"".join(self._output))
        self._output = []


class Crew:
    """VMs that run selftests at the same time, of one kernel or more: the results are in the tally
    at the end of a `with` block. What a VM says of a test is shown when the test has ended."""

    def __init__(self, tally, long=False):
        self._tally = tally
        self._times = LONG_TIMES if long else 1
        self._lock = threading.Lock()
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=VMS)
        self._batches = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pool.shutdown()
        for batch in self._batches:
            try:
                batch.result()
            except ToolError as error:
                self._tally.failures.append(str(error))

    def add(self, tree, tests):
        """Run selftests on a kernel, a few to a VM, when there is room."""
        batches = []
        pairs = two_machines()
        few = PER_VM if tree.slowdown == 1 else PER_SLOW_VM
        for directory in dict.fromkeys(test.parent for test in tests):
            there = [test for test in tests if test.parent == directory]
            alone = [test.name for test in there if test not in pairs]
            batches += [(str(directory), alone[first:first + few])
                        for first in range(0, len(alone), few)]
            batches += [(str(directory), [test.name], True) for test in there if test in pairs]
        note(f"selftests on {tree.release}: {len(tests)}, in {len(batches)} VMs")
        self._batches += [self._pool.submit(self._run, tree, *batch) for batch in batches]

    def add_guard(self, tree):
        """Let the bench see whether an I/O costs what it did."""
        self._batches.append(self._pool.submit(self._guard, tree))

    def _guard(self, tree):
        title = f"{tree.release} bench/guard"
        note(f"{title} ...")
        test, tally = ktap.Test(title), ktap.Tally()
        result = subprocess.run([GUARD, "--guard", "--kernel", tree.release], check=False,
                                stdout=subprocess.PIPE, text=True)
        for line in result.stdout.splitlines():
            test.see(line)
        test.end(result.returncode, tally)
        with self._lock:
            print(result.stdout, end="", flush=True)
            self._tally.add(tally)

    def _run(self, tree, directory, tests, two=False):
        """Run tests of a directory, in a new VM after one that took its VM along; or one that needs
        two."""
        while tests:
            done = self._boot_two(tree, directory, tests) if two else \
                self._boot(tree, directory, tests)
            tests = [name for name in tests if name not in done]

    def _boot_two(self, tree, directory, tests):
        with tempfile.TemporaryDirectory() as path:
            wire = pathlib.Path(path)
            other = neighbour.Neighbour(tree, directory, wire)
            try:
                return self._boot(tree, directory, tests, machine.Wire(wire, "test"), other)
            finally:
                other.kill()
                failures = [*other.failures, *(f"the neighbour's kernel reported a fault at {place}"
                                               for place in other.places)]
                with self._lock:
                    self._tally.failures += [f"{tree.release} {' '.join(tests)}: {what}"
                                             for what in failures]

    def _show(self, output):
        with self._lock:
            sys.stdout.buffer.write(output)
            sys.stdout.buffer.flush()

    def _boot(self, tree, directory, tests, wire=None, other=None):
        """Run tests in one VM as far as they get; return those that have a result."""
        tally = ktap.Tally()
        reader = Reader(tree.release, directory, tally, self._show, other)
        limit = VM_SECONDS * tree.slowdown * self._times
        settings = machine.Settings([RUNNER, directory, *tests], timeout=limit, wire=wire,
                                    times=self._times)
        watch = report.Watch()
        status = launch.launch(tree, settings, stdout=reader.take, watch=watch)
        reader.end()
        if not reader.done:
            said = f": {watch.lines[0]}" if watch.lines else ""
            raise ToolError(f"kernel {tree.release}: the VM of {' '.join(tests)} ran no test "
                              f"(status {status}){said}")
        tally.failures += [f"{tree.release} {place}: the kernel reported a fault"
                           for place in watch.places]
        if status not in (0, launch.KERNEL_REPORT) and len(reader.done) == len(tests):
            tally.failures.append(f"the VM of {' '.join(reader.done)} on {tree.release} ended with "
                                  f"status {status}")
        with self._lock:
            self._tally.add(tally)
        return reader.done


def _in(variable):
    found = []
    for makefile in sorted(build.SELFTESTS.rglob("Makefile")):
        directory = makefile.parent.relative_to(build.SELFTESTS)
        found += [directory / name for name in build.listed(makefile, variable)]
    return found


def two_machines():
    """The selftests that need a second VM, which only ours have, and not the kernel's runner."""
    return _in("TWO_MACHINES")


def listed():
    """All selftests, by their path from the directory of all."""
    found = _in("TEST_PROGS") + two_machines()
    if not found:
        raise ToolError(f"there are no selftests in {build.SELFTESTS}")
    return found


def matching(wanted):
    """The selftests of a name, such as test_load.sh, or of the end of a path."""
    words = pathlib.PurePath(wanted).parts
    return [test for test in listed() if test.parts[-len(words):] == words]

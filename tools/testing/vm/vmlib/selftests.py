# SPDX-License-Identifier: GPL-2.0
"""Run the selftests in VMs, and count their results."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from . import build, ktap, launch, machine, neighbour, report, results, supply
from .log import ToolError, note

RUNNER = "/opt/rnvmf/src/tools/testing/vm/guest/selftests"
GUARD = build.CHECKOUT / "tools/testing/bench/run"

# Number of tests in a VM: few, so that they affect one another little. Fewer on a slow kernel:
# kmemleak scans at the end of the VM, so a leak may be that of any test in it.
PER_VM = 8
PER_SLOW_VM = 3
# Time limit for all tests in a VM, with a stock kernel. Each test has its own limit, too.
VM_SECONDS = 3600
# Factor for these limits in a long run.
LONG_TIMES = 12
# VMs at a time. A test waits about half of the time, but its VM has two CPUs.
VMS = (os.cpu_count() or 1) + 1


class Crew:
    """VMs that run selftests in parallel, on one or more kernels.

    All results are in the tally at the end of a `with` block. The output of a test is shown when
    the test has ended.
    """

    def __init__(self, tally, long=False):
        self._tally = tally
        self._times = LONG_TIMES if long else 1
        self._lock = threading.Lock()
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=VMS)
        self._jobs = []
        self._waiting = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pool.shutdown()
        for job in self._jobs:
            try:
                job.result()
            except ToolError as error:
                self._tally.failures.append(str(error))
        for release, waiting in self._waiting:
            self._tally.failures += [f"{release} {test}: not run" for test in waiting.left()]

    def add(self, tree, jobs):
        """Queue selftests for a kernel."""
        note(f"running {len(jobs)} selftests on {tree.release}, in {VMS} VMs at a time")
        pairs = [job for job in jobs if job.path in two_machines()]
        for pair in pairs:
            self._submit(tree, [pair], self._boot_two, 1)
        self._submit(tree, [job for job in jobs if job not in pairs], self._boot, VMS)

    def _submit(self, tree, jobs, boot, vms):
        """Queue selftests for a number of VMs, which run in parallel."""
        waiting = supply.Waiting(jobs)
        self._waiting.append((tree.release, waiting))
        self._jobs += [self._pool.submit(self._work, tree, waiting, boot) for _ in range(vms)]

    def _work(self, tree, waiting, boot):
        """Run tests in one new VM after another, until none is left."""
        while first := waiting.take():
            boot(tree, supply.Supply(waiting, first, PER_VM if tree.slowdown == 1 else PER_SLOW_VM))

    def add_guard(self, tree):
        """Queue the benchmark that compares the cost of an I/O with the recorded one."""
        self._jobs.append(self._pool.submit(self._guard, tree))

    def _guard(self, tree):
        title = f"{tree.release} bench/guard"
        note(f"{title} ...")
        test, tally = ktap.Test(title), ktap.Tally()
        result = subprocess.run([GUARD, "--guard", "--kernel", tree.release], check=False,
                                stdout=subprocess.PIPE, text=True)
        for line in result.stdout.splitlines():
            test.see(line)
        test.end(result.returncode, tally)
        self.report(result.stdout.encode(), tally)

    def report(self, output, tally):
        """Show the output of a test in one piece, and add its results."""
        self._show(output)
        with self._lock:
            self._tally.add(tally)

    def _boot_two(self, tree, tests):
        """Run a test in a VM that is linked to a second VM."""
        with tempfile.TemporaryDirectory() as path:
            wire = pathlib.Path(path)
            other = neighbour.Neighbour(tree, tests.directory, wire)
            try:
                self._boot(tree, tests, machine.Wire(wire, "test"), other)
            finally:
                other.kill()
                failures = [*other.failures,
                            *(fault.failure("the kernel of the second VM reported a fault at "
                                            f"{fault.place}") for fault in other.faults)]
                with self._lock:
                    self._tally.failures += [f"{tree.release} {tests.directory}: {what}"
                                             for what in failures]

    def _show(self, output):
        with self._lock:
            sys.stdout.buffer.write(output)
            sys.stdout.buffer.flush()

    def _boot(self, tree, tests, wire=None, other=None):
        """Run tests in one VM."""
        tally = ktap.Tally()
        reader = results.Reader(tree.release, tests, tally, self._show, other)
        limit = VM_SECONDS * tree.slowdown * self._times
        settings = machine.Settings([RUNNER, str(tests.directory)], timeout=limit, wire=wire,
                                    times=self._times, input=tests.reading)
        watch = report.Watch()
        try:
            status = launch.launch(tree, settings, stdout=reader.take, watch=watch)
        finally:
            tests.close(reader.begun)
        reader.end()
        if not reader.done:
            said = f": {watch.faults[0].lines[0]}" if watch.faults else ""
            raise ToolError(f"kernel {tree.release}: a VM for {tests.directory} ran no test "
                            f"(status {status}){said}")
        tally.failures += [
            fault.failure(f"{tree.release} {fault.place}: the kernel reported a fault")
            for fault in watch.faults]
        if status not in (0, launch.KERNEL_REPORT) and not reader.cut_short:
            tally.failures.append(f"the VM of {' '.join(reader.done)} on {tree.release} ended with "
                                  f"status {status}")
        with self._lock:
            self._tally.add(tally)


def _in(variable):
    found = []
    for makefile in sorted(build.SELFTESTS.rglob("Makefile")):
        directory = makefile.parent.relative_to(build.SELFTESTS)
        found += [directory / name for name in build.listed(makefile, variable)]
    return found


def two_machines():
    """Return the selftests that need a second VM; the kernel's runner cannot run these."""
    return _in("TWO_MACHINES")


def listed():
    """Return all selftests, as paths below SELFTESTS."""
    found = _in("TEST_PROGS") + two_machines()
    if not found:
        raise ToolError(f"no selftests in {build.SELFTESTS}")
    return found


def matching(wanted):
    """Return the selftests whose path ends in `wanted`, such as rrdma/test_load.sh."""
    words = pathlib.PurePath(wanted).parts
    return [test for test in listed() if test.parts[-len(words):] == words]

# SPDX-License-Identifier: GPL-2.0
"""Run the selftests in VMs, and count their results."""

import concurrent.futures
import contextlib
import dataclasses
import enum
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import typing

from . import build, ktap, launch, machine, neighbour, passed, report, results, selftests, supply
from .log import ToolError, note
from .tree import Tree

RUNNER = "/opt/rnvmf/src/tools/testing/vm/guest/selftests"
GUARD = build.CHECKOUT / "tools/testing/bench/run"

# Number of tests in a VM: a boot takes as long as a short test, but tests may affect one another.
# Fewer on a slow kernel: kmemleak scans at the end of the VM, so a leak may be that of any test.
PER_VM = 20
PER_SLOW_VM = 3
# Time limit for all tests in a VM, with a stock kernel. Each test has its own limit, too.
VM_SECONDS = 3600
# Factor for these limits in a long run.
LONG_TIMES = 12
# VMs at a time. One with counted time keeps one CPU of the host busy.
VMS = len(os.sched_getaffinity(0))
# CPUs of a VM.
CPUS = 2


class Clock(enum.Enum):
    """The clock of a VM."""

    # An instruction takes a fixed time, and the CPUs take turns.
    COUNTED = "counted"
    # The clock of the host; each CPU runs freely, in a thread of its own.
    FREE = "free-running"


@dataclasses.dataclass
class Batch:
    """Selftests for VMs with one kernel and one clock. `kept` keeps which have passed, if given."""

    tree: Tree
    clock: Clock
    waiting: supply.Waiting
    kept: typing.Optional[passed.Passed] = None

    @property
    def name(self):
        """The name of the kernel and the clock, for messages."""
        free = f" {self.clock.value}" if self.clock is Clock.FREE else ""
        return f"{self.tree.release}{free}"


class Crew:
    """VMs that run selftests in parallel, on one or more kernels.

    All results are in the tally at the end of a `with` block. The output of a test is shown when
    the test has ended. `unused_cpus` varies the turns of counted CPUs (machine.Settings). From the
    time `until` on, no test begins.
    """

    def __init__(self, tally, long=False, unused_cpus=0, until=None):
        self._tally = tally
        self._until = until
        self._times = LONG_TIMES if long else 1
        self._unused_cpus = unused_cpus
        self._lock = threading.Lock()
        self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=VMS)
        self._idle_cpus = queue.SimpleQueue()
        for cpu in os.sched_getaffinity(0):
            self._idle_cpus.put(cpu)
        self._jobs = []
        self._batches = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pool.shutdown()
        for job in self._jobs:
            try:
                job.result()
            except ToolError as error:
                self._tally.failures.append(str(error))
        for batch in self._batches:
            left = batch.waiting.left()
            if self._until is None:
                self._tally.failures += [f"{batch.name} {test}: not run" for test in left]
            elif left:
                note(f"{len(left)} selftests on {batch.name} are left for another run")

    def add(self, tree, jobs, clock, kept=None, vms=VMS):
        """Queue selftests for a kernel, in `vms` VMs at a time. `kept` keeps which have passed."""
        if not jobs:
            return
        note(f"running {len(jobs)} selftests on {tree.release}, {clock.value}, "
             f"in {vms} VMs at a time")
        pairs = [job for job in jobs if job.path in selftests.two_machines()]
        for pair in pairs:
            self._submit(self._batch(tree, clock, [pair], kept), self._boot_two, 1)
        others = [job for job in jobs if job not in pairs]
        self._submit(self._batch(tree, clock, others, kept), self._boot, vms)

    def _batch(self, tree, clock, jobs, kept):
        return Batch(tree, clock, supply.Waiting(jobs, self._until), kept)

    def _submit(self, batch, boot, vms):
        """Queue selftests for a number of VMs, which run in parallel."""
        self._batches.append(batch)
        self._jobs += [self._pool.submit(self._work, batch, boot) for _ in range(vms)]

    def _work(self, batch, boot):
        """Run tests in one new VM after another, until none is left."""
        most = PER_VM if batch.tree.slowdown == 1 else PER_SLOW_VM
        with self._one_cpu() if batch.clock is Clock.COUNTED else contextlib.nullcontext():
            while first := batch.waiting.take():
                boot(batch, supply.Supply(batch.waiting, first, most))

    @contextlib.contextmanager
    def _one_cpu(self):
        """Use one CPU of the host for what this thread starts.

        The threads of an emulator with counted time run one at a time, and share what the CPU has
        in its caches: they take 5 % less of its time than if they move between CPUs.
        """
        cpu, all_cpus = self._idle_cpus.get(), os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cpu})
        try:
            yield
        finally:
            os.sched_setaffinity(0, all_cpus)
            self._idle_cpus.put(cpu)

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

    def _boot_two(self, batch, tests):
        """Run a test in a VM that is linked to a second VM."""
        with tempfile.TemporaryDirectory() as path:
            wire = pathlib.Path(path)
            other = neighbour.Neighbour(batch.tree, tests.directory, wire)
            try:
                self._boot(batch, tests, machine.Wire(wire, "test"), other)
            finally:
                other.kill()
                failures = [*other.failures,
                            *(fault.failure("the kernel of the second VM reported a fault at "
                                            f"{fault.place}") for fault in other.faults)]
                with self._lock:
                    self._tally.failures += [f"{batch.name} {tests.directory}: {what}"
                                             for what in failures]

    def _show(self, output):
        with self._lock:
            sys.stdout.buffer.write(output)
            sys.stdout.buffer.flush()

    def _boot(self, batch, tests, wire=None, other=None):
        """Run tests in one VM."""
        tally = ktap.Tally()
        reader = results.Reader(batch.name, tests, tally, self._show, other)
        settings = machine.Settings([RUNNER, str(tests.directory)], cpus=CPUS, wire=wire,
                                    times=self._times, input=tests.reading)
        if batch.clock is Clock.COUNTED:
            settings.icount = machine.SELFTEST_SHIFT
            settings.unused_cpus = self._unused_cpus
        settings.timeout = VM_SECONDS * machine.slowdown(batch.tree, settings) * self._times
        watch = report.Watch()
        try:
            status = launch.launch(batch.tree, settings, stdout=reader.take, watch=watch)
        finally:
            tests.close(reader.begun)
        reader.end()
        if not reader.done:
            said = f": {watch.faults[0].lines[0]}" if watch.faults else ""
            raise ToolError(f"kernel {batch.name}: a VM for {tests.directory} ran no test "
                            f"(status {status}){said}")
        tally.failures += [
            fault.failure(f"{batch.name} {fault.place}: the kernel reported a fault")
            for fault in watch.faults]
        if status not in (0, launch.KERNEL_REPORT) and not reader.cut_short:
            tally.failures.append(f"the VM of {' '.join(reader.done)} on {batch.name} ended with "
                                  f"status {status}")
        # A fault may be that of any test in the VM.
        if batch.kept and status == 0 and not watch.faults:
            for test, seconds in reader.passed.items():
                batch.kept.add(tests.directory / test, seconds)
        with self._lock:
            self._tally.add(tally)

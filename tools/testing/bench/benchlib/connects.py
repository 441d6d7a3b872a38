# SPDX-License-Identifier: GPL-2.0
"""Measures how long connects with many I/O queues take.

A controller has at most one I/O queue for each CPU. So there are two VMs for each number of
queues, in which all drivers are connected in turn: one with the host's clock, and one whose clock
counts the instructions of all CPUs. The plugin that counts by function supports one CPU only.
"""

import collections
import pathlib
import tempfile

from vmlib import build, launch, log, machine

from . import instructions

GUEST = "/opt/rnvmf/src/tools/testing/bench/side_by_side/connects.sh"
SECONDS = 7200
ROUNDS = 10
# MiB, and for each queue.
MEMORY, EACH = 2048, 64


def _times(path):
    """Return the times in nanoseconds by label. The first round loads programs."""
    found = collections.defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        label, turn, took = line.split()
        if turn != "0":
            found[label].append(int(took) * 1000)
    return found


def _boot(tree, queues, icount):
    """Measure in one VM; yield a row for each comparison."""
    with tempfile.TemporaryDirectory(dir=build.BUILD, prefix="bench.") as directory:
        out = pathlib.Path(directory)
        settings = machine.Settings([GUEST, str(ROUNDS)], cpus=queues,
                                    icount=0 if icount else None, out=out,
                                    memory=MEMORY + EACH * queues, timeout=SECONDS)
        status = launch.launch(tree, settings)
        if status != 0:
            raise log.ToolError(f"the script in the VM failed with status {status}")
        times = _times(out / "connects")
    for comparison in (instructions.RNVMF, instructions.TRANSPORT):
        costs = {driver: times[label] for driver, label in comparison.of_steps().items()}
        yield {"icount": icount, "queues": queues,
               **comparison.compare(costs)}


def measure(tree, numbers):
    """Measure connects with these numbers of queues. Return the rows."""
    return [row for icount in (True, False) for queues in numbers
            for row in _boot(tree, queues, icount)]

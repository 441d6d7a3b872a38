# SPDX-License-Identifier: GPL-2.0
"""Tests of the reader of the kernel's console."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import report

OOPS = """\
[  9.1] BUG: kernel NULL pointer dereference, address: 0000000000000008
[  9.1] #PF: supervisor read access in kernel mode
[  9.1] Oops: Oops: 0000 [#1] SMP
[  9.1] CPU: 1 UID: 0 PID: 77 Comm: fio
[  9.1] RIP: 0010:blk_mq_end_request+0x8/0x40
[  9.1] RAX: 0000000000000000 RBX: 0000000000000001
[  9.1] Call Trace:
[  9.1]  ? old_frame+0x1/0x2
[  9.1]  nvme_complete_rq+0x4/0x90
"""


def seen(*lines):
    """Return the faults of a console with these lines."""
    watch = report.Watch()
    for line in lines:
        watch.see(line)
    return watch.faults


class Faults(unittest.TestCase):
    """A fault is counted once, and tells the test and the functions."""

    def test_fault(self):
        fault, = seen("rnvmf-vm: at test_x.sh", *OOPS.splitlines(), "rnvmf-vm: at test_y.sh")
        self.assertEqual(fault.place, "test_x.sh")
        self.assertEqual(fault.failure("test_x.sh: a fault").splitlines(), [
            "test_x.sh: a fault",
            "[  9.1] BUG: kernel NULL pointer dereference, address: 0000000000000008",
            "[  9.1] CPU: 1 UID: 0 PID: 77 Comm: fio",
            "[  9.1] RIP: 0010:blk_mq_end_request+0x8/0x40",
            "[  9.1]  nvme_complete_rq+0x4/0x90"])

    def test_places(self):
        faults = seen("rnvmf-vm: at a", "WARNING: x", "rnvmf-vm: at b", "WARNING: y", "WARNING: z")
        self.assertEqual([fault.place for fault in faults], ["a", "b"])

    def test_none(self):
        self.assertEqual(seen("rnvmf-vm: at a", "nvme0: connected"), [])

    def test_known(self):
        self.assertEqual(seen(
            "[  9.1] WARNING: drivers/infiniband/sw/rxe/rxe_task.c:225 at rxe_sched_task+0x6/0x90",
            "[  9.1] WARNING: drivers/infiniband/sw/rxe/rxe_comp.c:700 at rxe_completer+0x9/0x90",
        ), [])

    def test_same_known_faults(self):
        """The harness of the selftests ignores the same functions."""
        harness = pathlib.Path(__file__).resolve().parents[2] / \
            "selftests/drivers/infiniband/lib/harness.sh"
        ignored, = re.findall(r"^KNOWN_FAULTS='WARNING: \.\*at (rxe)_\((\S+)\)\[\+\]'$",
                              harness.read_text(encoding="utf-8"), re.MULTILINE)
        for name in ignored[1].split("|"):
            self.assertEqual(seen(f"WARNING: x at {ignored[0]}_{name}+0x1/0x2"), [])

    def test_length(self):
        fault, = seen("WARNING: x", *[f" f{number}+0x1/0x2" for number in range(39)])
        self.assertEqual(len(fault.failure("x").splitlines()), 1 + report.TELLING)

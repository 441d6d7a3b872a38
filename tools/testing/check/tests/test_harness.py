# SPDX-License-Identifier: GPL-2.0
"""Tests of the harness of the selftests."""

import pathlib
import subprocess
import unittest

LIBRARY = (pathlib.Path(__file__).resolve().parents[2]
           / "selftests/drivers/infiniband/lib")


def printed(script):
    """Return what a shell prints that has the harness."""
    start = (f"SELFTESTS=/nowhere RDMA_LIB={LIBRARY}; . {LIBRARY}/harness.sh; "
             f". {LIBRARY}/processes.sh; ")
    result = subprocess.run(["bash", "-c", start + script], check=False, capture_output=True,
                            text=True)
    if result.stderr:
        raise AssertionError(result.stderr)
    return result.stdout


class InTrap(unittest.TestCase):
    """Deferred commands run in a trap, where `return` alone has the status of what ran before."""

    def test_wait_fails_after_success(self):
        self.assertEqual(printed("trap 'wait_until 0 false; echo $?' EXIT; true"), "1\n")

    def test_wait_succeeds_after_failure(self):
        self.assertEqual(printed("trap 'wait_until 0 true; echo $?' EXIT; false"), "0\n")

    def test_process_ends_after_failure(self):
        script = "exec {PAUSE_FD}<> <(:); sleep 60 & trap 'end_process $!; echo $?' EXIT; false"
        self.assertEqual(printed(script), "0\n")

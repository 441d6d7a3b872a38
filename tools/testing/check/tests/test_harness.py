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


class Limits(unittest.TestCase):
    """Limits of times that a test measured."""

    START = 'fail() { echo "failed: $*"; exit; }; note() { :; }; SLOWDOWN=%d; '

    def verdict(self, script, slowdown=1):
        """Return what the script prints, `ok` if no limit is exceeded."""
        return printed(self.START % slowdown + script + "; echo ok")

    def test_at_most(self):
        self.assertEqual(self.verdict("at_most it 500 500"), "ok\n")
        self.assertEqual(self.verdict("at_most it 501 500"), "failed: it 501 ms, limit 500 ms\n")
        self.assertEqual(self.verdict("at_most it 501 500", 4), "ok\n")

    def test_within(self):
        self.assertEqual(self.verdict("within it 2000 3000 1000"), "ok\n")
        self.assertEqual(self.verdict("within it 2000 3001 1000"),
                         "failed: it 3001 ms, expected 2000 to 3000 ms\n")
        self.assertEqual(self.verdict("within it 2000 1999 1000", 4),
                         "failed: it 1999 ms, expected 2000 to 6000 ms\n")

    def test_each_try_counts(self):
        slow = "n=0; attempt() { n=$((n + 1)); TOOK=$((n == 3 ? 11 : 10)); }; takes 10 attempt"
        self.assertEqual(self.verdict(slow), "failed: try 3 took 11 ms, limit 10 ms\n")
        self.assertEqual(self.verdict(slow.replace("takes 10", "takes 11")), "ok\n")


class Choose(unittest.TestCase):
    """The arguments of a selftest choose its tests."""

    def chosen(self, arguments):
        """Return the chosen tests of the tests a to d."""
        return printed(f"ARGUMENTS=({arguments}); choose a b c d").split()

    def test_all(self):
        self.assertEqual(self.chosen(""), ["a", "b", "c", "d"])

    def test_named(self):
        self.assertEqual(self.chosen("c a c"), ["c", "a", "c"])

    def test_without(self):
        self.assertEqual(self.chosen("-b -d"), ["a", "c"])
        self.assertEqual(self.chosen("-b b c"), ["c"])


class InTrap(unittest.TestCase):
    """Deferred commands run in a trap, where `return` alone has the status of what ran before."""

    def test_wait_fails_after_success(self):
        self.assertEqual(printed("trap 'wait_until 0 false; echo $?' EXIT; true"), "1\n")

    def test_wait_succeeds_after_failure(self):
        self.assertEqual(printed("trap 'wait_until 0 true; echo $?' EXIT; false"), "0\n")

    def test_process_ends_after_failure(self):
        script = "exec {PAUSE_FD}<> <(:); sleep 60 & trap 'end_process $!; echo $?' EXIT; false"
        self.assertEqual(printed(script), "0\n")

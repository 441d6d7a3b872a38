# SPDX-License-Identifier: GPL-2.0
"""Tests of the reader of test results."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import ktap


def failed(*lines, status=1):
    """Return what is shown of a test that printed these lines."""
    test, tally = ktap.Test("7.3 test_x.sh"), ktap.Tally()
    for line in lines:
        test.see(line)
    test.end(status, tally)
    return list(tally.failed())


class Failures(unittest.TestCase):
    """The end of the output names each failed test, and repeats what it printed last."""

    def test_case(self):
        self.assertEqual(
            failed("1..3", "# good", "ok 1 one", "# why", "not ok 2 two", "# more", "ok 3 three"),
            ["failed: 7.3 test_x.sh: 2 two", "  | # why"])

    def test_name(self):
        test = ktap.Test("7.3 test_x.sh")
        self.assertEqual([test.see(line) for line in ("1..2", "ok 1 one", "# why", "not ok 2 two")],
                         [None, "7.3 test_x.sh: 1 one", None, "7.3 test_x.sh: 2 two"])

    def test_killed(self):
        self.assertEqual(
            failed("1..1", "# slow", status=124),
            ["failed: 7.3 test_x.sh: ended with status 124", "  | # slow",
             "failed: 7.3 test_x.sh: planned 1 results, reported 0"])

    def test_lengths(self):
        case = [f"# {number}" for number in range(100)]
        shown = failed(*case, "not ok 1 a", *case, "not ok 2 b", *case, "not ok 3 c", "not ok 4 d")
        self.assertEqual([len(list(group)) for group in (
            [line for line in shown if line.startswith("failed: ")],
            [line for line in shown if line.startswith("  | ")])], [4, ktap.REPEATED_IN_ALL])
        self.assertEqual(shown[:2], ["failed: 7.3 test_x.sh: 1 a", "  | # 85"])
        self.assertEqual(shown[-2:], ["  | # 99", "failed: 7.3 test_x.sh: 4 d"])


class Skips(unittest.TestCase):
    """The reason of a skipped file is the last line that it printed."""

    def test_reason(self):
        test, tally = ktap.Test("7.3 test_x.sh"), ktap.Tally()
        test.see("# no root")
        test.end(ktap.SKIP, tally)
        self.assertEqual(tally.skips, ["7.3 test_x.sh: # no root"])

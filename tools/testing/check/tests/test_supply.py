# SPDX-License-Identifier: GPL-2.0
"""Tests of the order of selftests, and of its end."""

import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from . import write

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import supply

SHORT, LONG, OTHER = (supply.Job(pathlib.PurePath(name)) for name in (
    "a/disk/test_short.sh", "a/disk/test_long.sh", "b/net/test_other.sh"))


class Waiting(unittest.TestCase):
    """The longest is taken first, and none from the time `until` on."""

    def waiting(self, *jobs, until=None):
        """Return selftests that wait; their durations are planted."""
        with tempfile.TemporaryDirectory() as scratch:
            write(pathlib.Path(scratch), {
                "seconds": "3 disk/test_short.sh\n9 disk/test_long.sh\n5 net/test_other.sh\n"})
            with mock.patch.object(supply, "SECONDS", pathlib.Path(scratch, "seconds")):
                return supply.Waiting(jobs, until)

    def at(self, seconds):
        """Return a patch: the time is `seconds`."""
        return mock.patch.object(supply.time, "monotonic", return_value=seconds)

    def test_order(self):
        waiting = self.waiting(SHORT, LONG._replace(cases=("a",)), OTHER, LONG)
        self.assertEqual(waiting.take(), LONG)
        self.assertEqual(waiting.take(SHORT.path.parent), SHORT)
        self.assertEqual(waiting.take(), OTHER)
        self.assertEqual(waiting.take(), LONG._replace(cases=("a",)))
        self.assertIsNone(waiting.take())

    def test_words(self):
        self.assertEqual(LONG._replace(cases=("a", "b")).words, ["test_long.sh", "a", "b"])
        self.assertEqual(LONG._replace(without=("a", "b")).words, ["test_long.sh", "-a", "-b"])

    def test_until(self):
        waiting = self.waiting(SHORT, LONG, until=100)
        with self.at(99):
            self.assertEqual(waiting.take(), LONG)
        with self.at(101):
            self.assertIsNone(waiting.take())
        self.assertEqual(waiting.left(), [SHORT.path])

    def test_given_back(self):
        waiting = self.waiting(SHORT, LONG, until=100)
        with self.at(99):
            waiting.give_back(waiting.take())
            self.assertEqual(waiting.left(), [LONG.path, SHORT.path])

    def test_running_vm(self):
        """A VM that runs at that time gets no further selftest."""
        waiting = self.waiting(SHORT, LONG, until=100)
        with self.at(99):
            tests = supply.Supply(waiting, waiting.take(), 8)
        with self.at(101):
            tests.following()
        self.assertEqual(os.read(tests.reading, 99), b"test_long.sh\n\n")
        tests.close("test_long.sh")
        self.assertEqual(waiting.left(), [SHORT.path])

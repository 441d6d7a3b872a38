# SPDX-License-Identifier: GPL-2.0
"""Tests of the tables of selftests, and of their reader."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from . import write

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import build, log, selftests, tables
from vmlib.supply import Job

SELFTESTS = {"a/disk/Makefile": "TEST_PROGS := test_io.sh test_load.sh\n",
             "a/disk/test_io.sh": "many_reads() {\n\ttrue\n}\n"
                                  "main setup \\\n\tof_library \\\n\tlast\n",
             "a/disk/test_load.sh": "",
             "b/net/Makefile": "TEST_PROGS := test_load.sh \\\n\ttest_send.py\n",
             "b/net/test_load.sh": "",
             "b/net/test_send.py": "def sends(peer):\n    pass\n"}


class Planted(unittest.TestCase):
    """Tables of planted selftests."""

    def jobs(self, text):
        """Return the entries of a table with this text."""
        with tempfile.TemporaryDirectory() as scratch:
            top = pathlib.Path(scratch)
            write(top, {**SELFTESTS, "planted": text})
            with mock.patch.object(build, "SELFTESTS", top):
                return tables.jobs(top / "planted")

    def test_entries(self):
        text = "# A comment.\n\ntest_io.sh\n\tWhy.\n\tMore.\n\nnet/test_send.py sends\n\tWhy.\n"
        self.assertEqual(self.jobs(text), [
            Job(pathlib.PurePath("a/disk/test_io.sh")),
            Job(pathlib.PurePath("b/net/test_send.py"), ("sends",))])

    def test_cases_of_a_library(self):
        self.assertEqual(self.jobs("test_io.sh of_library last\n\tWhy.\n"), [
            Job(pathlib.PurePath("a/disk/test_io.sh"), ("of_library", "last"))])

    def test_mistakes(self):
        no_end = "planted: no entry, or no line below the last one"
        for text, complaint in (
                ("net/test_io.sh\n\tWhy.\n",
                 "planted:1: net/test_io.sh: expected one selftest with this name, found 0"),
                ("# A comment.\ntest_load.sh\n\tWhy.\n",
                 "planted:2: test_load.sh: expected one selftest with this name, found 2"),
                ("test_io.sh many_reads reads\n\tWhy.\n", "planted:1: test_io.sh: no case reads"),
                ("test_io.sh many\n\tWhy.\n", "planted:1: test_io.sh: no case many"),
                ("test_send.py peer\n\tWhy.\n", "planted:1: test_send.py: no case peer"),
                ("test_io.sh\n\tWhy.\n\ndisk/test_io.sh many_reads\n\tWhy.\n",
                 "planted:4: disk/test_io.sh: duplicate entry"),
                ("test_io.sh\ntest_send.py\n\tWhy.\n",
                 "planted:2: test_io.sh: no line below it tells why"),
                ("test_io.sh\n", no_end),
                ("# A comment.\n", no_end)):
            with self.subTest(text), self.assertRaises(log.ToolError) as caught:
                self.jobs(text)
            self.assertEqual(str(caught.exception), complaint)


class Tables(unittest.TestCase):
    """The tables beside `suite`."""

    def test_valid(self):
        for table in (tables.HOST_CLOCK, tables.FREE_RUNNING, tables.SECOND_KERNEL,
                      tables.LEFT_OUT):
            with self.subTest(table.name):
                self.assertLessEqual(tables.paths(table), set(selftests.listed()))

    def test_two_machines(self):
        """A VM that waits for another one needs the host's clock."""
        pairs = selftests.two_machines()
        self.assertTrue(pairs)
        self.assertLessEqual(set(pairs), tables.paths(tables.HOST_CLOCK))

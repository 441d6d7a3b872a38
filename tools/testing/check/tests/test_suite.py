# SPDX-License-Identifier: GPL-2.0
"""Tests of which selftests `suite` runs, and by which clock."""

import pathlib
import sys
import unittest
from unittest import mock

from . import program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import log, selftests, tables
from vmlib.supply import Job

# Its last line would run it.
with mock.patch.object(log, "main"):
    suite = program("../vm/suite")


def runs(*words):
    """Return the runs of a command line."""
    return suite.plan(suite.parser().parse_args(words))


def paths(jobs):
    """Return the paths of selftests, which run with all cases."""
    if any(job.cases for job in jobs):
        raise AssertionError(f"{jobs}: expected all cases")
    return sorted(job.path for job in jobs)


HOST_CLOCK = tables.paths(tables.HOST_CLOCK)
COUNTED = set(selftests.listed()) - HOST_CLOCK


class Plan(unittest.TestCase):
    """The selftests of each kernel."""

    def test_all(self):
        run, = runs()
        self.assertIsNone(run.wanted)
        self.assertEqual(paths(run.counted), sorted(COUNTED))
        self.assertEqual(paths(run.free), sorted(HOST_CLOCK))

    def test_races(self):
        run, = runs("--races")
        self.assertEqual(run.counted, [])
        self.assertEqual(paths(run.free), sorted(selftests.listed()))

    def test_kernels(self):
        found = runs("--kernel", "7.2", "--kernel", "debug")
        self.assertEqual([run.wanted for run in found], ["7.2", "debug"])
        self.assertEqual(found[0].counted, found[1].counted)

    def test_named(self):
        names = ["rnvmf/test_load.sh", "test_load.sh", "test_target_killed.sh"]
        run, = runs(*names)
        self.assertEqual(paths(run.counted), sorted(selftests.matching("test_load.sh")))
        self.assertEqual(paths(run.free), selftests.matching("test_target_killed.sh"))

    def test_unknown(self):
        with self.assertRaises(log.UsageError) as caught:
            runs("rnvmf/test_laod.sh")
        self.assertRegex(str(caught.exception),
                         "^unknown selftest rnvmf/test_laod.sh; similar: .*rnvmf/test_load.sh")

    def test_second(self):
        free = tables.jobs(tables.FREE_RUNNING)
        left_out = {job.path for job in tables.jobs(tables.LEFT_OUT) + free if not job.cases}
        first, second = runs("--second", "7.2")
        self.assertEqual(paths(first.counted), sorted(COUNTED - left_out))
        self.assertEqual(paths(first.free[:-len(free)]), sorted(HOST_CLOCK - left_out))
        self.assertEqual(first.free[-len(free):], free)
        counted = {job.path: job.without for job in first.counted}
        for job in free:
            self.assertLessEqual(set(job.cases), set(counted.get(job.path, job.cases)))
        self.assertEqual(second.wanted, "7.2")
        self.assertCountEqual(second.counted + second.free, tables.jobs(tables.SECOND_KERNEL))
        self.assertTrue(all(job.path in HOST_CLOCK for job in second.free))

    def test_second_of_named(self):
        name = next(iter(sorted(tables.paths(tables.LEFT_OUT) - HOST_CLOCK)))
        first, second = runs("--second", "7.2", str(name))
        self.assertEqual((paths(first.counted), first.free), ([name], []))
        self.assertTrue(second.counted)


class Without(unittest.TestCase):
    """Selftests or cases are left out."""

    def test_left_out(self):
        one, two, three = (Job(pathlib.PurePath("a", name)) for name in ("one", "two", "three"))
        out = [one._replace(cases=("y",)), two, one._replace(cases=("x", "y")),
               two._replace(cases=("z",))]
        self.assertEqual(suite.without([one, two, three], out),
                         [one._replace(without=("x", "y")), three])


class Leave(unittest.TestCase):
    """Selftests that have passed are left out."""

    def test_passed(self):
        run, = runs("test_load.sh", "test_target_killed.sh")
        load = selftests.matching("rnvmf/test_load.sh")
        kept = mock.Mock()
        kept.left = lambda tests: [test for test in tests if test not in load]
        with mock.patch.object(log, "note") as note:
            run.leave(kept)
        note.assert_called_once_with("1 selftests have passed with the same files")
        self.assertEqual(set(paths(run.counted)),
                         set(selftests.matching("test_load.sh")) - set(load))
        self.assertEqual(paths(run.free), selftests.matching("test_target_killed.sh"))

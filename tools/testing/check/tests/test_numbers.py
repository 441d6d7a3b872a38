# SPDX-License-Identifier: GPL-2.0
"""Tests of the list of numbers of the netlink interface."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "netlink"))

# pylint: disable=wrong-import-position
import numbers_list


class Changes(unittest.TestCase):
    """A number that programs are built with may not change."""

    def test_appended(self):
        self.assertEqual(numbers_list.changed(["a = 1"], ["a = 1", "b = 2"]), [])

    def test_inserted(self):
        self.assertEqual(numbers_list.changed(["a = 1", "b = 2"], ["a = 1", "c = 2", "b = 3"]),
                         ["b = 2"])

    def test_removed(self):
        self.assertEqual(numbers_list.changed(["a = 1", "b = 2"], ["a = 1"]), ["b = 2"])

    def test_recorded(self):
        self.assertIn("rnvmf operation connect = 1", numbers_list.recorded())

# SPDX-License-Identifier: GPL-2.0
"""Tests of the CPUs and the clock of VMs."""

import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import machine, tree, tsc

STOCK, DEBUG = (tree.Tree(pathlib.Path("/a"), "7.3", slowdown) for slowdown in (1, 5))
FREE = machine.Settings(["true"])
COUNTED = machine.Settings(["true"], icount=2, unused_cpus=3)


# pylint: disable=protected-access
class Clocks(unittest.TestCase):
    """Counted time, and CPUs that run freely, with and without hardware virtualisation."""

    def setUp(self):
        self.virtualisation = self.patched(machine, "hardware_virtualisation", False)
        self.patched(tsc, "khz", 1234)

    def patched(self, module, name, value):
        """Have a function return `value`; return the mock."""
        patch = mock.patch.object(module, name, return_value=value)
        self.addCleanup(patch.stop)
        return patch.start()

    def test_counted(self):
        """Hardware virtualisation cannot count."""
        for works in (False, True):
            with self.subTest(works):
                self.virtualisation.return_value = works
                line = machine._processor(COUNTED)
                self.assertEqual(line[:6], ["-accel", "tcg,thread=single", "-icount",
                                            "shift=2,sleep=off", "-smp", "5"])
                self.assertEqual(machine.slowdown(STOCK, COUNTED), 1)
                self.assertEqual(machine.slowdown(DEBUG, COUNTED), 5)
                arguments = machine._kernel_arguments(COUNTED).split()
                self.assertEqual(arguments, [*machine.KERNEL_ARGUMENTS, "nr_cpus=2"])

    def test_free(self):
        line = machine._processor(FREE)
        self.assertEqual(line[:4], ["-accel", "tcg,thread=multi", "-smp", "2"])
        self.assertEqual(machine.slowdown(STOCK, FREE), machine.FREE_SLOWDOWN)
        self.assertEqual(machine.slowdown(DEBUG, FREE), 5 * machine.FREE_SLOWDOWN)
        arguments = machine._kernel_arguments(FREE).split()
        self.assertEqual(arguments, [*machine.KERNEL_ARGUMENTS, "nr_cpus=2",
                                     *machine.FREE_ARGUMENTS, "tsc_early_khz=1234"])

    def test_virtualised(self):
        self.virtualisation.return_value = True
        self.assertEqual(machine._processor(FREE),
                         ["-accel", "kvm", "-smp", "2", "-cpu", "host"])
        self.assertEqual(machine.slowdown(DEBUG, FREE), 5)
        arguments = machine._kernel_arguments(FREE).split()
        self.assertEqual(arguments, [*machine.KERNEL_ARGUMENTS, "nr_cpus=2"])

    def test_bytewise(self):
        settings = machine.Settings(["true"], bytewise=True)
        self.assertIn(",erms=off,", machine._processor(FREE)[-1])
        self.assertEqual(machine._processor(settings)[-2:], ["-cpu", "max,la57=off"])

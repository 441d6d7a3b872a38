# SPDX-License-Identifier: GPL-2.0
"""Tests of what is done to the modules of stock kernels."""

import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import stock

MAGIC = b"~Module signature appended~\n"


def signed(module, signature):
    """Return a module with a signature, as scripts/sign-file of the kernel appends it."""
    return module + signature + struct.pack(">BBBBB3xI", 0, 0, 2, 0, 0, len(signature)) + MAGIC


class Signature(unittest.TestCase):
    """A signature is removed, and nothing else."""

    def left(self, data):
        """Return what is left of a module."""
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch, "a.ko")
            path.write_bytes(data)
            stock._remove_signature(path)  # pylint: disable=protected-access
            return path.read_bytes()

    def test_signed(self):
        for module in (b"\x7fELF module", b""):
            with self.subTest(module):
                self.assertEqual(self.left(signed(module, b"signature" * 50)), module)

    def test_one_of_two(self):
        once = signed(b"\x7fELF module", b"first")
        self.assertEqual(self.left(signed(once, b"second")), once)

    def test_unsigned(self):
        whole = signed(b"\x7fELF module", b"signature")
        for data in (b"\x7fELF" * 50, whole + b"\n", whole[:-1]):
            with self.subTest(data):
                self.assertEqual(self.left(data), data)

    def test_tiny(self):
        for data in (b"", b"ELF", MAGIC, b"0" * 11 + MAGIC):
            with self.subTest(data):
                self.assertEqual(self.left(data), data)


class CallSites(unittest.TestCase):
    """The name of a section is changed, and nothing else."""

    def test_last_name(self):
        sections = b"\0.rela__mcount_loc\0.text\0"
        before = b"\x7fELF" + b"__mcount_loc\0 in a string" + sections
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch, "a.ko")
            path.write_bytes(before)
            stock._hide_call_sites(path)  # pylint: disable=protected-access
            after = path.read_bytes()
            self.assertEqual(after, before[:-len(sections)] + b"\0.rela__fentry_nop\0.text\0")
            path.write_bytes(b"\x7fELF without")
            stock._hide_call_sites(path)  # pylint: disable=protected-access
            self.assertEqual(path.read_bytes(), b"\x7fELF without")

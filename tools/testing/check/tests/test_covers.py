# SPDX-License-Identifier: GPL-2.0
"""Tests of the table `covers`, and of its reader."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from . import TOP, write

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import build, covers, log, selftests

SELFTESTS = {"a/disk/Makefile": "TEST_PROGS := test_io.sh test_load.sh\n",
             "b/net/Makefile": "TEST_PROGS := test_io.sh\n"}
TABLE = """\
# A comment.
*
\tMakefile lib/*/config
disk/*
\trust/ !rust/net/
\t!rust/*.md

*/test_io.sh
\trust/net/io.rs
"""
DISK_IO, DISK_LOAD, NET_IO = (pathlib.PurePath(name) for name in (
    "a/disk/test_io.sh", "a/disk/test_load.sh", "b/net/test_io.sh"))


class Planted(unittest.TestCase):
    """Tables of planted selftests."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.top = pathlib.Path(scratch.name)
        write(self.top, SELFTESTS)
        for module, name, value in ((build, "SELFTESTS", self.top),
                                    (covers, "TABLE", self.top / "planted")):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def covered(self, test, *paths, text=TABLE):
        """Return those of `paths` that a selftest depends on."""
        write(self.top, {"planted": text})
        return covers.Covers().of(test, list(paths))

    def test_all(self):
        for test in (DISK_IO, DISK_LOAD, NET_IO):
            with self.subTest(test):
                self.assertEqual(self.covered(test, "Makefile", "COPYING"), ["Makefile"])

    def test_star(self):
        paths = ["lib/a/config", "lib/a/b/config", "lib/config", "lib/a/config2", "x/lib/a/config"]
        self.assertEqual(self.covered(NET_IO, *paths), ["lib/a/config"])

    def test_dot(self):
        self.assertEqual(self.covered(NET_IO, "rust/net/io_rs", "rust/net/io.rs"),
                         ["rust/net/io.rs"])

    def test_directory(self):
        paths = ["rust/a.rs", "rust/a/b.rs"]
        self.assertEqual(self.covered(DISK_LOAD, *paths, "rust", "rustfmt", "a/rust/a.rs"), paths)
        self.assertEqual(self.covered(NET_IO, *paths), [])

    def test_taken_out(self):
        paths = ["rust/net/a.rs", "rust/network.rs", "rust/a.md", "rust/a/b.md"]
        self.assertEqual(self.covered(DISK_LOAD, *paths), ["rust/network.rs", "rust/a/b.md"])

    def test_taken_out_of_one_entry(self):
        self.assertEqual(self.covered(DISK_LOAD, "rust/net/io.rs"), [])
        self.assertEqual(self.covered(DISK_IO, "rust/net/io.rs"), ["rust/net/io.rs"])

    def test_own_file(self):
        own, other = (f"{covers.SELFTESTS}/{test}" for test in (DISK_IO, NET_IO))
        self.assertEqual(self.covered(DISK_IO, own, other), [own])

    def test_no_selftest(self):
        for line in ("net/test_load.sh", "b/net/*", "test_io.sh"):
            with self.subTest(line), self.assertRaises(log.ToolError) as caught:
                self.covered(NET_IO, text=f"{TABLE}\n{line}\n\tMakefile\n")
            self.assertEqual(str(caught.exception), f"planted:11: no selftest matches {line}")


class Table(unittest.TestCase):
    """The table beside `suite`."""

    def test_patterns(self):
        """Each pattern matches a tracked file; one with `!` takes one out of its entry."""
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, text=True,
                                 stdout=subprocess.PIPE).stdout.split("\0")
        for entry in covers.Covers()._entries:  # pylint: disable=protected-access
            self.assertTrue(entry.patterns, entry.tests)
            whole, part = covers.Entry(entry.tests), covers.Entry(entry.tests)
            whole.patterns = [pattern for pattern in entry.patterns if pattern[0] != "!"]
            for pattern in entry.patterns:
                part.patterns = [pattern.removeprefix("!")]
                with self.subTest(entry.tests, pattern=pattern):
                    self.assertTrue(any(map(part.covers, filter(whole.covers, tracked))))

    def test_files(self):
        """Each selftest depends on its own file and on the harness."""
        table, harness = covers.Covers(), f"{covers.SELFTESTS}/drivers/infiniband/lib/harness.sh"
        for test in selftests.listed():
            own = f"{covers.SELFTESTS}/{test}"
            with self.subTest(test):
                self.assertEqual(table.of(test, [own, harness, f"{own}x"]), [own, harness])

# SPDX-License-Identifier: GPL-2.0
"""Tests of the kept results of selftests, in a planted repository and cache."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from . import write

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import build, covers, log, passed

LOAD, RESET = (pathlib.PurePath("drivers/block/rnvmf", name)
               for name in ("test_load.sh", "test_reset.sh"))
NUMBERS = ("{} of 1 selftests have passed with these files, {} before changes of what they do not "
           "cover, {} before other changes, {} never")


class Planted(unittest.TestCase):
    """A checkout with changes."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        top = pathlib.Path(scratch.name)
        self.checkout, self.kept = top / "checkout", top / "cache/rnvmf" / passed.FILE
        write(top, {"covers": "rnvmf/test_load.sh\n\trust/\n", "checkout/.gitignore": "*.o\n",
                    "checkout/rust/a.rs": "", "checkout/README": "", "checkout/b.o": ""})
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        for patch in (mock.patch.object(build, "CHECKOUT", self.checkout),
                      mock.patch.object(covers, "TABLE", top / "covers"),
                      mock.patch.dict(os.environ, {**kept, "XDG_CACHE_HOME": str(top / "cache"),
                                                   "GIT_CONFIG_GLOBAL": os.devnull}, clear=True)):
            patch.start()
            self.addCleanup(patch.stop)
        self.git("init", "--quiet")
        self.git("add", "--force", "b.o")
        self.commit()

    def git(self, *words):
        """Return the output of git in the checkout."""
        identity = ["-c", "user.name=a", "-c", "user.email=a"]
        return subprocess.run(["git", *identity, *words], cwd=self.checkout, check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def commit(self):
        """Commit all files."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=a")

    def change(self, *names):
        """Add files to the checkout."""
        write(self.checkout, {name: "changed" for name in names})

    def add(self):
        """Keep a result of LOAD; return how the status tells of it."""
        results = passed.Passed("kernel-a", False, passed.state())
        results.add(LOAD, 7.4)
        return (f"rnvmf/test_load.sh: passed on {results.state.commit} "
                f"({time.strftime('%Y-%m-%d')}, 7 s)")

    def left(self, kernel="kernel-a", long=False):
        """Return what is left of the two selftests."""
        return passed.Passed(kernel, long, passed.state()).left([LOAD, RESET])

    def status(self):
        """Return the status of LOAD, as two lines."""
        return list(passed.Passed("kernel-a", False, passed.state()).status([LOAD]))

    def test_counts(self):
        self.assertEqual(self.left(), [LOAD, RESET])
        self.add()
        self.assertEqual(self.left(), [RESET])
        self.assertEqual(self.left(kernel="kernel-b"), [LOAD, RESET])
        self.assertEqual(self.left(long=True), [LOAD, RESET])

    def test_tree(self):
        self.add()
        self.change("a.o")
        self.assertEqual(self.left(), [RESET])
        self.change("b.o")
        self.assertEqual(self.left(), [LOAD, RESET])
        self.add()
        self.commit()
        self.assertEqual(self.left(), [RESET])
        self.git("checkout", "--quiet", "HEAD~1")
        self.assertEqual(self.left(), [RESET])

    def test_state(self):
        head = self.git("rev-parse", "--short", "HEAD")
        self.assertEqual(passed.state().commit, head)
        self.change("new")
        self.assertEqual(passed.state().commit, f"{head}+")
        self.assertEqual(self.git("status", "--porcelain"), "?? new")

    def test_no_repository(self):
        (self.checkout / ".git").rename(self.checkout / "git")
        with self.assertRaisesRegex(log.ToolError, "^results are kept .* git cannot tell it here"):
            passed.state()

    def test_broken(self):
        """No result counts of a file with a broken line."""
        self.add()
        good = self.kept.read_text(encoding="utf-8")
        results = passed.Passed("kernel-a", False, passed.state())
        for line in ("", "{", "3", "[]", "{}", '{"kernel": "kernel-a", "long": false}'):
            for use in (results.left, lambda tests: list(results.status(tests))):
                self.kept.write_text(f"{good}{line}\n{good}", encoding="utf-8")
                with self.subTest(line), self.assertRaises(log.ToolError) as caught:
                    use([LOAD])
                self.assertEqual(str(caught.exception),
                                 f"{self.kept}: not a result: {line}; delete the file")

    def test_never(self):
        self.assertEqual(self.status(), ["rnvmf/test_load.sh: has not passed",
                                         NUMBERS.format(0, 0, 0, 1)])

    def test_here(self):
        told = self.add()
        self.assertEqual(self.status(), [told, NUMBERS.format(1, 0, 0, 0)])

    def test_unchanged(self):
        told = self.add()
        self.change("README")
        self.assertEqual(self.status(), [f"{told}; nothing that it covers has changed since",
                                         NUMBERS.format(0, 1, 0, 0)])

    def test_changed(self):
        told = self.add()
        self.change("README", "rust/a.rs", "rust/b.rs", "rust/c.rs")
        self.assertEqual(self.status(), [f"{told}; changed since: rust/a.rs, rust/b.rs, rust/c.rs",
                                         NUMBERS.format(0, 0, 1, 0)])
        self.change("rust/d.rs", "rust/e.rs")
        self.assertEqual(self.status()[0],
                         f"{told}; changed since: rust/a.rs, rust/b.rs, rust/c.rs and 2 more")

    def test_other_repository(self):
        told = self.add()
        text = self.kept.read_text(encoding="utf-8")
        self.kept.write_text(text.replace(passed.state().tree, "1" * 40), encoding="utf-8")
        self.assertEqual(self.status(), [f"{told}; its files are not in this repository",
                                         NUMBERS.format(0, 0, 1, 0)])

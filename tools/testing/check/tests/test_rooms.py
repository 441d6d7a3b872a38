# SPDX-License-Identifier: GPL-2.0
"""Tests of the check `rooms`."""

import pathlib
import tempfile
import unittest

from . import program, write

rooms = program("rooms")

LINES = "\n" * 58
TESTS = "#[cfg(test)]\nmod tests {" + "\n" * 79 + "}\n"


class Planted(unittest.TestCase):
    """Sources of several sizes."""

    def findings(self, file, text, allowed="", pending=False):
        """Return the findings about a file."""
        with tempfile.TemporaryDirectory() as scratch:
            top = pathlib.Path(scratch)
            write(top, {file: text, "rooms.allow": allowed})
            return list(rooms.findings(top, top / "rooms.allow", pending))

    def test_root(self):
        for file, text in (("rust/a.rs", "mod b;\n"), ("drivers/nvme/a.rs", "module! {\n"),
                           ("tools/rnvmf/src/main.rs", "fn main() {}\n")):
            with self.subTest(text):
                self.assertEqual(self.findings(file, text + "\n" * 98), [])
                self.assertEqual(self.findings(file, text + "\n" * 99), [
                    f"{file}:1: a root file has less than 100 lines, this has 100 (root)"])
        self.assertEqual(self.findings("rust/a.rs", "mod b; struct A;" + "\n" * 100), [])

    def test_small(self):
        complaint = ["rust/a.rs:1: has 59 lines and no type: move its code to the parent module "
                     "(small)"]
        for text in ("fn a() {}\n", "#[cfg(test)] mod tests { struct A; }\n",
                     "#[cfg(test)] mod tests;\n"):
            with self.subTest(text):
                self.assertEqual(self.findings("rust/a.rs", text + LINES), complaint)
        for text in ("fn a() {}\n\n", "pub struct A;\n", "mod b;\n", "trait A {}\n"):
            with self.subTest(text):
                self.assertEqual(self.findings("rust/a.rs", text + LINES), [])
        for file in ("rust/a/tests.rs", "rust/a/tests/b.rs", "samples/a.rs", "tools/a.rs"):
            with self.subTest(file):
                self.assertEqual(self.findings(file, "fn a() {}\n"), [])

    def test_tests(self):
        text = f"struct A;\n{TESTS}"
        self.assertEqual(self.findings("rust/a.rs", text), [])
        text = text.replace("{", "{\n")
        self.assertEqual(self.findings("rust/a.rs", text), [
            "rust/a.rs:3: has 81 lines of tests: move them to rust/a/tests.rs (tests)"])

    def test_allowed(self):
        text = "fn a() {}\n"
        self.assertEqual(self.findings("rust/a.rs", text, "small rust/*.rs: planted"), [])
        self.assertEqual(self.findings("rust/a.rs", text, "small rust/**: pending"), [])
        self.assertEqual(len(self.findings("rust/a.rs", text, "small rust/**: pending", True)), 1)
        self.assertEqual(self.findings("rust/a.rs", "struct A;", "small rust/a.rs: planted"), [
            "rooms.allow:1: small rust/a.rs is not needed any more: remove it"])
        for wrong in ("small rust/a.rs", "small rust/a.rs:", "short rust/a.rs: x", "small: x"):
            with self.subTest(wrong), self.assertRaises(rooms.table.TableError):
                self.findings("rust/a.rs", text, wrong)


if __name__ == "__main__":
    unittest.main()

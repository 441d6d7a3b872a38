# SPDX-License-Identifier: GPL-2.0
"""Tests of the check `words`."""

import pathlib
import tempfile
import unittest

from . import program, write

words = program("words")

LIST = """
# A list.
in rust/** drivers/*.rs
type Desk: AdminChannel
part ear: EventSink
text errand: ScanWork
fn,mod open: access
name rcuslot: Rundown
file gate: Rundown
"""


class Planted(unittest.TestCase):
    """A source with one refused word."""

    def findings(self, file, text, listed=LIST, pending=False):
        """Return the findings about a file, without the place of the word in the list."""
        with tempfile.TemporaryDirectory() as scratch:
            top = pathlib.Path(scratch)
            write(top, {file: text, "words.list": listed, words.GLOSSARY: ""})
            return [line.partition(" (words.list:")[0]
                    for line in words.findings(top, top / "words.list", pending)]

    def test_refused(self):
        for file, text, found in (
                ("rust/a.rs", "\npub(crate) struct Desk<T>(T);", "2: type `Desk`: use Admin"),
                ("drivers/a.rs", "type Desk = u8;", "1: type `Desk`: use AdminChannel"),
                ("rust/a.rs", "mod b {\n enum Desk {} }", "2: type `Desk`: use AdminChannel"),
                ("rust/a.rs", "let x = ear_of(y);", "1: part `ear`: use EventSink"),
                ("rust/a.rs", "use crate::ClosedEar;", "1: part `ear`: use EventSink"),
                ("rust/a.rs", "// Two Errands.", "1: text `errand`: use ScanWork"),
                ("rust/a.rs", "fn f() { fn open() {} }", "1: fn `open`: use access"),
                ("rust/a.rs", "mod open;", "1: mod `open`: use access"),
                ("rust/rcu_slot.rs", "", "1: name `rcuslot`: use Rundown"),
                ("rust/a.rs", "\ntrait RcuSlot {}", "2: name `rcuslot`: use Rundown"),
                ("rust/gate/a.c", "", "1: file `gate`: use Rundown"),
                ("rust/a/gate.rs", "", "1: file `gate`: use Rundown")):
            with self.subTest(text or file):
                complaint, = self.findings(file, text)
                self.assertEqual(complaint[:len(file) + 1 + len(found)], f"{file}:{found}")

    def test_allowed(self):
        for file, text in (
                ("rust/a.rs", "struct AdminDesk; // Desk"), ("rust/a.rs", "struct Bear; // ear"),
                ("rust/a.rs", "type Ring = u8; fn earn() {}"), ("rust/a.rs", "file.open();"),
                ("rust/a.rs", "let at: *const Desk = fn(Desk);"), ("rust/a.rs", "enum Open {}"),
                ("samples/a.rs", "struct Desk;"), ("drivers/b/a.rs", "struct Desk;"),
                ("rust/floodgate.rs", ""), ("rust/a.c", "struct Desk errand;")):
            with self.subTest(text or file):
                self.assertEqual(self.findings(file, text), [])

    def test_pending(self):
        listed = f"pending rust/**\n{LIST}"
        self.assertEqual(self.findings("rust/a.rs", "struct Desk;", listed), [])
        self.assertEqual(len(self.findings("rust/a.rs", "struct Desk;", listed, True)), 1)
        self.assertEqual(len(self.findings("drivers/a.rs", "struct Desk;", listed)), 1)

    def test_glossary(self):
        sources = {"a.rs": words.Source("a.rs", "struct RcuSlot; // Rundown")}
        glossary = "Text with ``Text``\n``RcuSlot``  x\n``Rundown``  ``Other``  y\n"
        self.assertEqual(list(words.untrue(sources, glossary)), [
            "Documentation/glossary.rst:3: no source uses the term Rundown"])

    def test_list(self):
        for wrong in ("type Desk", "in rust/**\ntype Desk", "in rust/**\nstruct Desk: x",
                      "in rust/**\ntype: x", "type Desk: x"):
            with self.subTest(wrong), self.assertRaises(words.table.TableError):
                self.findings("rust/a.rs", "", wrong)


if __name__ == "__main__":
    unittest.main()

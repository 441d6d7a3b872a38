# SPDX-License-Identifier: GPL-2.0
"""Tests of the check `layers`."""

import pathlib
import shutil
import tempfile
import unittest

from . import TOP, program, write

layers = program("layers")

TABLE = """
area host host.rs uses rrdma
1 errors testing: errors
2 queue queue/sizes: queues
3 host.rs: the module
area rdma rrdma.rs
1 rrdma.rs: all
"""
SOURCES = {
    "rdma/rrdma.rs": "pub struct Qp;",
    "host/host.rs": "mod errors; mod queue; #[cfg(test)] mod testing; use queue::Queue;",
    "host/errors.rs": "pub struct Lost; #[cfg(test)] mod tests { use super::*; }",
    "host/queue.rs": "//! [`crate::Host`]\nmod sizes;\npub use sizes::Size; use rrdma::Qp;"
                     "pub struct Queue(Qp, crate::errors::Lost);",
    "host/queue/sizes.rs": "use crate::errors::*; pub struct Size(Lost);",
    "host/testing.rs": "pub fn random() {}",
}


class Made(unittest.TestCase):
    """A small crate."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.top = pathlib.Path(scratch.name)

    def findings(self, changed, table=TABLE, pending=False):
        """Return the findings, without advice, after some of the sources are replaced."""
        write(self.top, {**SOURCES, **changed, "layers.table": table})
        found = layers.findings(self.top, self.top / "layers.table", pending)
        return [line.partition(": move")[0] for line in found]

    def test_in_order(self):
        self.assertEqual(self.findings({}), [])

    def test_upward(self):
        upward = "host/errors.rs:{}: layer 1 (errors) imports {} of {}, layer 2 (queues)"
        for source, line, name, file in (
                ("use crate::queue::Queue;", 1, "Queue", "queue.rs"),
                ("\nuse super::{\n    queue::{self, Size},\n};", 3, "Size", "queue/sizes.rs"),
                ("\n\nfn f() -> crate::queue::Queue {}", 3, "Queue", "queue.rs"),
                ("\nfn f() { g::<super::queue::Size>() }", 2, "Size", "queue/sizes.rs"),
                ("use crate::queue::*; /* ' */\nstruct Lost(Size);", 2, "Size", "queue/sizes.rs"),
                ("use crate::queue::Queue::*;", 1, "Queue", "queue.rs"),
                ("use crate::queue as q;\nstruct Lost(q::Queue);", 2, "Queue", "queue.rs"),
                ("#[cfg(test)] mod tests {\n use crate::queue::Queue; }", 2, "Queue", "queue.rs")):
            with self.subTest(source):
                self.assertEqual(self.findings({"host/errors.rs": source}),
                                 [upward.format(line, name, file)])

    def test_no_import(self):
        for source in ("// use crate::queue::Queue;", 'const C: &str = "crate::queue::Queue";',
                       "pub(in crate::queue) struct Lost;", "/* /* */ crate::queue::Queue */",
                       "#[cfg(test)] mod tests { use crate::testing::random; }",
                       "const C: &[char] = &['\"', '\\'']; // crate::queue::Queue"):
            with self.subTest(source):
                self.assertEqual(self.findings({"host/errors.rs": source}), [])

    def test_circle(self):
        sizes = "use super::Queue;\npub struct Size;"
        queue = "mod sizes;\nuse sizes::Size; use crate::errors::Lost;\nstruct Queue;"
        circle = ("host/queue.rs:2: circle queue.rs:2 (Size) -> queue/sizes.rs:1 (Queue) -> "
                  "queue.rs")
        changed = {"host/queue.rs": queue, "host/queue/sizes.rs": sizes}
        self.assertEqual(self.findings(changed), [circle])
        allowed = TABLE.replace("area rdma", "allow queue.rs -> queue/sizes.rs: planted\narea rdma")
        self.assertEqual(self.findings(changed, allowed), [])
        parents = TABLE.replace("uses rrdma", "parents uses rrdma")
        self.assertEqual(self.findings(changed, parents), [])

    def test_no_circle(self):
        self.assertEqual(self.findings({"host/queue/sizes.rs": "use super::Queue; struct Size;"}),
                         [])

    def test_impls(self):
        changed = {"host/queue/sizes.rs": "pub struct Size;\nimpl<T> super::Queue<T> { fn f() {} }"
                                          "impl Drop for super::Queue {} impl Size {}"}
        self.assertEqual(self.findings(changed), [])
        self.assertEqual(self.findings(changed, TABLE.replace("uses rrdma", "impls uses rrdma")), [
            "host/queue/sizes.rs:2: methods of Queue, which is in queue.rs"])

    def test_pending(self):
        table = TABLE.replace("uses rrdma", "pending uses rrdma")
        changed = {"host/errors.rs": "use crate::queue::Queue;"}
        self.assertEqual(self.findings(changed, table), [])
        self.assertEqual(len(self.findings(changed, table, pending=True)), 1)

    def test_crates(self):
        self.assertEqual(self.findings({"rdma/rrdma.rs": "use host::Host;"}), [
            "rdma/rrdma.rs:1: imports host; rdma may use no crate: see layers.table:6"])

    def test_places(self):
        self.assertEqual(self.findings({"host/lost.rs": "", "other/x.rs": ""}), [
            "other/x.rs:1: in no area of layers.table",
            "host/lost.rs:1: in no layer: add it to layers.table",
            "host/lost.rs:1: not a module of host/host.rs"])

    def test_table(self):
        for wrong, line in (("uses rrdma", 2), ("3 host.rs: x", 5), ("x host.rs: x", 5)):
            table = TABLE.replace("uses rrdma" if line == 2 else "3 host.rs: the module",
                                  "with rrdma" if line == 2 else wrong.replace("3", "2"))
            with self.assertRaisesRegex(layers.table.TableError, f"layers.table:{line}: "):
                self.findings({}, table)
        self.assertEqual(self.findings({}, TABLE.replace("queue/sizes", "queue/size")), [
            "layers.table:4: no file belongs to host/queue/size: remove it"])
        stale = TABLE.replace("area rdma", "allow errors.rs -> queue.rs: planted\narea rdma")
        self.assertEqual(self.findings({}, stale), [
            "layers.table:6: errors.rs does not import queue.rs: remove the line"])


class Ours(unittest.TestCase):
    """A copy of a crate of this tree, with its layers of layers.table."""

    def test_planted(self):
        area = next(area for area in layers.areas.read(layers.areas.TABLE)
                    if area.directory == "drivers/nvme/proto")
        with tempfile.TemporaryDirectory() as scratch:
            top = pathlib.Path(scratch)
            shutil.copytree(TOP / area.directory, top / area.directory,
                            ignore=lambda *_: ["target"])
            before = set(layers.layers(area, top, layers.table.sources(top)))
            for file, line in (("cqe", "use crate::policy::Planted;"),
                               ("status", "use super::cqe::Circle;")):
                with open(top / area.directory / f"format/{file}.rs", "a", encoding="utf-8") as out:
                    out.write(line)
            after = set(layers.layers(area, top, layers.table.sources(top)))
        circle, upward = sorted(after - before, key=lambda line: " circle " not in line)
        self.assertRegex(upward, r"format/cqe\.rs:\d+: layer \d .* Planted of policy\.rs, ")
        self.assertRegex(circle, r"format/cqe\.rs:\d+ \(\w+\) -> format/status\.rs:\d+ "
                                 r"\(Circle\) -> format/cqe\.rs: ")


if __name__ == "__main__":
    unittest.main()

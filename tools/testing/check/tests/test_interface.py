# SPDX-License-Identifier: GPL-2.0
"""Tests of the hash in Kbuild that is part of each symbol of rrdma, with planted sources."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from . import TOP

# What the kernel's build system sets before it reads Kbuild. Its functions expand to nothing.
MAKEFILE = """\
print: ; @echo '$(RUSTFLAGS_rust/rrdma.o)'
src := {top}/source
obj := {top}/source
VERSION := 7
PATCHLEVEL := 3
objtree := {top}/kernel
KERNELRELEASE := {release}
include $(src)/Kbuild
"""
FILES = {
    "source/rust/rrdma.rs": "pub struct Region { key: u32 }",
    "source/rust/rdma/qp.rs": "pub struct QueuePair;",
    "source/rust/bindings/helpers.c": "int helper(void);",
    "source/rust/bindings/bindings_helper.h": "#include <rdma/ib_verbs.h>",
    "source/rust/nvmet/nvmet.rs": "pub struct Port;",
    "source/drivers/nvme/host/rnvmf.rs": "struct Host;",
    "kernel/include/config/auto.conf": "CONFIG_RUSTC_VERSION=108500\nCONFIG_SMP=y",
}


class Interface(unittest.TestCase):
    """Two builds of rrdma that differ in one thing."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.top = pathlib.Path(scratch.name)
        for name, text in FILES.items():
            self.write(name, text)
        shutil.copy(TOP / "Kbuild", self.top / "source")
        self.before = self.hash()

    def write(self, name, text):
        """Write a planted file."""
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def hash(self, release="7.3.4"):
        """Return the hash with which Kbuild would build rrdma for this kernel release."""
        makefile = MAKEFILE.format(top=self.top, release=release)
        flags = subprocess.run(["make", "-s", "-f", "-", "print"], input=makefile, cwd=self.top,
                               check=True, stdout=subprocess.PIPE, text=True).stdout
        found = re.findall(r"-Cmetadata=([0-9a-f]{64})\b", flags)
        self.assertEqual(len(found), 1, f"one -Cmetadata with a hash in: {flags}")
        return found[0]

    def changes(self, name, text):
        """Write a planted file, and require another hash."""
        self.write(name, text)
        self.assertNotEqual(self.before, self.hash(), f"{name} has changed")

    def test_same_build(self):
        """The same files have the same hash, so that a module need not be built again."""
        self.write("source/rust/rrdma.rs", FILES["source/rust/rrdma.rs"])
        self.assertEqual(self.before, self.hash())

    def test_private_field(self):
        """A private field changes the layout of values that users have."""
        self.changes("source/rust/rrdma.rs", "pub struct Region { key: u32, other: u64 }")

    def test_file_below(self):
        """Each file of the crate counts, and a new one."""
        self.changes("source/rust/rdma/qp.rs", "pub struct QueuePair(u8);")
        self.write("source/rust/rdma/qp.rs", FILES["source/rust/rdma/qp.rs"])
        self.changes("source/rust/rdma/cq.rs", "pub struct CompletionQueue;")

    def test_moved_text(self):
        """Text that moves from the end of a file to the start of the next is in another module."""
        self.write("source/rust/sync/a.rs", "struct A;\nstruct B;\n")
        self.write("source/rust/sync/b.rs", "struct C;\n")
        before = self.hash()
        self.write("source/rust/sync/a.rs", "struct A;\n")
        self.write("source/rust/sync/b.rs", "struct B;\nstruct C;\n")
        self.assertNotEqual(before, self.hash())

    def test_bindings(self):
        """The helpers in C and the headers count."""
        self.changes("source/rust/bindings/helpers.c", "long helper(void);")
        self.write("source/rust/bindings/helpers.c", FILES["source/rust/bindings/helpers.c"])
        self.changes("source/rust/bindings/bindings_helper.h", "#include <rdma/rdma_cm.h>")

    def test_configuration_and_compiler(self):
        """The kernel's configuration counts, which has the version of rustc."""
        name = "kernel/include/config/auto.conf"
        self.changes(name, "CONFIG_RUSTC_VERSION=108500\nCONFIG_SMP=y\nCONFIG_KASAN=y")
        self.changes(name, "CONFIG_RUSTC_VERSION=108600\nCONFIG_SMP=y")

    def test_flags(self):
        """The flags in Kbuild count."""
        with open(self.top / "source/Kbuild", "a", encoding="utf-8") as kbuild:
            kbuild.write("RUSTFLAGS_rust/rrdma.o += -Copt-level=0\n")
        self.assertNotEqual(self.before, self.hash())

    def test_release(self):
        """Another release of the kernel has other structures."""
        self.assertNotEqual(self.before, self.hash(release="7.3.5"))

    def test_outputs(self):
        """What a build in the source directory writes does not count, as DKMS builds there."""
        for name in ("rrdma.o", ".rrdma.o.cmd", "librrdma.rmeta", "exports_generated.h",
                     "bindings/bindings_generated.rs"):
            self.write(f"source/rust/{name}", "output")
        self.assertEqual(self.before, self.hash())

    def test_others(self):
        """Crates that rrdma does not use do not count: its users need not be built again."""
        self.write("source/rust/nvmet/nvmet.rs", "pub struct Port(u8);")
        self.write("source/drivers/nvme/host/rnvmf.rs", "struct Host(u8);")
        self.assertEqual(self.before, self.hash())


if __name__ == "__main__":
    unittest.main()

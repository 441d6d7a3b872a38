# SPDX-License-Identifier: GPL-2.0
"""Tests of tools/boot/check-layout, with a planted kernel and changes of it."""

import copy
import pathlib
import struct
import subprocess
import tempfile
import unittest

from . import TOP

LAYOUT = """\
nvme_ctrl 24
nvme_ctrl::ops 8
nvme_ctrl::state 20
nvme_sgl_desc 16
nvme_sgl_desc::addr 0
NVME_CTRL_NEW 0
NVME_CTRL_LIVE 1
"""
# kind, name, size, members: name -> offset in bytes, or value of an enumerator
STRUCT, ENUM = 4, 6
VMLINUX = [[STRUCT, "nvme_sgl_desc", 16, {"addr": 0, "length": 8}], [STRUCT, "list", 8, {"ops": 0}]]
CORE = [[STRUCT, "nvme_ctrl", 24, {"addr": 0, "ops": 8, "state": 20}],
        [ENUM, "nvme_ctrl_state", 4, {"NVME_CTRL_NEW": 0, "NVME_CTRL_LIVE": 1}]]


def elf(name, data):
    """Return an ELF file with one section."""
    names = b"\0" + name + b"\0.shstrtab\0"
    table = 64 + len(data) + len(names)
    headers = [(0, 0, 0), (1, 64, len(data)), (len(name) + 2, 64 + len(data), len(names))]
    return (b"\x7fELF".ljust(40, b"\0") + struct.pack("<Q10xHHH", table, 64, 3, 2) + data + names
            + b"".join(struct.pack("<IIQQQQ24x", named, 1, 0, 0, start, size)
                       for named, start, size in headers))


class Strings:
    """Strings of BTF, those of the base first."""

    def __init__(self, base=None):
        self._base = base
        self.data = b"" if base else b"\0"

    def find(self, name):
        """Return the offset of a name in this part or in the base."""
        at = self.data.find(b"\0" + name.encode() + b"\0")
        return at + 1 if at >= 0 else None

    def offset(self, name):
        """Return the offset of a name; add it if the base does not have it."""
        if self._base and self._base.find(name):
            return self._base.find(name)
        self.data += name.encode() + b"\0"
        return (len(self._base.data) if self._base else 0) + len(self.data) - len(name) - 1


def btf(types, strings):
    """Return BTF with an integer before the types."""
    data = struct.pack("<IIII", strings.offset("int"), 1 << 24, 4, 32)
    for kind, name, size, members in types:
        data += struct.pack("<III", strings.offset(name), kind << 24 | len(members), size)
        for member, value in members.items():
            data += (struct.pack("<III", strings.offset(member), 1, value * 8) if kind == STRUCT
                     else struct.pack("<II", strings.offset(member), value))
    return struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(data), len(data),
                       len(strings.data)) + data + strings.data


class Planted(unittest.TestCase):
    """Modules and kernels that differ."""

    def check(self, core, layout=LAYOUT, name=b".BTF"):
        """Return the status and the output of check-layout."""
        with tempfile.TemporaryDirectory() as scratch:
            files = [pathlib.Path(scratch, name) for name in ("module.ko", "vmlinux", "core", "no")]
            base = Strings()
            files[0].write_bytes(elf(b".comment.nvme_layout", layout.encode()))
            files[1].write_bytes(elf(name, btf(VMLINUX, base)))
            # As below /sys/kernel/btf.
            files[2].write_bytes(btf(core, Strings(base)) if core else b"")
            done = subprocess.run([TOP / "tools/boot/check-layout", *files], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return done.returncode, done.stdout.replace(str(files[0]), "MODULE")

    def refused(self, why, core, layout=LAYOUT):
        """The first line must tell this difference."""
        self.assertEqual(self.check(core, layout), (
            1, f"check-layout: {why}; build the module again from the source of this very "
               "kernel\n"))

    def test_same(self):
        self.assertEqual(self.check(CORE), (0, ""))

    def test_changed(self):
        core = copy.deepcopy(CORE)
        core[0][2:] = 32, {"addr": 0, "new": 8, "ops": 16, "state": 28}
        self.refused("offset of nvme_ctrl::ops: 8 in the module, 16 in the kernel", core)
        core[0][3] = CORE[0][3]
        self.refused("size of nvme_ctrl: 24 in the module, 32 in the kernel", core)
        core[0] = [STRUCT, "nvme_ctrl", 24, {"addr": 0, "ops": 8}]
        self.refused("offset of nvme_ctrl::state: 20 in the module, missing in the kernel", core)
        core = copy.deepcopy(CORE)
        core[1][3] = {"NVME_CTRL_NEW": 0, "NVME_CTRL_DEAD": 1, "NVME_CTRL_LIVE": 2}
        self.refused("value of NVME_CTRL_LIVE: 1 in the module, 2 in the kernel", core)

    def test_base(self):
        changed = LAYOUT.replace("addr 0", "addr 8")
        self.refused("offset of nvme_sgl_desc::addr: 8 in the module, 0 in the kernel", CORE,
                     changed)

    def test_two(self):
        twice = [*CORE, [STRUCT, "nvme_ctrl", 24, {"ops": 16}]]
        self.refused("offset of nvme_ctrl::ops: 8 in the module, 8 or 16 in the kernel", twice)

    def test_no_layout(self):
        self.assertEqual(self.check(CORE, "NVME_CTRL_NEW 0\n"), (
            1, "check-layout: MODULE has no layout of nvmet_req or nvme_ctrl\n"))

    def test_no_btf(self):
        self.assertEqual(self.check([], name=b".data"), (
            0, "check-layout: the kernel has no BTF of nvme_ctrl: layout not checked\n"))

# SPDX-License-Identifier: GPL-2.0
"""Tests of the probe of a kernel build directory."""

import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from . import write

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

# pylint: disable=wrong-import-position
from vmlib import probe

CLANG = 'CONFIG_CC_IS_CLANG=y\nCONFIG_CC_VERSION_TEXT="clang version 19.1.7"\n'


class Planted(unittest.TestCase):
    """Directories that cannot be built for as they are."""

    def complaints(self, config, **environment):
        """Return the obstacles in the choice of the C compiler."""
        with tempfile.TemporaryDirectory() as scratch:
            kdir = pathlib.Path(scratch)
            write(kdir, {".config": config})
            kept = {name: value for name, value in os.environ.items() if name not in ("CC", "LLVM")}
            with mock.patch.dict(os.environ, {**kept, **environment}, clear=True):
                return [reason for reason in probe.toolchain(kdir) if "LLVM" in reason]

    def test_clang(self):
        self.assertEqual(self.complaints(CLANG), [
            "the kernel was built by clang version 19.1.7: build with LLVM=1"])
        self.assertEqual(self.complaints(CLANG, LLVM="1"), [])
        self.assertEqual(self.complaints(CLANG, CC="clang-19"), [])
        self.assertEqual(self.complaints("CONFIG_CC_IS_GCC=y\n"), [])

    def test_blank(self):
        self.assertEqual(probe.tree(pathlib.Path("/a b")), [
            "/a b: the kernel's makefiles accept no blank and no colon in a path"])

    def test_replacement(self):
        with tempfile.TemporaryDirectory() as scratch:
            kdir = pathlib.Path(scratch)
            write(kdir, {".config": "CONFIG_RUST=y\n"})
            no_host, no_target = (f"{name} is not built: " for name in
                                  ("nvme_rdma_rust", "nvmet_rdma_rust"))
            lack = "header packages lack the private headers of"
            here = "so build in the source tree of this very kernel"
            self.assertEqual(probe.replacement(kdir, "--transport"), [
                f"{no_host}{kdir}/drivers/nvme/host/nvme.h is missing: {lack} nvme-core, {here}",
                f"{no_host}CONFIG_NVME_FABRICS is not set: no NVMe over fabrics"])
            self.assertEqual(probe.replacement(kdir, "--target"), [
                f"{no_target}{kdir}/drivers/nvme/target/nvmet.h is missing: {lack} nvmet, {here}",
                f"{no_target}CONFIG_NVME_TARGET is not set: no NVMe target"])
            write(kdir, {".config": "CONFIG_NVME_FABRICS=m\nCONFIG_NVME_TARGET=m\n",
                         "source/drivers/nvme/host/nvme.h": "", "drivers/nvme/target/nvmet.h": ""})
            for option in probe.REPLACEMENTS:
                self.assertEqual(probe.replacement(kdir, option), [])

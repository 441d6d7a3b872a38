# SPDX-License-Identifier: GPL-2.0
"""Paths in a kernel of the cache."""


class Tree:
    """A kernel in the cache."""

    def __init__(self, path, release, slowdown):
        self.path = path
        self.release = release
        # Factor for time limits that are meant for a stock kernel.
        self.slowdown = slowdown
        self.build = path / "build"
        self.image = path / "vmlinuz"
        self.unpacked_image = path / "vmlinux"
        self.modules = path / "lib/modules" / release
        self.modules_image = path / "modules.erofs"
        self.initramfs = path / "initramfs.cpio"

    @property
    def bootable(self):
        """The image to boot: the unpacked one if it exists, because unpacking takes seconds."""
        return self.unpacked_image if self.unpacked_image.exists() else self.image

# SPDX-License-Identifier: GPL-2.0
"""The files that a VM boots from: the image of a kernel, and the initramfs that mounts it."""

import pathlib
import re

from . import cpio, image, root
from .log import ToolError, step

# Modules that the initramfs loads, with their dependencies.
MODULES = ["virtio_pmem", "nd_pmem", "erofs", "overlay", "9p", "9pnet_virtio", "configfs"]

# What the VM has of the kernel's build directory, in KERNEL.
PARTS = ["tools", "Documentation"]
KERNEL = "opt/rnvmf/kernel"


def images(tree):
    """Make the image of the modules and of parts of the source, and the initramfs."""
    with step(f"image of kernel {tree.release}"):
        root.quietly(["depmod", "-b", tree.path, tree.release])
        image.make(tree.modules_image, [
            (tree.path / "lib", "usr/lib"),
            *((tree.build / part, f"{KERNEL}/{part}") for part in [*PARTS, ".config"])])
    archive = cpio.Archive()
    for name in ("bin", "dev", "proc", "root", "lower", "lower/root", "lower/kernel", "modules",
                 "upper", "upper/opt", "upper/opt/rnvmf", "upper/opt/rnvmf/kernel",
                 "upper/opt/rnvmf/src", "opt", "opt/rnvmf", "work"):
        archive.directory(name)
    archive.file("bin/busybox", (root.ensure() / "usr/bin/busybox").read_bytes(), 0o755)
    order = _load_order(tree, MODULES)
    for module in order:
        archive.file(f"modules/{module.name}", module.read_bytes())
    archive.file("modules/order", "".join(f"{module.name}\n" for module in order).encode())
    tree.initramfs.write_bytes(archive.finish())


def _load_order(tree, names):
    """Return the files of modules and of their dependencies, in the order to load them."""
    lines = (tree.modules / "modules.dep").read_text(encoding="utf-8").splitlines()
    dependencies = {file: needs.split() for file, needs in
                    (line.split(":", 1) for line in lines)}
    by_name = {pathlib.Path(file).stem.replace("-", "_"): file for file in dependencies}
    builtin = (tree.modules / "modules.builtin").read_text(encoding="utf-8")
    order = []
    for name in names:
        if name in by_name:
            file = by_name[name]
            order += [one for one in (*reversed(dependencies[file]), file) if one not in order]
        elif not re.search(rf"/{name.replace('_', '[-_]')}\.ko$", builtin, re.MULTILINE):
            raise ToolError(f"kernel {tree.release} has no module {name}, which the VM requires")
    return [tree.modules / file for file in order]

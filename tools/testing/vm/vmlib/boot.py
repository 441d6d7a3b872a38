# SPDX-License-Identifier: GPL-2.0
"""The images that a VM boots from: the kernel's modules, and the initramfs that mounts them."""

import pathlib
import re

from . import cpio, root
from .log import ToolError, step

# Modules that the initramfs loads, with their dependencies.
MODULES = ["virtio_blk", "erofs", "overlay", "9p", "9pnet_virtio", "configfs"]


def images(tree):
    """Make the image of the modules, and the initramfs."""
    with step(f"image of the modules of kernel {tree.release}"):
        root.quietly(["depmod", "-b", tree.path, tree.release])
        root.quietly(["mkfs.erofs", "--quiet", "--all-root", "-T0", tree.modules_image, "/image"],
                     binds=[(tree.path / "lib", "/image/usr/lib")])
    archive = cpio.Archive()
    for name in ("bin", "dev", "proc", "root", "lower", "lower/root", "lower/modules", "modules",
                 "upper", "work"):
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

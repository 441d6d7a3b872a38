# SPDX-License-Identifier: GPL-2.0
"""The read-only image of the VM's root file system: the root without the toolchain."""

from . import cache, root
from .log import step

# Regular expressions for paths of the root that the image omits, because no VM reads them.
LEFT_OUT = [
    "^usr/src/", "^usr/include/", "^usr/lib/llvm-", "^usr/lib/rustlib", "^usr/lib(exec)?/gcc",
    "^usr/lib/git-core", "^usr/lib/x86_64-linux-gnu/[^/]*[.]a$", "librustc_driver",
    "^usr/share/qemu",
    "^usr/bin/(bindgen|cargo|clang|clippy|git|qemu|rust|shellcheck|x86_64-linux-gnu)",
    "^var/(cache|lib/apt|lib/dpkg)", "^(dev|proc|run|sys|tmp)/.",
]


def ensure():
    """Return the path of the image; make it if missing."""
    name = "image-" + cache.key(root.name(), LEFT_OUT)
    return cache.ensure(name, _make) / "root.erofs"


def _make(directory):
    source = root.ensure()
    with step("image of the VM's root"):
        root.quietly(["mkfs.erofs", "--quiet", "--all-root", "-T0",
                      *(f"--exclude-regex={path}" for path in LEFT_OUT),
                      directory / "root.erofs", "/source"], binds=[(source, "/source")])

# SPDX-License-Identifier: GPL-2.0
"""The read-only images of the VM: made by `make`, and that of the root without the toolchain.

The VM has them as persistent memory, which a CPU reads without waiting for the host. The data of a
disk would arrive at a moment that depends on the host's load. On counted time, the clock of an idle
VM leaps meanwhile.
"""

import os

from . import cache, engines, root
from .log import step

# Regular expressions for paths of the root that the image omits, because no VM reads them.
LEFT_OUT = [
    "^usr/src/", "^usr/include/", "^usr/lib/llvm-", "^usr/lib/rustlib", "^usr/lib(exec)?/gcc",
    "^usr/lib/git-core", "^usr/lib/x86_64-linux-gnu/[^/]*[.]a$", "librustc_driver",
    "^usr/share/qemu",
    "^usr/bin/(bindgen|cargo|clang|clippy|git|qemu|rust|shellcheck|x86_64-linux-gnu)",
    "^var/(cache|lib/apt|lib/dpkg)", "^(dev|proc|run|sys|tmp)/.",
]


# Changes when the image is made in another way.
RECIPE = 1

# The size of persistent memory is a multiple of this.
ALIGNMENT = 2 << 20


def make(path, folders, excluded=()):
    """Make an image of folders: pairs of a path outside and a path in the image.

    The outside may be a file, too. A later one hides what an earlier one has at its path.
    `excluded` has regular expressions for paths in the image. Files keep their times: python does
    not use bytecode that has another time than the source.
    """
    root.quietly(["mkfs.erofs", "--quiet", "--all-root",
                  *(f"--exclude-regex={pattern}" for pattern in excluded), path, "/image"],
                 binds=[(outside, f"/image/{inside}") for outside, inside in folders])
    os.truncate(path, -(-path.stat().st_size // ALIGNMENT) * ALIGNMENT)


def ensure():
    """Return the path of the root's image; make it if missing."""
    name = "image-" + cache.key(root.name(), LEFT_OUT, ALIGNMENT, engines.LIBRARIES, RECIPE)
    return cache.ensure(name, _make) / "root.erofs"


def _make(directory):
    source = root.ensure()
    with step("image of the VM's root"):
        make(directory / "root.erofs", [(source, ""), *engines.stand_ins(directory)], LEFT_OUT)

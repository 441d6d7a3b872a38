# SPDX-License-Identifier: GPL-2.0
"""Stock kernels: image, modules, and a build tree with Rust metadata.

Debian's header packages have no Rust metadata. It is made from the source package of the same
version, with the stock configuration and the same compilers. It is used only if the stock
Module.symvers has every symbol that the metadata needs.
"""

import mmap
import os
import re
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor

from . import boot, cache, probe, root, source
from .log import ToolError, step
from .process import run
from .tree import Tree

# Version of what make() makes: increase it with each change, so that kernels are made again.
RECIPE = 7

# Sources that neither the preparation nor a module build reads: patterns relative to the tree.
UNREAD = [
    "arch/[!x]*/*.[chS]", "arch/xtensa/*.[chS]", "arch/*.dts*",
    "drivers/*.[cS]", "drivers/*.rs", "drivers/gpu/*.h",
    "sound/*.[cS]", "fs/*.[cS]", "net/*.[cS]", "mm/*.[cS]", "crypto/*.[cS]",
    "Documentation/*.rst", "Documentation/*.svg", "Documentation/devicetree/*",
    "tools/perf", "tools/testing/selftests/*/*.[cS]",
]

# For the preparation only. Do not optimise procedural macros: optimising `syn` takes longer than
# running all of them. Modules get no BTF here, so the tools that make BTF are not built.
PREPARATION = ["HOSTRUSTFLAGS=-Copt-level=0", "CONFIG_DEBUG_INFO_BTF="]

# The end of a signed module: the signature, struct module_signature, whose last member is the
# length of the signature, and this text (include/linux/module_signature.h).
SIGNATURE_MAGIC = b"~Module signature appended~\n"
SIGNATURE_INFO = struct.Struct(">8xI")

# The name of the section with the addresses of a module's calls to __fentry__, and one that the
# kernel does not know.
CALL_SITES = b"__mcount_loc\0"
HIDDEN_CALL_SITES = b"__fentry_nop\0"
# The directories of the modules that tests and benchmarks probe.
PROBED = {"infiniband", "nvme"}

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

# Time limits are meant for these kernels.
SLOWDOWN = 1

# Contents of .kernelvariables, which the kernel's Makefile includes on each run in the tree.
VARIABLES = """\
override ARCH = x86
override KERNELRELEASE = {release}
override CROSS_COMPILE = x86_64-linux-gnu-
CC = $(CROSS_COMPILE)gcc-14
HOSTCC = gcc-14
"""


def name(kernel):
    """Return the name of a kernel in the cache."""
    return f"kernel-{kernel.release}-" + cache.key(
        kernel, root.name(), RECIPE, UNREAD, PREPARATION, boot.MODULES, boot.PARTS, VARIABLES)


def release(kernel):
    """Return the release of a kernel."""
    return kernel.release


def make(directory, kernel):
    """Make the tree of a kernel in a directory."""
    tree = Tree(directory, release(kernel), SLOWDOWN)
    source.beside_root(_unpack, tree, kernel)
    with ThreadPoolExecutor() as pool:
        modules = pool.submit(_unpack_modules, tree)
        _prepare(tree)
        modules.result()
    boot.images(tree)


def _unpack(tree, kernel):
    unpacked = tree.path / "unpacked"
    with source.packages(tree.path, kernel, kernel.packages) as files:
        with step(f"unpacking kernel {kernel.release}"):
            for file in files:
                if file.name.startswith("linux-source-"):
                    source.unpack(file, tree.build, UNREAD)
                else:
                    run(["dpkg-deb", "-x", file, unpacked])
            _arrange(tree, unpacked / "usr")
    shutil.rmtree(unpacked)


def _arrange(tree, unpacked):
    """Move the files of the packages to the paths of `tree`."""
    tree.modules.parent.mkdir(parents=True)
    (unpacked / "lib/modules" / tree.release).rename(tree.modules)
    for name in ("vmlinuz", "vmlinuz.unsigned"):
        if (tree.modules / name).exists():
            (tree.modules / name).rename(tree.image)
    if not tree.image.exists():
        raise ToolError(f"no kernel image in the packages of kernel {tree.release}")
    for link in ("build", "source"):
        (tree.modules / link).unlink(missing_ok=True)
    headers = unpacked / f"src/linux-headers-{tree.release}"
    for name in (".config", "Module.symvers"):
        shutil.copy(headers / name, tree.build / name)


def _prepare(tree):
    """Prepare the build tree for external modules in Rust."""
    stock = (tree.build / ".config").read_text(encoding="utf-8")
    (tree.build / ".kernelvariables").write_text(VARIABLES.format(release=tree.release),
                                                 encoding="utf-8")
    # The release is the upstream version with this suffix.
    suffix = re.sub(r"^[\d.]+", "", tree.release)
    with step(f"Rust metadata of kernel {tree.release}"):
        root.quietly(["make", f"-j{os.cpu_count()}", f"LOCALVERSION={suffix}",
                      *PREPARATION, "prepare", "modules_prepare"], cwd=tree.build)
    if (tree.build / ".config").read_text(encoding="utf-8") != stock:
        raise ToolError(f"`make prepare` changes the configuration of {tree.release}: the root "
                        "does not have the compilers that the kernel was built with")
    if source.release(tree.build) != tree.release:
        raise ToolError(f"the source of {tree.release} has release {source.release(tree.build)}")
    reasons = probe.tree(tree.build) + probe.vm(tree.build)
    if reasons:
        raise ToolError("; ".join(reasons))


def _unpack_modules(tree):
    with step(f"modules of kernel {tree.release}"):
        packed = [str(path) for path in tree.modules.rglob("*.ko.xz")]
        run(["xargs", "-0", "-P", os.cpu_count(), "-n", "64", "xz", "-d"],
            input="\0".join(packed))
        for path in tree.modules.rglob("*.ko"):
            _remove_signature(path)
            if PROBED.isdisjoint(path.parts):
                _hide_call_sites(path)
        _unpack_image(tree)


def _remove_signature(module):
    """Remove a module's signature: to verify it, the emulator takes a third of a second."""
    with open(module, "r+b") as file:
        end = file.seek(0, os.SEEK_END) - len(SIGNATURE_MAGIC)
        file.seek(max(end - SIGNATURE_INFO.size, 0))
        info = file.read(SIGNATURE_INFO.size)
        if file.read() == SIGNATURE_MAGIC:
            file.truncate(end - SIGNATURE_INFO.size - SIGNATURE_INFO.unpack(info)[0])


def _hide_call_sites(module):
    """Rename the section by which ftrace finds the calls in a module, which are compiled as no-ops.

    ftrace looks up the symbol of each call, by a search through all symbols: the emulator takes
    ten seconds for xfs. Without the section no function of the module can be traced or probed.
    """
    with open(module, "r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        # The names of sections are at the end of the file.
        place = content.rfind(CALL_SITES)
        if place >= 0:
            content[place:place + len(CALL_SITES)] = HIDDEN_CALL_SITES


def _unpack_image(tree):
    """Extract the kernel from its image if that is compressed by zstd, as in Debian."""
    data = tree.image.read_bytes()
    # Offsets from Documentation/arch/x86/boot.rst.
    setup_sectors = data[0x1f1]
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    # The last four bytes of the payload are the uncompressed size, not part of the stream.
    packed = data[start:start + length - 4]
    if packed.startswith(ZSTD_MAGIC):
        stream = tree.path / "vmlinux.zst"
        stream.write_bytes(packed)
        root.quietly(["zstd", "-d", "--quiet", "--rm", stream, "-o", tree.unpacked_image])

# SPDX-License-Identifier: GPL-2.0
"""Stock kernels: image, modules, and a build tree with Rust metadata.

Debian's header packages have no Rust metadata. It is made from the source package of the same
version with the stock configuration and the same compilers, and then checked: every symbol that
the metadata promises must be in the stock Module.symvers.
"""

import os
import pathlib
import re
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor

from . import cache, cpio, index, mirror, probe, root
from .process import pipe, run
from .say import GroundError, UsageError, note, step

# The name of the newest kernel on offer.
NEWEST = "newest"

# To be raised whenever _make() makes something else than before.
RECIPE = 2

# Sources that neither the preparation nor a module build reads, relative to the source tree.
UNREAD = [
    "arch/[!x]*/*.[chS]", "arch/xtensa/*.[chS]", "arch/*.dts*",
    "drivers/*.[cS]", "drivers/*.rs", "drivers/gpu/*.h",
    "sound/*.[cS]", "fs/*.[cS]", "net/*.[cS]", "mm/*.[cS]", "crypto/*.[cS]",
    "Documentation/*.rst", "Documentation/*.svg", "Documentation/devicetree/*",
    "tools/perf", "tools/testing/selftests/*/*.[cS]",
]

# For the preparation only. Macros need not be fast: optimising `syn` takes longer than all they
# do. Type information is not made for modules here, so its tools are not either.
PREPARATION = ["HOSTRUSTFLAGS=-Copt-level=0", "CONFIG_DEBUG_INFO_BTF="]

# What the initramfs loads, dependencies aside.
BOOT_MODULES = ["virtio_blk", "erofs", "overlay", "9p", "9pnet_virtio", "configfs"]

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

_KEPT = re.compile(r"kernel-(.+)-[0-9a-f]{12}$")
_VERSION = re.compile(r"\d+\.\d+(\.\d+\S*)?$")

# Read by the kernel's Makefile on every run of make in the tree.
VARIABLES = """\
override ARCH = x86
override KERNELRELEASE = {release}
override CROSS_COMPILE = x86_64-linux-gnu-
CC = $(CROSS_COMPILE)gcc-14
HOSTCC = gcc-14
"""


class Tree:
    """A kernel in the cache."""

    def __init__(self, path, release):
        self.path = path
        self.release = release
        self.build = path / "build"
        self.image = path / "vmlinuz"
        self.unpacked_image = path / "vmlinux"
        self.modules = path / "lib/modules" / release
        self.modules_image = path / "modules.erofs"
        self.initramfs = path / "initramfs.cpio"

    @property
    def bootable(self):
        """The image to boot: the unpacked one, which spares seconds of emulation, if there is."""
        return self.unpacked_image if self.unpacked_image.exists() else self.image


def _matches(release, wanted):
    return release == wanted or re.match(re.escape(wanted) + r"[.+-]", release)


def choose(wanted):
    """The kernel on offer that `wanted` (such as 7.3, or None for the newest) names."""
    offered = index.load().kernels
    if wanted in (None, NEWEST):
        return offered[0]
    if not _VERSION.match(wanted):
        raise UsageError(f"{wanted!r} is not a kernel version such as 7.3 or 7.3.4, nor {NEWEST}")
    for kernel in offered:
        if _matches(kernel.release, wanted):
            return kernel
    names = ", ".join(kernel.release for kernel in offered)
    note(f"kernel {wanted} is not on the mirror, which has {names}; taking {offered[0].release}")
    return offered[0]


def _name(kernel):
    return f"kernel-{kernel.release}-" + cache.key(
        kernel, root.name(), RECIPE, UNREAD, PREPARATION, BOOT_MODULES,
        VARIABLES)


def ensure(wanted=None):
    """Return the tree of a kernel, making it when it is missing."""
    kernel = choose(wanted)
    if not cache.has(_name(kernel)):
        # The mirror may have moved on since the index was made.
        index.refresh()
        kernel = choose(wanted)
    path = cache.ensure(_name(kernel), lambda directory: _make(directory, kernel))
    return Tree(path, kernel.release)


def _make(directory, kernel):
    with ThreadPoolExecutor() as pool:
        # The download and the root's bootstrap wait for different things.
        toolchain = pool.submit(root.ensure)
        _unpack(directory, kernel)
        toolchain.result()
    tree = Tree(directory, kernel.release)
    with ThreadPoolExecutor() as pool:
        image = pool.submit(_images, tree)
        _prepare(tree)
        image.result()


def _unpack(directory, kernel):
    stable = index.load()
    options = index.apt(stable.codename, mirror.uri())
    packages = directory / "packages"
    packages.mkdir()
    with step(f"download of kernel {kernel.release}"):
        run(["apt-get", *options, "-qq", "download",
             *(f"{name}={kernel.version}" for name in kernel.packages)], cwd=packages)
    with step(f"unpacking kernel {kernel.release}"):
        for name in kernel.packages:
            file = next(packages.glob(f"{name}_*.deb"))
            if name.startswith("linux-source-"):
                _unpack_source(file, directory / "build")
            else:
                run(["dpkg-deb", "-x", file, directory / "unpacked"])
        _arrange(directory, kernel.release)
    shutil.rmtree(packages)
    shutil.rmtree(directory / "unpacked")


def _unpack_source(file, build):
    build.mkdir()
    top = file.name.partition("_")[0]
    pipe(["dpkg-deb", "--fsys-tarfile", file],
         ["tar", "-xO", f"./usr/src/{top}.tar.xz"],
         ["xz", "-dc", "-T0"],
         ["tar", "-C", build, "-x", "--strip-components=1", "--no-same-owner", "--wildcards",
          "--anchored", *(f"--exclude={top}/{pattern}" for pattern in UNREAD)])


def _arrange(directory, release):
    """Put what the packages hold where a Tree says."""
    tree = Tree(directory, release)
    unpacked = directory / "unpacked/usr"
    tree.modules.parent.mkdir(parents=True)
    (unpacked / "lib/modules" / release).rename(tree.modules)
    for name in ("vmlinuz", "vmlinuz.unsigned"):
        if (tree.modules / name).exists():
            (tree.modules / name).rename(tree.image)
    if not tree.image.exists():
        raise GroundError(f"the packages of kernel {release} hold no kernel image")
    for link in ("build", "source"):
        (tree.modules / link).unlink(missing_ok=True)
    headers = unpacked / f"src/linux-headers-{release}"
    for name in (".config", "Module.symvers"):
        shutil.copy(headers / name, tree.build / name)


def _prepare(tree):
    """Make the build tree fit for external modules in Rust."""
    stock = (tree.build / ".config").read_text(encoding="utf-8")
    (tree.build / ".kernelvariables").write_text(VARIABLES.format(release=tree.release),
                                                 encoding="utf-8")
    # The release is the upstream version with this suffix.
    suffix = re.sub(r"^[\d.]+", "", tree.release)
    with step(f"Rust metadata of kernel {tree.release}"):
        root.quietly(["make", f"-j{os.cpu_count()}", f"LOCALVERSION={suffix}",
                      *PREPARATION, "prepare", "modules_prepare"], cwd=tree.build)
    if (tree.build / ".config").read_text(encoding="utf-8") != stock:
        raise GroundError(f"the tools of the root change the configuration of {tree.release}: "
                          "they are not those that the kernel was built with")
    release = (tree.build / "include/config/kernel.release").read_text(encoding="utf-8").strip()
    if release != tree.release:
        raise GroundError(f"the source of {tree.release} calls itself {release}")
    reasons = probe.tree(tree.build) + probe.ground(tree.build)
    if reasons:
        raise GroundError("; ".join(reasons))


def _images(tree):
    """Make the modules' image and the initramfs that can mount it."""
    with step(f"modules of kernel {tree.release}"):
        packed = [str(path) for path in tree.modules.rglob("*.ko.xz")]
        run(["xargs", "-0", "-P", os.cpu_count(), "-n", "64", "xz", "-d"],
            input="\0".join(packed))
        root.quietly(["depmod", "-b", tree.path, tree.release])
        root.quietly(["mkfs.erofs", "--quiet", "--all-root", "-T0", tree.modules_image, "/image"],
                     binds=[(tree.path / "lib", "/image/usr/lib")])
        _unpack_image(tree)
    archive = cpio.Archive()
    for name in ("bin", "dev", "proc", "root", "lower", "lower/root", "lower/modules", "modules",
                 "upper", "work"):
        archive.directory(name)
    archive.file("bin/busybox", (root.ensure() / "usr/bin/busybox").read_bytes(), 0o755)
    order = _load_order(tree, BOOT_MODULES)
    for module in order:
        archive.file(f"modules/{module.name}", module.read_bytes())
    archive.file("modules/order", "".join(f"{module.name}\n" for module in order).encode())
    tree.initramfs.write_bytes(archive.finish())


def _unpack_image(tree):
    """Take the kernel proper out of its image, if it is packed in the way that Debian packs it."""
    data = tree.image.read_bytes()
    # Offsets of Documentation/arch/x86/boot.rst.
    setup_sectors = data[0x1f1]
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    # The last four bytes of the payload are its size and not part of the stream.
    packed = data[start:start + length - 4]
    if packed.startswith(ZSTD_MAGIC):
        stream = tree.path / "vmlinux.zst"
        stream.write_bytes(packed)
        root.quietly(["zstd", "-d", "--quiet", "--rm", stream, "-o", tree.unpacked_image])


def _load_order(tree, names):
    """The files of modules and what they depend on, in an order to load them in."""
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
            raise GroundError(f"kernel {tree.release} lacks the module {name}")
    return [tree.modules / file for file in order]


def kept():
    """The releases of the kernels in the cache."""
    found = (_KEPT.match(path.name) for path in cache.directory().iterdir())
    return sorted(match[1] for match in found if match)

# SPDX-License-Identifier: GPL-2.0
"""The debug kernel: one that looks for mistakes of its own while it runs.

It is built from the source package of the newest stock kernel, of no more than the VM and the
selftests need, with debug.config. What it would report of others is mended with debug.patch.
"""

import os
import pathlib
import re

from . import boot, cache, probe, root, source
from .log import ToolError, step
from .tree import Tree

HERE = pathlib.Path(__file__).resolve().parent
PATCH = HERE / "debug.patch"

# To be raised whenever make() makes something else than before.
RECIPE = 1

# What a stock kernel does in a second, this one may take so many for.
SLOWDOWN = 4

# Sources that this kernel is not built of, relative to the source tree.
UNREAD = [
    "arch/[!x]*/*.[chS]", "arch/xtensa/*.[chS]", "arch/*.dts*",
    *(f"drivers/{name}/*.[ch]" for name in
      ("gpu", "media", "net/ethernet", "net/wireless", "scsi", "staging", "usb")),
    "sound/*.[ch]",
    "Documentation/*.rst", "Documentation/*.svg", "Documentation/devicetree/*",
    "tools/perf", "tools/testing/selftests/*/*.[cS]",
]

# What a module build does not read either, once the kernel is built. Objects of `scripts` and
# `tools` are parts of programs that make would build again.
BUILT_OF = ["*.[acoS]", "*.ko", "vmlinux*"]
KEPT = ["scripts", "tools", "rust"]

# Macros need not be fast: optimising `syn` takes longer than all they do.
QUICK = ["HOSTRUSTFLAGS=-Copt-level=0"]

# Rust code is checked by KASAN only beside C code that clang compiled.
VARIABLES = """\
override ARCH = x86
override CROSS_COMPILE = x86_64-linux-gnu-
CC = clang
HOSTCC = gcc-14
"""

_OPTION = re.compile(r"^(CONFIG_\w+)=(.*)$", re.MULTILINE)


def release(kernel):
    """What it calls itself."""
    return ".".join(str(part) for part in kernel.number) + "-debug"


def _options():
    """The configuration: debug.config, and what selftests need and it does not name."""
    options = {}
    for path in (HERE / "debug.config",
                 *sorted((root.CHECKOUT / "tools/testing/selftests").rglob("config"))):
        for option, value in _OPTION.findall(path.read_text(encoding="utf-8")):
            options.setdefault(option, value)
    return options


def name(kernel):
    """Its name in the cache."""
    return f"kernel-{release(kernel)}-" + cache.key(
        kernel.version, root.name(), RECIPE, UNREAD, BUILT_OF, KEPT, QUICK, VARIABLES,
        boot.MODULES, sorted(_options().items()), PATCH.read_text(encoding="utf-8"))


def make(directory, kernel):
    """Make the tree of the kernel in a directory."""
    tree = Tree(directory, release(kernel), SLOWDOWN)
    source.beside_root(_unpack, tree, kernel)
    _patch(tree)
    _configure(tree)
    _build(tree)
    boot.images(tree)


def _unpack(tree, kernel):
    names = [package for package in kernel.packages if package.startswith("linux-source-")]
    with source.packages(tree.path, kernel, names) as (file,):
        with step(f"unpacking the source of kernel {kernel.release}"):
            source.unpack(file, tree.build, UNREAD)


def _patch(tree):
    # In a git repository, such as one around the cache, it would leave out what is not in that.
    root.quietly(["git", "apply", PATCH], cwd=tree.build,
                 environment={"GIT_CEILING_DIRECTORIES": str(tree.path)})


def _make(tree, *words):
    root.quietly(["nice", "make", f"-j{os.cpu_count()}", *QUICK, *words], cwd=tree.build)


def _configure(tree):
    """Everything is off that _options() does not ask for, or that nothing it asks for needs."""
    (tree.build / ".kernelvariables").write_text(VARIABLES, encoding="utf-8")
    wanted = tree.build / "wanted.config"
    wanted.write_text("".join(f"{option}={value}\n" for option, value in _options().items()),
                      encoding="utf-8")
    _make(tree, f"KCONFIG_ALLCONFIG={wanted}", "allnoconfig")
    found = dict(_OPTION.findall((tree.build / ".config").read_text(encoding="utf-8")))
    # A selftest that asks for a module is served by what is built in.
    refused = [option for option, value in _options().items()
               if found.get(option, "n") != value and (value, found.get(option)) != ("m", "y")]
    if refused:
        raise ToolError(f"the kernel's configuration does not take {' '.join(refused)}")


def _build(tree):
    with step(f"build of kernel {tree.release}"):
        _make(tree, "vmlinux", "modules")
    if source.release(tree.build) != tree.release:
        raise ToolError(f"the source of {tree.release} calls itself {source.release(tree.build)}")
    with step(f"installation of kernel {tree.release}"):
        _make(tree, f"INSTALL_MOD_PATH={tree.path}", "INSTALL_MOD_STRIP=1", "modules_install")
        for link in ("build", "source"):
            (tree.modules / link).unlink(missing_ok=True)
        root.quietly(["strip", "-o", tree.unpacked_image, tree.build / "vmlinux"])
        reasons = probe.tree(tree.build) + probe.vm(tree.build)
        if reasons:
            raise ToolError("; ".join(reasons))
        _prune(tree.build)


def _prune(build):
    """Leave what modules are built with."""
    for top in build.iterdir():
        if top.name in KEPT:
            continue
        for pattern in BUILT_OF:
            for path in [top] if top.is_file() and top.match(pattern) else top.rglob(pattern):
                path.unlink()

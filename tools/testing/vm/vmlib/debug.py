# SPDX-License-Identifier: GPL-2.0
"""The debug kernel: it has KASAN, lockdep, kmemleak and other run-time checks.

It is built from the source package of the newest stock kernel. Only the options of debug.config,
and those in the selftests' config files, are on. debug.patch corrects faults of other code that
it would report.
"""

import os
import pathlib
import re

from . import boot, cache, probe, root, source
from .log import ToolError, step
from .tree import Tree

HERE = pathlib.Path(__file__).resolve().parent
PATCH = HERE / "debug.patch"

# Version of what make() makes: increase it with each change, so that kernels are rebuilt.
RECIPE = 2

# Factor for time limits that are meant for a stock kernel.
SLOWDOWN = 4

# Sources that the build does not read: patterns relative to the source tree.
UNREAD = [
    "arch/[!x]*/*.[chS]", "arch/xtensa/*.[chS]", "arch/*.dts*",
    *(f"drivers/{name}/*.[ch]" for name in
      ("gpu", "media", "net/ethernet", "net/wireless", "scsi", "staging", "usb")),
    "sound/*.[ch]",
    "Documentation/*.rst", "Documentation/*.svg", "Documentation/devicetree/*",
    "tools/perf", "tools/testing/selftests/*/*.[cS]",
]

# Files that are deleted after the build, because no module build reads them, and the directories
# that keep theirs. Without the objects in `scripts` and `tools`, make would build programs again.
BUILT_OF = ["*.[acoS]", "*.ko", "vmlinux*"]
KEPT = ["scripts", "tools", "rust"]

# Do not optimise procedural macros: optimising `syn` takes longer than running all of them.
QUICK = ["HOSTRUSTFLAGS=-Copt-level=0"]

# KASAN for Rust code requires clang for C code.
VARIABLES = """\
override ARCH = x86
override CROSS_COMPILE = x86_64-linux-gnu-
CC = clang
HOSTCC = gcc-14
"""

_OPTION = re.compile(r"^(CONFIG_\w+)=(.*)$", re.MULTILINE)


def release(kernel):
    """Return the release of the debug kernel."""
    return ".".join(str(part) for part in kernel.number) + "-debug"


def _options():
    """Return the options of debug.config, and those of selftests that it does not set."""
    options = {}
    for path in (HERE / "debug.config",
                 *sorted((root.CHECKOUT / "tools/testing/selftests").rglob("config"))):
        for option, value in _OPTION.findall(path.read_text(encoding="utf-8")):
            options.setdefault(option, value)
    return options


def name(kernel):
    """Return the name of the debug kernel in the cache."""
    return f"kernel-{release(kernel)}-" + cache.key(
        kernel.version, root.name(), RECIPE, UNREAD, BUILT_OF, KEPT, QUICK, VARIABLES,
        boot.MODULES, boot.PARTS, sorted(_options().items()), PATCH.read_text(encoding="utf-8"))


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
    # In a git repository, such as one around the cache, `git apply` skips other files.
    root.quietly(["git", "apply", PATCH], cwd=tree.build,
                 environment={"GIT_CEILING_DIRECTORIES": str(tree.path)})


def _make(tree, *words):
    root.quietly(["nice", "make", f"-j{os.cpu_count()}", *QUICK, *words], cwd=tree.build)


def _configure(tree):
    """Configure the kernel: only the options in _options(), and what they require, are on."""
    (tree.build / ".kernelvariables").write_text(VARIABLES, encoding="utf-8")
    wanted = tree.build / "wanted.config"
    wanted.write_text("".join(f"{option}={value}\n" for option, value in _options().items()),
                      encoding="utf-8")
    _make(tree, f"KCONFIG_ALLCONFIG={wanted}", "allnoconfig")
    found = dict(_OPTION.findall((tree.build / ".config").read_text(encoding="utf-8")))
    # Selftests accept a built-in driver where their config file has a module.
    refused = [option for option, value in _options().items()
               if found.get(option, "n") != value and (value, found.get(option)) != ("m", "y")]
    if refused:
        raise ToolError(f"Kconfig does not accept these options: {' '.join(refused)}")


def _build(tree):
    with step(f"build of kernel {tree.release}"):
        _make(tree, "vmlinux", "modules")
    if source.release(tree.build) != tree.release:
        raise ToolError(f"the source of {tree.release} has release {source.release(tree.build)}")
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
    """Delete what no module build reads."""
    for top in build.iterdir():
        if top.name in KEPT:
            continue
        for pattern in BUILT_OF:
            for path in [top] if top.is_file() and top.match(pattern) else top.rglob(pattern):
                path.unlink()

# SPDX-License-Identifier: GPL-2.0
"""Build the modules and the program, and know where they are."""

import os
import pathlib
import subprocess

from . import kernel, probe, root
from .say import GroundError

CHECKOUT = root.CHECKOUT
BUILD = CHECKOUT / "build"
PROGRAM = BUILD / "cargo/release/rnvme"


def output(release):
    """The directory of the modules for a kernel release."""
    return BUILD / release


def built(release):
    """The modules that are built for a kernel release."""
    directory = output(release)
    found = directory.rglob("*.ko")
    # Not the copies that the VM is given.
    return sorted(path for path in found if ".stage" not in path.relative_to(directory).parts)


def make(kdir, directory, *variables):
    """The command line that builds the modules into a directory, which it makes."""
    directory.mkdir(parents=True, exist_ok=True)
    return ["make", f"-j{os.cpu_count()}", "-C", kdir, f"M={CHECKOUT}", f"MO={directory}",
            *variables, "modules"]


def modules(wanted=None, kdir=None):
    """Build the modules for a stock kernel, or for the user's own with the user's toolchain."""
    if kdir is None:
        tree = kernel.ensure(wanted)
        status = root.call(make(tree.build, output(tree.release)))
    else:
        status = _modules_for(pathlib.Path(kdir).absolute())
    if status != 0:
        raise GroundError("the modules did not build")


def _modules_for(kdir):
    reasons = probe.tree(kdir) + probe.toolchain(kdir)
    if reasons:
        raise GroundError("\n  ".join([f"cannot build for {kdir}:", *reasons]))
    release = (kdir / "include/config/kernel.release").read_text(encoding="utf-8").strip()
    return subprocess.run([str(arg) for arg in make(kdir, output(release))], check=False).returncode


def program():
    """Build the user program."""
    manifest = CHECKOUT / "tools/rnvme/Cargo.toml"
    if root.call(["cargo", "build", "--release", "--locked", "--manifest-path", manifest,
                  "--target-dir", BUILD / "cargo"]) != 0:
        raise GroundError("the program did not build")

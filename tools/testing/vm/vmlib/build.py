# SPDX-License-Identifier: GPL-2.0
"""Build the modules, the program and the programs of the selftests; find what was built."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from . import cache, crates, kernel, probe, root
from .log import ToolError, note

CHECKOUT = root.CHECKOUT
BUILD = CHECKOUT / "build"
PROGRAM = crates.TARGET / "release/rnvmf"
CHECK_LAYOUT = CHECKOUT / "tools/boot/check-layout"
SELFTESTS = CHECKOUT / "tools/testing/selftests"

# Functions of glibc 2.39 that the standard library calls only if they exist. The references are
# weak, but have a version, so the loader of an older glibc refuses the program. With the address
# null they do not exist for the program, and the linker needs no version.
UNUSED_FUNCTIONS = ("pidfd_getpid", "pidfd_spawnp")

# The C library of the oldest system that the program has to run on.
DEBIAN_12_GLIBC = (2, 36)

# Prefix of a module's name -> path of its crate. The first prefix that matches is used.
CONSUMERS = {"rrdma_test_": "tools/testing/modules/{0}",
             "rrdma_bench_": "tools/testing/bench/{0}/{0}",
             "rrdma_": "samples/{0}"}


def output(release):
    """Return the directory of the modules for a kernel release."""
    return BUILD / release


def built(release):
    """Return the modules of the last build for a kernel release: those in modules.order.

    Files of modules that no longer exist may be in the directory, too.
    """
    order = (output(release) / "modules.order").read_text(encoding="utf-8").split()
    return sorted(output(release) / f"{name.removesuffix('.o')}.ko" for name in order)


def consumers(release):
    """Return the crates of the samples, test modules and benchmarks for a kernel release.

    A crate is the path of its root file without the suffix.
    """
    order = (output(release) / "modules.order").read_text(encoding="utf-8").split()
    return sorted(_root(name) for name in (entry.removesuffix(".o") for entry in order)
                  if name.startswith("rrdma_"))


def _root(module):
    """Return the crate of a module that uses rrdma."""
    for prefix, root_file in CONSUMERS.items():
        if module.startswith(prefix):
            return root_file.format(module.removeprefix(prefix))
    raise ToolError(f"{module}.ko: no prefix in CONSUMERS matches")


def make(kdir, directory, *variables):
    """Return the command line that builds the modules into a directory; create the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    return ["make", f"-j{os.cpu_count()}", "-C", kdir, f"M={CHECKOUT}", f"MO={directory}",
            *variables, "modules"]


def modules(wanted=None, kdir=None):
    """Build the modules for a kernel of the cache, or for `kdir` with the compilers on PATH."""
    if kdir is not None:
        status = _modules_for(kdir)
    else:
        tree = kernel.ensure(wanted)
        directory = output(tree.release)
        # Two makes in one directory would overwrite each other's files.
        with cache.lock(f"build-{cache.key(str(directory))}"):
            status = root.call(make(tree.build, directory, "KCFLAGS=-Werror"))
    if status != 0:
        raise ToolError("the modules did not build: see the output of make above")
    if kdir is None:
        _check_layout(tree)


def _check_layout(tree):
    """Check that the transports have the private structures of the kernel's own nvme modules."""
    nvme = tree.modules / "kernel/drivers/nvme"
    for module, users in (("nvme_rdma_rust.ko", ["host/nvme-core.ko", "host/nvme-fabrics.ko"]),
                          ("nvmet_rdma_rust.ko", ["target/nvmet.ko"])):
        if subprocess.run([CHECK_LAYOUT, output(tree.release) / module, tree.bootable,
                           *(nvme / user for user in users)], check=False).returncode:
            raise ToolError(f"{module} does not fit the kernel")


def _modules_for(kdir):
    reasons = probe.tree(kdir) + probe.toolchain(kdir)
    if reasons:
        raise ToolError("\n  ".join([f"cannot build for {kdir}:", *reasons]))
    for option in probe.REPLACEMENTS:
        for reason in probe.replacement(kdir, option):
            note(reason)
    release = (kdir / "include/config/kernel.release").read_text(encoding="utf-8").strip()
    command = make(kdir, output(release))
    return subprocess.run([str(word) for word in command], check=False).returncode


def cargo(verb, crate):
    """Return the cargo command line for a crate of the checkout."""
    crates.take()
    return ["cargo", verb, "--locked", "--manifest-path", CHECKOUT / crate / "Cargo.toml",
            "--target-dir", crates.TARGET]


def program():
    """Build the user program."""
    absent = ",".join(f"--defsym={name}=0" for name in UNUSED_FUNCTIONS)
    if root.call([*cargo("rustc", "tools/rnvmf"), "--release",
                  "--", f"-Clink-arg=-Wl,{absent}"]) != 0:
        raise ToolError("the program did not build")
    major, minor = glibc(root.quietly(["objdump", "-p", PROGRAM]))
    older = "" if (major, minor) <= DEBIAN_12_GLIBC else "; it does not run on Debian 12"
    note(f"  {PROGRAM.relative_to(CHECKOUT)} needs glibc {major}.{minor} or newer{older}")


def glibc(headers):
    """Return the newest version of glibc that the headers of a program require."""
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", headers)
    return max((int(major), int(minor)) for major, minor in versions)


def listed(makefile, variable):
    """Return the names that a variable of a selftest Makefile lists."""
    text = makefile.read_text(encoding="utf-8").replace("\\\n", " ")
    lists = re.findall(rf"^{variable}\s*[:+]?=([^#\n]*)", text, re.MULTILINE)
    return " ".join(lists).split()


def selftests():
    """Build the C programs of the selftests; the VM has each in the directory of its source."""
    for makefile in sorted(SELFTESTS.rglob("Makefile")):
        for name in listed(makefile, "TEST_GEN_PROGS_EXTENDED"):
            sources = [f"{name}.c", *listed(makefile, f"{name}-y")]
            built_program = BUILD / "selftests" / makefile.parent.relative_to(SELFTESTS) / name
            built_program.parent.mkdir(parents=True, exist_ok=True)
            if root.call(["gcc", "-O2", "-Wall", "-Werror", "-o", built_program, *sources,
                          "-lrdmacm", "-libverbs"], cwd=makefile.parent) != 0:
                raise ToolError(f"{name} did not build: see the output of gcc above")


def everything(wanted=None):
    """Build everything in parallel, because no build keeps all CPUs busy."""
    with ThreadPoolExecutor() as pool:
        others = [pool.submit(program), pool.submit(selftests)]
        modules(wanted)
        for other in others:
            other.result()

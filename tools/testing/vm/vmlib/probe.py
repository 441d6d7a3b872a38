#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check whether the modules can be built for a kernel build directory; list the obstacles.

This file is also a program, `probe.py KDIR [--transport] [--target]`. It must not import other
files of vmlib, because tools/boot/install copies it alone for DKMS.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

OLDEST = (7, 2)

# option -> obstacle if it is off
OPTIONS = {
    "MODULES": "no loadable modules",
    "RUST": "no Rust in the kernel",
    "PREEMPT_RCU": "RCU is not preemptible",
    "BLOCK": "no block layer",
    "NET": "no networking",
    "INFINIBAND": "no RDMA",
    "INFINIBAND_ADDR_TRANS": "no RDMA connection manager",
}
# option of this program -> module, private header that it needs, its owner, kernel options
REPLACEMENTS = {
    "--transport": ("nvme_rdma_rust", "host/nvme.h", "nvme-core",
                    {"NVME_FABRICS": "no NVMe over fabrics"}),
    "--target": ("nvmet_rdma_rust", "target/nvmet.h", "nvmet", {"NVME_TARGET": "no NVMe target"}),
}
VM_OPTIONS = {
    "RDMA_RXE": "no soft-RoCE, which the VM needs",
    "NVME_TARGET_RDMA": "no NVMe/RDMA target, which the VM needs",
}
METADATA = ["libcore.rmeta", "libkernel.rmeta", "libbindings.rmeta", "libpin_init.rmeta",
            "libmacros.so"]
SYMBOLS = ["ib_register_client", "__rdma_create_kernel_id", "rdma_resolve_addr",
           "rdma_connect_locked", "__ib_alloc_pd", "__ib_alloc_cq", "ib_cq_pool_get",
           "ib_alloc_mr", "ib_map_mr_sg", "ib_drain_qp", "blk_mq_alloc_tag_set",
           "__blk_mq_alloc_disk", "genl_register_family"]


def _read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _options(config):
    return set(re.findall(r"^CONFIG_(\w+)=[ym]$", config, re.MULTILINE))


def _configuration(config, wanted):
    options = _options(config)
    return [f"CONFIG_{name} is not set: {why}" for name, why in wanted.items()
            if name not in options]


def _version(kdir):
    release = _read(kdir / "include/config/kernel.release")
    match = re.match(r"(\d+)\.(\d+)", release or "")
    if not match:
        return ["not prepared: include/config/kernel.release is missing (run make modules_prepare)"]
    if tuple(int(part) for part in match.groups()) < OLDEST:
        return [f"kernel {release.strip()} is older than {OLDEST[0]}.{OLDEST[1]}"]
    return []


def _metadata(kdir):
    missing = [name for name in METADATA if not (kdir / "rust" / name).exists()]
    if missing:
        return [f"no Rust metadata: {', '.join(missing)} missing in {kdir}/rust "
                "(most header packages lack it; run make prepare in a full source tree)"]
    return []


def _output(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _compiler(config):
    """Return the obstacles in the compilers: rustc rejects metadata of any other version."""
    reasons = []
    rustc = os.environ.get("RUSTC", "rustc")
    here = _output([rustc, "--version"])
    match = re.search(r'^CONFIG_RUSTC_VERSION_TEXT="(.*)"$', config, re.MULTILINE)
    if here is None:
        reasons.append(f"{rustc} is not installed, or does not run")
    elif match and match[1] != here:
        reasons.append(f"wrong rustc: the kernel was built with {match[1]}, {rustc} is {here}")
    bindgen = os.environ.get("BINDGEN", "bindgen")
    if not shutil.which(bindgen):
        reasons.append(f"{bindgen} is not installed")
    return reasons


def _c_compiler(config):
    """Return the obstacle if make would use gcc for a kernel that clang built."""
    # make passes the variables of its command line in the environment.
    takes_clang = os.environ.get("LLVM") or "clang" in os.environ.get("CC", "")
    if "CC_IS_CLANG" not in _options(config) or takes_clang:
        return []
    match = re.search(r'^CONFIG_CC_VERSION_TEXT="(.*)"$', config, re.MULTILINE)
    return [f"the kernel was built by {match[1] if match else 'clang'}: build with LLVM=1"]


def _promised(kdir):
    """Return the symbols that the kernel's crates and C helpers export, from generated headers."""
    names = []
    for path in sorted((kdir / "rust").glob("exports_*_generated.h")):
        names += re.findall(r"EXPORT_SYMBOL_RUST_GPL\((\w+)\)", _read(path) or "")
    return names


def _symbols(kdir):
    text = _read(kdir / "Module.symvers")
    if text is None:
        return ["Module.symvers is missing: symbols cannot be checked"]
    exported = {line.split("\t")[1] for line in text.splitlines() if "\t" in line}
    reasons = [f"symbol {name} is not exported" for name in SYMBOLS if name not in exported]
    promised = _promised(kdir)
    absent = [name for name in promised if name not in exported]
    if absent:
        reasons.append(f"the kernel does not export {len(absent)} of {len(promised)} Rust symbols "
                       f"that the metadata needs, such as {absent[0]}")
    return reasons


def tree(kdir):
    """Return the obstacles in the build directory itself."""
    if re.search(r"[\s:]", str(kdir)):
        return [f"{kdir}: the kernel's makefiles accept no blank and no colon in a path"]
    config = _read(kdir / ".config")
    if not (kdir / "Makefile").exists() or config is None:
        return [f"{kdir} is not a kernel build directory: no Makefile or no .config"]
    return [*_version(kdir), *_configuration(config, OPTIONS), *_metadata(kdir), *_symbols(kdir)]


def toolchain(kdir):
    """Return the obstacles in the compilers on PATH, and in the choice between gcc and clang."""
    config = _read(kdir / ".config")
    return [*_compiler(config), *_c_compiler(config)] if config is not None else []


def replacement(kdir, option):
    """Return why the module of an option cannot be built; Kbuild leaves it out then."""
    module, header, owner, options = REPLACEMENTS[option]
    # A build directory made with O= has a link to the source.
    headers = [kdir / below / "drivers/nvme" / header for below in ("", "source")]
    missing = [] if any(path.exists() for path in headers) else [
        f"{headers[0]} is missing: header packages lack the private headers of {owner}, so build "
        "in the source tree of this very kernel"]
    reasons = missing + _configuration(_read(kdir / ".config") or "", options)
    return [f"{module} is not built: {reason}" for reason in reasons]


def vm(kdir):
    """Return the reasons why the VM cannot run the tests on this kernel."""
    config = _read(kdir / ".config")
    return _configuration(config, VM_OPTIONS) if config is not None else []


def main():
    """Print the obstacles, and return 1 if there are any."""
    kdir = pathlib.Path(sys.argv[1])
    # DKMS itself chooses between gcc and clang.
    reasons = tree(kdir) + _compiler(_read(kdir / ".config") or "")
    for reason in reasons:
        print(f"rnvmf cannot be built: {reason}")
    for option in sys.argv[2:]:
        for reason in replacement(kdir, option):
            print(reason)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())

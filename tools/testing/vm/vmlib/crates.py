# SPDX-License-Identifier: GPL-2.0
"""What cargo has compiled of the crates of the registry: a checkout takes it from the cache.

cargo compiles most of these once for the program, once for the tests, and once for the tests with
loom. That takes longer than to compile the crates of the checkout.
"""

import shutil

from . import cache, root
from .process import run

CHECKOUT = root.CHECKOUT
TARGET = CHECKOUT / "build/cargo"

# The crates of the checkout, in the order of their tests, and the names of their packages.
CRATES = {"drivers/nvme/proto": "nvme_proto", "drivers/nvme/uapi": "rnvmf_uapi",
          "samples/common/formats": "sample_formats", "tools/rnvmf": "rnvmf",
          "tools/testing/loom": "rrdma_loom"}


def _name():
    """Return the name of the cache's object: what is compiled depends on all these files."""
    files = [CHECKOUT / crate / name for crate in CRATES for name in ("Cargo.lock", "Cargo.toml")]
    return "crates-" + cache.key(root.name(), [file.read_bytes() for file in files])


def take():
    """Fill the target directory of a checkout that has none."""
    with cache.lock(f"crates-of-{cache.key(str(CHECKOUT))}"):
        kept = cache.directory() / _name()
        if kept.is_dir() and not TARGET.exists():
            TARGET.parent.mkdir(exist_ok=True)
            temporary = TARGET.with_name("cargo.tmp")
            shutil.rmtree(temporary, ignore_errors=True)
            # cargo compares times.
            run(["cp", "-a", "--reflink=auto", kept, temporary])
            temporary.rename(TARGET)


def keep():
    """Keep the crates of the registry in the cache: all are compiled, and cargo does not run."""
    cache.ensure(_name(), _copy)


def _copy(directory):
    for profile in ("debug", "release"):
        for part in ("build", "deps", ".fingerprint"):
            source = TARGET / profile / part
            (directory / profile / part).mkdir(parents=True)
            run(["cp", "-a", "--reflink=auto", *(entry for entry in source.iterdir()
                                                 if _package(entry) not in CRATES.values()),
                 directory / profile / part])


def _package(entry):
    """Return the name of the package of an entry of the target directory."""
    return entry.name.removeprefix("lib").rpartition("-")[0]

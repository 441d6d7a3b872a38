# SPDX-License-Identifier: GPL-2.0
"""A kernel's packages from the mirror, and the source among them."""

import contextlib
import shutil
from concurrent.futures import ThreadPoolExecutor

from . import index, mirror, root
from .log import step
from .process import pipe, run


@contextlib.contextmanager
def packages(directory, kernel, names):
    """The files of packages of a kernel, downloaded below a directory while they are in use."""
    options = index.apt(index.load().codename, mirror.uri())
    downloads = directory / "packages"
    downloads.mkdir()
    with step(f"download of kernel {kernel.release}"):
        run(["apt-get", *options, "-qq", "download",
             *(f"{name}={kernel.version}" for name in names)], cwd=downloads)
    yield [next(downloads.glob(f"{name}_*.deb")) for name in names]
    shutil.rmtree(downloads)


def beside_root(function, *arguments):
    """Call a function that downloads, while the root is made: they wait for different things."""
    with ThreadPoolExecutor() as pool:
        toolchain = pool.submit(root.ensure)
        function(*arguments)
        toolchain.result()


def unpack(file, build, unread):
    """Unpack a source package, less the paths in it that match `unread`."""
    build.mkdir()
    top = file.name.partition("_")[0]
    pipe(["dpkg-deb", "--fsys-tarfile", file],
         ["tar", "-xO", f"./usr/src/{top}.tar.xz"],
         ["xz", "-dc", "-T0"],
         ["tar", "-C", build, "-x", "--strip-components=1", "--no-same-owner", "--wildcards",
          "--anchored", *(f"--exclude={top}/{pattern}" for pattern in unread)])


def release(build):
    """What a prepared tree calls itself."""
    return (build / "include/config/kernel.release").read_text(encoding="utf-8").strip()

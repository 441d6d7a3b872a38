# SPDX-License-Identifier: GPL-2.0
"""Download the packages of a kernel from the mirror, and unpack its source."""

import contextlib
import shutil
from concurrent.futures import ThreadPoolExecutor

from . import index, mirror, root
from .log import step
from .process import pipe, run


@contextlib.contextmanager
def packages(directory, kernel, names):
    """Download packages of a kernel and yield their files; the files are deleted at the end."""
    options = index.apt(index.load().codename, mirror.uri())
    downloads = directory / "packages"
    downloads.mkdir()
    with step(f"download of kernel {kernel.release}"):
        run(["apt-get", *options, "-qq", "download",
             *(f"{name}={kernel.version}" for name in names)], cwd=downloads)
    yield [next(downloads.glob(f"{name}_*.deb")) for name in names]
    shutil.rmtree(downloads)


def beside_root(function, *arguments):
    """Call a function that downloads, while another thread makes the root if it is missing."""
    with ThreadPoolExecutor() as pool:
        toolchain = pool.submit(root.ensure)
        function(*arguments)
        toolchain.result()


def unpack(file, build, unread):
    """Unpack a source package, without the paths that match patterns in `unread`."""
    build.mkdir()
    top = file.name.partition("_")[0]
    pipe(["dpkg-deb", "--fsys-tarfile", file],
         ["tar", "-xO", f"./usr/src/{top}.tar.xz"],
         ["xz", "-dc", "-T0"],
         ["tar", "-C", build, "-x", "--strip-components=1", "--no-same-owner", "--wildcards",
          "--anchored", *(f"--exclude={top}/{pattern}" for pattern in unread)])


def release(build):
    """Return the release of a prepared source tree."""
    return (build / "include/config/kernel.release").read_text(encoding="utf-8").strip()

# SPDX-License-Identifier: GPL-2.0
"""The cache: objects that take long to make, outside the checkout.

An object is a directory; its name has a hash of its inputs. It is made in a temporary directory,
which is renamed at the end. A lock lets several checkouts use the cache at the same time. The
temporary directory of an interrupted run is removed by the next run.
"""

import collections
import contextlib
import fcntl
import hashlib
import os
import pathlib
import threading

from .log import note
from .process import run


def directory():
    """Return the cache directory of this user; create it if missing."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = pathlib.Path(base).absolute() / "rnvmf"
    path.mkdir(parents=True, exist_ok=True)
    return path


def key(*parts):
    """Return a short hash of the repr() of values."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


# Locks between threads of this process, which wait without a message.
_threads = collections.defaultdict(threading.Lock)


@contextlib.contextmanager
def lock(name):
    """Hold the lock of an object; print a message if another process holds it."""
    with _threads[name], open(directory() / f".{name}.lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"  waiting: another process is making {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def has(name):
    """Return whether object `name` exists."""
    return (directory() / name).is_dir()


def _remove(path):
    # An interrupted bootstrap may have left other file systems mounted: do not enter them.
    run(["rm", "-rf", "--one-file-system", path])


def ensure(name, make):
    """Return the path of object `name`. If it is missing, `make(directory)` fills its directory."""
    path = directory() / name
    if path.is_dir():
        return path
    with lock(name):
        if path.is_dir():
            return path
        temporary = directory() / f".{name}.tmp"
        _remove(temporary)
        temporary.mkdir()
        make(temporary)
        temporary.rename(path)
    return path

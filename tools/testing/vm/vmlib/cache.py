# SPDX-License-Identifier: GPL-2.0
"""Things that take long to make, kept outside the checkout.

An object is a directory whose name carries a hash of what it was made from. It is made beside its
place and renamed into it, under a lock: an interrupted run leaves a temporary directory that the
next one removes, and two checkouts may ask for the same object at once.
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
    """The cache directory of this user, made when it is missing."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = pathlib.Path(base).absolute() / "rnvmf"
    path.mkdir(parents=True, exist_ok=True)
    return path


def key(*parts):
    """A short hash of values, by how Python writes them."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


# Threads of this run wait for one another without a word.
_threads = collections.defaultdict(threading.Lock)


@contextlib.contextmanager
def lock(name):
    """Hold the lock of an object, saying so when another run has it."""
    with _threads[name], open(directory() / f".{name}.lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(f"  waiting for another run that is making {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def has(name):
    """Whether object `name` is there."""
    return (directory() / name).is_dir()


def _remove(path):
    # Never into another file system: an interrupted bootstrap may have left one mounted.
    run(["rm", "-rf", "--one-file-system", path])


def ensure(name, make):
    """Return the path of object `name`; `make(directory)` fills it when it is missing."""
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

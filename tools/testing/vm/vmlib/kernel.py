# SPDX-License-Identifier: GPL-2.0
"""Kernels by the name that a user gives: a version of a stock kernel, `newest` or `debug`."""

import re

from . import cache, debug, index, stock
from .log import UsageError, note
from .tree import Tree

# The name of the newest stock kernel.
NEWEST = "newest"
# The name of the debug kernel, which is built from the source of the newest one.
DEBUG = "debug"

_KEPT = re.compile(r"kernel-(.+)-[0-9a-f]{12}$")
_VERSION = re.compile(r"\d+\.\d+(\.\d+\S*)?$")


def _matches(release, wanted):
    return release == wanted or re.match(re.escape(wanted) + r"[.+-]", release)


def choose(wanted):
    """Return the kernel that `wanted` names; for the debug kernel, the one with its source.

    If the mirror does not have it, print a message and return the newest one.
    """
    offered = index.load().kernels
    if wanted in (None, NEWEST, DEBUG):
        return offered[0]
    if not _VERSION.match(wanted):
        raise UsageError(f"unknown kernel {wanted!r}: expected a version such as 7.3 or 7.3.4, "
                         f"{NEWEST} or {DEBUG}")
    for kernel in offered:
        if _matches(kernel.release, wanted):
            return kernel
    names = ", ".join(kernel.release for kernel in offered)
    note(f"kernel {wanted} is not on the mirror, which has {names}; using {offered[0].release}")
    return offered[0]


def _maker(wanted):
    return debug if wanted == DEBUG else stock


def name(wanted=None):
    """Return the name of a kernel in the cache."""
    return _maker(wanted).name(choose(wanted))


def ensure(wanted=None):
    """Return the tree of a kernel; make it if missing."""
    maker = _maker(wanted)
    kernel = choose(wanted)
    if not cache.has(maker.name(kernel)):
        # The mirror may have changed since the index was fetched.
        index.refresh()
        kernel = choose(wanted)
    path = cache.ensure(maker.name(kernel), lambda directory: maker.make(directory, kernel))
    return Tree(path, maker.release(kernel), maker.SLOWDOWN)


def kept():
    """Return the releases of the kernels in the cache."""
    found = (_KEPT.match(path.name) for path in cache.directory().iterdir())
    return sorted(match[1] for match in found if match)

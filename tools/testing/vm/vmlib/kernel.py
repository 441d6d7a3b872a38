# SPDX-License-Identifier: GPL-2.0
"""Kernels by what the user calls them: stock ones by version, and the debug kernel."""

import re

from . import cache, debug, index, stock
from .log import UsageError, note
from .tree import Tree

# The name of the newest kernel on offer.
NEWEST = "newest"
# The name of the kernel that looks for mistakes, made of the newest one's source.
DEBUG = "debug"

_KEPT = re.compile(r"kernel-(.+)-[0-9a-f]{12}$")
_VERSION = re.compile(r"\d+\.\d+(\.\d+\S*)?$")


def _matches(release, wanted):
    return release == wanted or re.match(re.escape(wanted) + r"[.+-]", release)


def choose(wanted):
    """The kernel on offer that `wanted` names, or whose source is used for it."""
    offered = index.load().kernels
    if wanted in (None, NEWEST, DEBUG):
        return offered[0]
    if not _VERSION.match(wanted):
        raise UsageError(f"{wanted!r} is not a kernel version such as 7.3 or 7.3.4, nor {NEWEST}, "
                         f"nor {DEBUG}")
    for kernel in offered:
        if _matches(kernel.release, wanted):
            return kernel
    names = ", ".join(kernel.release for kernel in offered)
    note(f"kernel {wanted} is not on the mirror, which has {names}; taking {offered[0].release}")
    return offered[0]


def ensure(wanted=None):
    """Return the tree of a kernel, making it when it is missing."""
    maker = debug if wanted == DEBUG else stock
    kernel = choose(wanted)
    if not cache.has(maker.name(kernel)):
        # The mirror may have moved on since the index was made.
        index.refresh()
        kernel = choose(wanted)
    path = cache.ensure(maker.name(kernel), lambda directory: maker.make(directory, kernel))
    return Tree(path, maker.release(kernel), maker.SLOWDOWN)


def kept():
    """The releases of the kernels in the cache."""
    found = (_KEPT.match(path.name) for path in cache.directory().iterdir())
    return sorted(match[1] for match in found if match)

# SPDX-License-Identifier: GPL-2.0
"""How fast the time stamp counter of an emulated processor counts: it is the host's."""

import functools
import pathlib

from . import cache, root

SOURCE = pathlib.Path(__file__).resolve().parent / "tsc.c"


@functools.cache
def khz():
    """Measure it."""
    name = "tsc-" + cache.key(root.name(), SOURCE.read_bytes())
    return int(root.quietly([cache.ensure(name, _make) / "tsc"]))


def _make(directory):
    root.quietly(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", directory / "tsc", SOURCE])

# SPDX-License-Identifier: GPL-2.0
"""How fast the time stamp counter of an emulated processor counts: it is the host's."""

import functools
import pathlib

from . import cache, root

SOURCE = pathlib.Path(__file__).resolve().parent / "ticks.c"


@functools.cache
def khz():
    """Measure it."""
    name = "ticks-" + cache.key(root.name(), SOURCE.read_bytes())
    return int(root.quietly([cache.ensure(name, _make) / "ticks"]))


def _make(directory):
    root.quietly(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", directory / "ticks", SOURCE])

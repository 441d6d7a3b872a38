# SPDX-License-Identifier: GPL-2.0
"""The frequency of the time stamp counter of an emulated CPU: it is that of the host."""

import functools
import pathlib

from . import cache, root

SOURCE = pathlib.Path(__file__).resolve().parent / "tsc.c"


@functools.cache
def khz():
    """Return the frequency in kHz."""
    name = "tsc-" + cache.key(root.name(), SOURCE.read_bytes())
    return int(root.quietly([cache.ensure(name, _make) / "tsc"]))


def _make(directory):
    root.quietly(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", directory / "tsc", SOURCE])

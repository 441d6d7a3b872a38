# SPDX-License-Identifier: GPL-2.0
"""Builds the QEMU plugin, and the program in the VM that triggers it."""

import pathlib

from vmlib import build, root

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "plugin"
OUTPUT = build.BUILD / "bench"

COMPILER = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror"]


def ensure():
    """Build both; return the path of the plugin."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    plugin = OUTPUT / "instructions.so"
    root.quietly([*COMPILER, "-shared", "-fPIC", "-fvisibility=hidden", "-o", plugin,
                  SOURCES / "instructions.c"])
    root.quietly([*COMPILER, "-o", OUTPUT / "mark", SOURCES / "mark.c"])
    return plugin

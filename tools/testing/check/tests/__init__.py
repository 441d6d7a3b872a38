# SPDX-License-Identifier: GPL-2.0
"""Tests of the checks, with planted mistakes."""

import importlib.machinery
import importlib.util
import pathlib
import sys

CHECK = pathlib.Path(__file__).resolve().parents[1]
TOP = CHECK.parents[2]


def program(name):
    """Load a check as a module."""
    sys.path.insert(0, str(CHECK))
    loader = importlib.machinery.SourceFileLoader(f"check_{name}", str(CHECK / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    # Data classes look up their module there.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def write(top, files):
    """Write files; their paths are relative to `top`."""
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

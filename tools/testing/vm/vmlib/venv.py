# SPDX-License-Identifier: GPL-2.0
"""Python programs of fixed versions in the cache, which Debian stable does not package."""

from . import cache, root
from .log import step

# Debian has no package of ruff.
PACKAGES = ["ruff==0.17.5", "docutils==0.21.2"]


def ruff():
    """Return the path of ruff; install it if missing."""
    return _bin() / "ruff"


def python():
    """Return the path of a Python that has docutils; install both if missing."""
    return _bin() / "python3"


def _bin():
    return cache.ensure("venv-" + cache.key(PACKAGES, root.name()), _make) / "venv/bin"


def _make(directory):
    with step(f"installing {' '.join(PACKAGES)}"):
        root.quietly(["python3", "-m", "venv", directory / "venv"])
        root.quietly([directory / "venv/bin/pip", "install", "--quiet", "--no-input",
                      "--disable-pip-version-check", *PACKAGES])

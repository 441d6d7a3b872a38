# SPDX-License-Identifier: GPL-2.0
"""Python programs of fixed versions in the cache, which Debian stable does not package."""

from . import cache, root
from .log import step

# Debian has no package of ruff.
RUFF = "ruff==0.17.5"


def ruff():
    """Return the path of ruff; install it if missing."""
    return cache.ensure("venv-" + cache.key(RUFF, root.name()), _make) / "venv/bin/ruff"


def _make(directory):
    with step(f"installing {RUFF}"):
        root.quietly(["python3", "-m", "venv", directory / "venv"])
        root.quietly([directory / "venv/bin/pip", "install", "--quiet", "--no-input",
                      "--disable-pip-version-check", RUFF])

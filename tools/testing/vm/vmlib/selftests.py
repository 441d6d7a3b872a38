# SPDX-License-Identifier: GPL-2.0
"""The selftests that the Makefiles list."""

import pathlib

from . import build
from .log import ToolError


def _in(variable):
    found = []
    for makefile in sorted(build.SELFTESTS.rglob("Makefile")):
        directory = makefile.parent.relative_to(build.SELFTESTS)
        found += [directory / name for name in build.listed(makefile, variable)]
    return found


def two_machines():
    """Return the selftests that need a second VM; the kernel's runner cannot run these."""
    return _in("TWO_MACHINES")


def listed():
    """Return all selftests, as paths below SELFTESTS."""
    found = _in("TEST_PROGS") + two_machines()
    if not found:
        raise ToolError(f"no selftests in {build.SELFTESTS}")
    return found


def matching(wanted):
    """Return the selftests whose path ends in `wanted`, such as rrdma/test_load.sh."""
    words = pathlib.PurePath(wanted).parts
    return [test for test in listed() if test.parts[-len(words):] == words]

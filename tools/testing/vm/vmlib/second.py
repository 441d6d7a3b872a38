# SPDX-License-Identifier: GPL-2.0
"""The selftests that exercise what differs between two kernels."""

import pathlib
import re

from . import build, selftests
from .log import ToolError
from .supply import Job

TABLE = pathlib.Path(__file__).resolve().parent.parent / "second-kernel"


def jobs():
    """The selftests that the table names. Any mistake in the table is an error."""
    found, reason = [], True
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        try:
            if line.startswith("\t"):
                reason = True
                continue
            if not reason:
                raise ToolError(f"{found[-1].path.name} has no reason")
            found.append(_job(line, {job.path for job in found}))
            reason = False
        except ToolError as error:
            raise ToolError(f"{TABLE.name}:{number}: {error}") from error
    if not found or not reason:
        raise ToolError(f"{TABLE.name}: no entry, or the last one has no reason")
    return found


def _job(line, earlier):
    """The selftest of an entry, which no earlier entry names."""
    name, *cases = line.split()
    paths = selftests.matching(name)
    if len(paths) != 1:
        raise ToolError(f"{len(paths)} selftests are called {name}")
    if paths[0] in earlier:
        raise ToolError(f"{name} has an entry already")
    text = (build.SELFTESTS / paths[0]).read_text(encoding="utf-8")
    for case in cases:
        if not re.search(rf"^(def )?{re.escape(case)}\(", text, re.MULTILINE):
            raise ToolError(f"{name} has no case {case}")
    return Job(paths[0], tuple(cases))

# SPDX-License-Identifier: GPL-2.0
"""Read the tables of selftests: those for a second kernel, and those that .ci/run leaves out."""

import pathlib
import re

from . import build, selftests
from .log import ToolError
from .supply import Job

TABLE = pathlib.Path(__file__).resolve().parent.parent / "second-kernel"
LEFT_OUT = TABLE.with_name("left-out-of-ci")


def left_out():
    """Return the selftests that only `make test` runs."""
    return {job.path for job in jobs(LEFT_OUT)}


def jobs(table=TABLE):
    """Return the selftests of a table; raise an error if the table has a mistake."""
    found, reason = [], True
    for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        try:
            if line.startswith("\t"):
                reason = True
                continue
            if not reason:
                raise ToolError(f"{found[-1].path.name}: no line below it tells why")
            found.append(_job(line, {job.path for job in found}))
            reason = False
        except ToolError as error:
            raise ToolError(f"{table.name}:{number}: {error}") from error
    if not found or not reason:
        raise ToolError(f"{table.name}: no entry, or no line below the last one")
    return found


def _job(line, earlier):
    """Return the selftest of an entry; `earlier` has those of the entries above."""
    name, *cases = line.split()
    paths = selftests.matching(name)
    if len(paths) != 1:
        raise ToolError(f"{name}: expected one selftest with this name, found {len(paths)}")
    if paths[0] in earlier:
        raise ToolError(f"{name}: duplicate entry")
    text = (build.SELFTESTS / paths[0]).read_text(encoding="utf-8")
    for case in cases:
        if not re.search(rf"^(def )?{re.escape(case)}\(", text, re.MULTILINE):
            raise ToolError(f"{name}: no case {case}")
    return Job(paths[0], tuple(cases))

# SPDX-License-Identifier: GPL-2.0
"""Read the tables of selftests, which are files beside this directory."""

import pathlib
import re

from . import build, selftests
from .log import ToolError
from .supply import Job

_HERE = pathlib.Path(__file__).resolve().parent.parent
# Those of what differs between kernels.
SECOND_KERNEL = _HERE / "second-kernel"
# Those that only `make test` runs.
LEFT_OUT = _HERE / "left-out-of-ci"
# Those that need the host's clock.
HOST_CLOCK = _HERE / "host-clock"
# Those whose subject is concurrency.
FREE_RUNNING = _HERE / "free-running"


def paths(table):
    """Return the paths of the selftests of a table."""
    return {job.path for job in jobs(table)}


def jobs(table):
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
    found = selftests.matching(name)
    if len(found) != 1:
        raise ToolError(f"{name}: expected one selftest with this name, found {len(found)}")
    if found[0] in earlier:
        raise ToolError(f"{name}: duplicate entry")
    text = (build.SELFTESTS / found[0]).read_text(encoding="utf-8")
    for case in cases:
        # Its function, or its line in the list of a shell script, whose library has the function.
        name_of = re.escape(case)
        if not re.search(rf"^(def )?{name_of}\(|^\t{name_of}( \\)?$", text, re.MULTILINE):
            raise ToolError(f"{name}: no case {case}")
    return Job(found[0], tuple(cases))

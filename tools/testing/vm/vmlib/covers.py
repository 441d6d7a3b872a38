# SPDX-License-Identifier: GPL-2.0
"""Read the table `covers`: which paths of the checkout each selftest depends on."""

import fnmatch
import pathlib
import re

from . import selftests
from .log import ToolError

TABLE = pathlib.Path(__file__).resolve().parent.parent / "covers"
SELFTESTS = "tools/testing/selftests"


def short(test):
    """Return the name of a selftest as tables and messages have it, such as rnvmf/test_load.sh."""
    return "/".join(test.parts[-2:])


def _matches(pattern, path):
    """Return whether a pattern matches a path. A pattern with `/` at its end is a directory."""
    if pattern.endswith("/"):
        return path.startswith(pattern)
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), path) is not None


class Entry:
    """An entry: a glob of selftests, and the patterns of the paths that they depend on."""

    def __init__(self, tests):
        self.tests = tests
        self.patterns = []

    def covers(self, path):
        """Return whether the selftests of this entry depend on a path."""
        taken = any(_matches(pattern[1:], path) for pattern in self.patterns if pattern[0] == "!")
        return not taken and any(_matches(pattern, path) for pattern in self.patterns)


class Covers:
    """The table. A selftest depends on its own file, and on what all entries of it cover."""

    def __init__(self):
        self._entries = []
        for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            if line.startswith("\t"):
                if not self._entries:
                    raise ToolError(f"{TABLE.name}:{number}: paths without an entry above")
                self._entries[-1].patterns += line.split()
                continue
            if not any(fnmatch.fnmatch(short(test), line) for test in selftests.listed()):
                raise ToolError(f"{TABLE.name}:{number}: no selftest matches {line}")
            self._entries.append(Entry(line))

    def of(self, test, paths):
        """Return those of `paths` that a selftest depends on."""
        entries = [entry for entry in self._entries if fnmatch.fnmatch(short(test), entry.tests)]
        return [path for path in paths if path == f"{SELFTESTS}/{test}"
                or any(entry.covers(path) for entry in entries)]

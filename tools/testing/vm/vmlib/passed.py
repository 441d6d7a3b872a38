# SPDX-License-Identifier: GPL-2.0
"""The selftests that have passed, kept in the cache, so that a long run can be made in parts."""

import dataclasses
import json
import os
import subprocess
import tempfile
import threading
import time

from . import build, cache, covers
from .log import ToolError, note

# In the cache directory: a JSON object for each selftest that passed, the latest last.
FILE = "passed.jsonl"
FIELDS = {"kernel", "long", "test", "tree", "commit", "date", "seconds"}
# Changed paths that the status shows of a selftest.
SHOWN = 3


def _git(*words, **variables):
    """Return the output of git in the checkout; None if it fails."""
    result = subprocess.run(["git", *words], cwd=build.CHECKOUT, check=False, text=True,
                            capture_output=True, env={**os.environ, **variables})
    return result.stdout.strip() if result.returncode == 0 else None


@dataclasses.dataclass(frozen=True)
class State:
    """A state of the checkout: the hash of the files, and the commit, with `+` if these differ."""

    tree: str
    commit: str


def state():
    """Return the state of the checkout. The files need not be committed, but not be ignored."""
    with tempfile.TemporaryDirectory() as directory:
        index = {"GIT_INDEX_FILE": f"{directory}/index"}
        steps = [_git("read-tree", "HEAD", **index), _git("add", "--all", **index),
                 _git("write-tree", **index)]
    if None in steps:
        raise ToolError("results are kept by the hash of the checkout, but git cannot tell it "
                        "here: see `git add --all --dry-run`")
    same = steps[-1] == _git("rev-parse", "HEAD^{tree}")
    return State(steps[-1], _git("rev-parse", "--short", "HEAD") + ("" if same else "+"))


class Passed:
    """The selftests that have passed on a kernel, in a run of one length.

    A result counts for the same state of the checkout, kernel of the cache, and length.
    """

    def __init__(self, kernel, long, current):
        self.state = current
        self._key = {"kernel": kernel, "long": long}
        self._path = cache.directory() / FILE
        self._lock = threading.Lock()

    def _records(self):
        """Return a record of each selftest on this kernel: that of this tree, or the latest."""
        found = {}
        if not self._path.exists():
            return found
        for line in self._path.read_bytes().splitlines():
            try:
                record = json.loads(line)
                if not FIELDS <= record.keys():
                    raise ValueError("a field is missing")
            except (ValueError, AttributeError) as error:
                shown = line[:60].decode("utf-8", "backslashreplace")
                raise ToolError(
                    f"{self._path}: not a result: {shown}; delete the file") from error
            test, tree = record["test"], record["tree"]
            matches = all(record[name] == value for name, value in self._key.items())
            if matches and (test not in found or found[test]["tree"] != self.state.tree
                            or tree == self.state.tree):
                found[test] = record
        return found

    def left(self, tests):
        """Return the selftests that have not passed with this tree."""
        records = self._records()
        return [test for test in tests
                if records.get(covers.short(test), {}).get("tree") != self.state.tree]

    def add(self, test, seconds):
        """Keep that a selftest has passed, unless the checkout has changed meanwhile."""
        if state() != self.state:
            note(f"{covers.short(test)} passed, but files have changed meanwhile: not kept")
            return
        record = {**self._key, "test": covers.short(test), "tree": self.state.tree,
                  "commit": self.state.commit, "date": time.strftime("%Y-%m-%d"),
                  "seconds": round(seconds)}
        with self._lock, open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def status(self, tests):
        """Yield a line for each selftest, and one with the numbers."""
        records, table = self._records(), covers.Covers()
        changed = {}
        counts = {"here": 0, "unchanged": 0, "changed": 0, "never": 0}
        for test in tests:
            record = records.get(covers.short(test))
            kind, what = "never", "has not passed"
            if record:
                kind, what = self._since(record, test, table, changed)
            counts[kind] += 1
            yield f"{covers.short(test)}: {what}"
        yield (f"{counts['here']} of {len(tests)} selftests have passed with these files, "
               f"{counts['unchanged']} before changes of what they do not cover, "
               f"{counts['changed']} before other changes, {counts['never']} never")

    def _since(self, record, test, table, changed):
        """Return the kind of a record, and a text for it; `changed` keeps differences of trees."""
        what = f"passed on {record['commit']} ({record['date']}, {record['seconds']} s)"
        if record["tree"] == self.state.tree:
            return "here", what
        if record["tree"] not in changed:
            changed[record["tree"]] = _git("diff-tree", "-r", "-z", "--name-only", record["tree"],
                                           self.state.tree)
        if changed[record["tree"]] is None:
            return "changed", f"{what}; its files are not in this repository"
        paths = table.of(test, changed[record["tree"]].split("\0"))
        if not paths:
            return "unchanged", f"{what}; nothing that it covers has changed since"
        more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
        return "changed", f"{what}; changed since: {', '.join(paths[:SHOWN])}{more}"

# SPDX-License-Identifier: GPL-2.0
"""What the data files of the checks have in common: lines, errors, patterns of paths."""

import functools
import re
import sys


class TableError(Exception):
    """A mistake in a data file, with its place."""


def lines(path):
    """The lines of a data file: (where, text), less comments and empty lines."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if text:
            yield f"{path.name}:{number}", text


@functools.lru_cache(None)
def pattern(glob):
    """The expression of a glob: `*` stays inside of a directory, `**` does not."""
    words = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(words.get(part) or re.escape(part)
                              for part in re.split(r"(\*\*|\*|\?)", glob)) + r"\Z")


def sources(top, suffixes=(".rs",)):
    """The sources of a checkout, with one of the suffixes: paths from its top."""
    found, waiting = [], [top]
    while waiting:
        for path in waiting.pop().iterdir():
            if path.is_symlink() or path.name.startswith(".") or path.name in ("build", "target"):
                continue
            if path.is_dir():
                waiting.append(path)
            elif suffixes is None or path.suffix in suffixes:
                found.append(str(path.relative_to(top)))
    return sorted(found)


def report(findings):
    """Print the findings; returns the exit status."""
    for line in findings:
        print(line)
    return 1 if findings else 0


def main(function):
    """Run a check; a mistake in its data is a finding, too."""
    try:
        sys.exit(function())
    except TableError as error:
        print(error)
        sys.exit(1)

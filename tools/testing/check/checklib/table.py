# SPDX-License-Identifier: GPL-2.0
"""Shared code of the checks: data files, patterns of paths, findings."""

import functools
import re
import sys


class TableError(Exception):
    """A mistake in a data file; the message begins with its place."""


def lines(path):
    """Yield the lines of a data file as (place, text), without comments and empty lines."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if text:
            yield f"{path.name}:{number}", text


@functools.lru_cache(None)
def pattern(glob):
    """Return the regular expression of a glob: `**` matches `/`, and `*` does not."""
    words = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(words.get(part) or re.escape(part)
                              for part in re.split(r"(\*\*|\*|\?)", glob)) + r"\Z")


def sources(top, suffixes=(".rs",)):
    """Return the files of a checkout with one of the suffixes, as paths from its top."""
    found, waiting = [], [top]
    while waiting:
        for path in waiting.pop().iterdir():
            if path.is_symlink() or path.name.startswith(".") or path.name == "build":
                continue
            # cargo marks its directory of outputs.
            if (path / "CACHEDIR.TAG").exists():
                continue
            if path.is_dir():
                waiting.append(path)
            elif suffixes is None or path.suffix in suffixes:
                found.append(str(path.relative_to(top)))
    return sorted(found)


def report(findings):
    """Print the findings; return the exit status."""
    for line in findings:
        print(line)
    return 1 if findings else 0


def main(function):
    """Run a check; a mistake in its data file is a finding, too."""
    try:
        sys.exit(function())
    except TableError as error:
        print(error)
        sys.exit(1)

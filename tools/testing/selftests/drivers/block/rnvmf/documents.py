#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The blocks of documents that are tested, for a test in the shell; see pylib/documents.py.

    documents.py names DIRECTORY         the name of each block of the documents there
    documents.py split DIRECTORY INTO    each block into a directory of its name: kind, state, text
    documents.py compare WANTED FOUND    whether a file has what another wants; if not, what differs
"""

import pathlib
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
from pylib import documents  # noqa: E402


def tested(directory):
    """The blocks of all documents of a directory that are tested."""
    for path in sorted(pathlib.Path(directory).iterdir()):
        yield from (block for block in documents.read(path)[0] if block.name)


def names(directory):
    """Say what the blocks are called."""
    for block in tested(directory):
        print(block.name)


def split(directory, into):
    """Lay the blocks out as files."""
    for block in tested(directory):
        place = pathlib.Path(into) / block.name
        place.mkdir(parents=True)
        for name, text in (("kind", block.kind), ("state", block.state.replace("-", "_")),
                           ("text", "\n".join(block.lines))):
            (place / name).write_text(f"{text}\n", encoding="utf-8")


def compare(wanted, found):
    """Print how the texts differ, and fail if they do."""
    texts = (pathlib.Path(name).read_text(encoding="utf-8") for name in (wanted, found))
    different = documents.differences(*map(str.splitlines, texts))
    if different is not None:
        print(different)
        sys.exit(1)


VERBS = {"names": names, "split": split, "compare": compare}

if __name__ == "__main__":
    VERBS[sys.argv[1]](*sys.argv[2:])

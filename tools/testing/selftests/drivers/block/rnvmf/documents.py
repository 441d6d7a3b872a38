#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Extracts the tested blocks of documents for test_documents.sh; see pylib/documents.py.

    documents.py names DIRECTORY         print the names of the blocks in a directory's documents
    documents.py split DIRECTORY INTO    write each block to INTO/NAME/: files kind, state and text
    documents.py compare WANTED FOUND    compare output with a block; print the diff and exit with 1
"""

import pathlib
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
from pylib import documents  # noqa: E402


def tested(directory):
    """Yield the tested blocks of all documents in a directory."""
    for path in sorted(pathlib.Path(directory).iterdir()):
        yield from (block for block in documents.read(path)[0] if block.name)


def names(directory):
    """Print the names of the blocks."""
    for block in tested(directory):
        print(block.name)


def split(directory, into):
    """Write the blocks as files."""
    for block in tested(directory):
        place = pathlib.Path(into) / block.name
        place.mkdir(parents=True)
        for name, text in (("kind", block.kind), ("state", block.state.replace("-", "_")),
                           ("text", "\n".join(block.lines))):
            (place / name).write_text(f"{text}\n", encoding="utf-8")


def compare(wanted, found):
    """Print the diff and exit with 1, if the texts differ."""
    texts = (pathlib.Path(name).read_text(encoding="utf-8") for name in (wanted, found))
    different = documents.differences(*map(str.splitlines, texts))
    if different is not None:
        print(different)
        sys.exit(1)


VERBS = {"names": names, "split": split, "compare": compare}

if __name__ == "__main__":
    VERBS[sys.argv[1]](*sys.argv[2:])

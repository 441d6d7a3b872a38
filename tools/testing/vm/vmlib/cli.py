# SPDX-License-Identifier: GPL-2.0
"""Parts of the command lines: a parser, argument types, `--` before a command."""

import argparse
import pathlib

from .log import UsageError


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and whose options are never abbreviated."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
                         **options)

    def error(self, message):
        """Raise the error, as one line."""
        raise UsageError(f"{message} (see --help)")


def number(low, high):
    """Return an argparse type: an integer in a range."""
    def parse(text):
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low} to {high}")
        return int(text)
    return parse


def directory(text):
    """An argparse type: an existing directory."""
    path = pathlib.Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a directory")
    return path.absolute()


def split(words):
    """Return the words before the first `--`, and those after it."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1:]


def command(words):
    """Return a command without the `--` before it."""
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        raise UsageError("missing COMMAND (see --help)")
    return words

# SPDX-License-Identifier: GPL-2.0
"""How the kernel's build compiled a crate, for tools that are to look at it in the same way."""

import itertools
import re
import shlex

from .log import ToolError

# The command of a target, as Kbuild keeps it beside the target.
_SAVED = re.compile(r"^savedcmd_\S+ := (.*)$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"\w+=")


class Compilation:
    """The environment and the flags of one run of the compiler, without its input and output.

    Paths in the flags are relative to `directory`.
    """

    def __init__(self, directory, target):
        """Of `target`, a path below `directory`, where the modules were built."""
        self.directory = directory
        words = iter(_words(directory / target))
        self.environment = {}
        for word in words:
            if not _ASSIGNMENT.match(word):
                break
            name, _, value = word.partition("=")
            self.environment[name] = value
        # What make exports, and so does not record: see the kernel's Makefile and our Kbuild.
        self.environment["RUSTC_BOOTSTRAP"] = "1"
        self.environment["RRDMA_GENERATED"] = str(directory / "rust/bindings")
        self.environment["RNVMF_GENERATED"] = str(directory / "drivers/nvme/host")
        self.flags = list(_without_files(words))


def _words(target):
    """The words of the command that made a target."""
    file = target.with_name(f".{target.name}.cmd")
    try:
        found = _SAVED.search(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ToolError(f"no record of how {target} was built: {error.strerror}") from error
    if found is None:
        raise ToolError(f"{file} holds no command")
    lexer = shlex.shlex(found[1].replace("$(pound)", "#").replace("$$", "$"), posix=True,
                        punctuation_chars=";")
    lexer.whitespace_split = True
    lexer.commenters = ""
    # Other commands may follow the compiler's.
    return itertools.takewhile(lambda word: word != ";", lexer)


def _without_files(words):
    """Flags, less those that name what is read and written."""
    for word in words:
        if word == "--out-dir":
            next(words)
        elif not (word.startswith("--emit=") or word.endswith(".rs")):
            yield word

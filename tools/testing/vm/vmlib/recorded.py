# SPDX-License-Identifier: GPL-2.0
"""The flags with which Kbuild compiled a crate, for tools that must use the same ones."""

import itertools
import re
import shlex

from .log import ToolError

# The command of a target, in the .cmd file that Kbuild writes beside it.
_SAVED = re.compile(r"^savedcmd_\S+ := (.*)$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"\w+=")


class Compilation:
    """The environment and the flags of a run of the compiler, without input and output files.

    Paths in the flags are relative to `directory`.
    """

    def __init__(self, directory, target):
        """Read how `target` was built: a path relative to `directory`, the build directory."""
        self.directory = directory
        words = iter(_words(directory / target))
        self.environment = {}
        for word in words:
            if not _ASSIGNMENT.match(word):
                break
            name, _, value = word.partition("=")
            self.environment[name] = value
        # Variables that make exports are not recorded: see the kernel's Makefile and our Kbuild.
        self.environment["RUSTC_BOOTSTRAP"] = "1"
        self.environment["RRDMA_GENERATED"] = str(directory / "rust/bindings")
        self.environment["RNVMF_GENERATED"] = str(directory / "drivers/nvme/disk")
        self.environment["NVME_CORE_GENERATED"] = str(directory / "rust/nvme_core/bindings")
        self.environment["NVMET_GENERATED"] = str(directory / "rust/nvmet/bindings")
        self.flags = list(_without_files(words))


def _words(target):
    """Return the words of the command that built a target."""
    file = target.with_name(f".{target.name}.cmd")
    try:
        found = _SAVED.search(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ToolError(f"cannot read the build command of {target}: {error.strerror}") from error
    if found is None:
        raise ToolError(f"no savedcmd in {file}")
    lexer = shlex.shlex(found[1].replace("$(pound)", "#").replace("$$", "$"), posix=True,
                        punctuation_chars=";")
    lexer.whitespace_split = True
    lexer.commenters = ""
    # Stop at the end of the compiler's command: others may follow.
    return itertools.takewhile(lambda word: word != ";", lexer)


def _without_files(words):
    """Yield the flags, without those that name input or output files."""
    for word in words:
        if word == "--out-dir":
            next(words)
        elif not (word.startswith("--emit=") or word.endswith(".rs")):
            yield word

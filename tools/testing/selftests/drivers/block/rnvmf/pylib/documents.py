# SPDX-License-Identifier: GPL-2.0
"""The literal blocks of documents, and what each has to stand up to.

A comment before a block, `.. test: WHAT`, says how it is tested; `<!-- test: WHAT -->` in Markdown:

    STATE            commands after a prompt, `# ` of root or `$ ` of anybody, typed in that state
                     of the fixture, each with its output
    commands, STATE  commands, a line each, that have to succeed, and no output
    output, STATE    what the fixture finds in that state
    text, STATE      a file, or a script, that the fixture makes use of
    no, REASON       not at all
"""

import difflib
import itertools
import re

PROMPTS = ("# ", "$ ")
# Any number of lines that are there and not in the document.
GAP = "..."


def _row(match):
    """A row of statistics, or the heads of its columns, which are as wide as their numbers."""
    return match[1] + " ".join(re.sub(r"\b[\d.]+( k?M?B)?(?= |$)", "N", match[2]).split())


# What stands for a line of a histogram. There are as many as it happens.
_BUCKET = "  < N  N  #"

# What may be otherwise each time. All else has to be as it is written.
MASKS = [(re.compile(pattern), text) for pattern, text in (
    (r"generation \d+", "generation N"),
    (r"next in [\d.]+ m?s", "next in N s"),
    (r"given up in (5\d\d|600) s", "given up in N s"),
    (r"^(attempts to connect +)\d+", r"\1N"),
    (r"\bcmdid=\d+", "cmdid=N"),
    (r"missing in /\S+/rust ", "missing in DIRECTORY "),
    (r"^(DEVICE  QUEUE  )(.*)$", _row),
    (r"^(rnvmf\d+  \d+  )(.*)$", _row),
    (r"< [\d.]+ [mu]?s\b", "< N"),
    (r"^  < N +\d+ +#+$", _BUCKET),
)]

_MARKER = re.compile(r"\s*(?:\.\. test: (.*)|<!-- test: (.*?) -->)\s*$")
_KINDS = ("commands", "output", "text")
_STATE = re.compile(r"[a-z]+(-[a-z0-9]+)*$")
_CODE = re.compile(r"\s*\.\. (code|code-block|sourcecode|parsed-literal)::")
_DIRECTIVE = re.compile(r"\s*\.\. ")
_FENCE = re.compile(r"\s*```")
# What a document that is not tested must not have.
_COMMAND = re.compile(r"(?:[#$] |sudo )*rnvmf (?:[a-z]+-all|connect|discover|disconnect|doctor|"
                      r"list|monitor|rescan|reset|set|show|stats)\b")


class Block:
    """A literal block: where it begins, its marker or None, and its lines."""

    def __init__(self, line, marker, lines):
        self.line = line
        self.marker = marker
        self.lines = lines
        first, comma, rest = (marker or "").partition(", ")
        self.tested = first != "no"
        self.kind, self.state = (first, rest) if comma else ("session", first)
        self.name = None

    def complaint(self):
        """What is wrong with it as it stands, if anything."""
        if self.marker is None:
            return "has no marker: `.. test: STATE`, or `.. test: no, REASON`, before it"
        if not self.tested:
            return None if self.state else "is not tested, for no reason"
        if self.kind not in ("session", *_KINDS) or not _STATE.match(self.state):
            return f"has the marker '{self.marker}', which means nothing"
        if self.kind == "session" and not self.lines[0].startswith(PROMPTS):
            return "begins with no prompt; `.. test: commands, STATE` is for commands without"
        if self.kind == "commands" and any(line.startswith(PROMPTS) for line in self.lines):
            return "has a prompt, and so should have output"
        return None

    def has_commands(self):
        """Whether an administrator would type some of it."""
        return any(_COMMAND.match(line) for line in self.lines)


def _indentation(line):
    return len(line) - len(line.lstrip())


def _literal(lines, start, over):
    """The lines from `start` that are indented by more than `over`: without that, and the end."""
    end = start
    while end < len(lines) and (not lines[end].strip() or _indentation(lines[end]) > over):
        end += 1
    found = lines[start:end]
    for last in (0, -1):
        while found and not found[last].strip():
            found.pop(last)
    common = min((_indentation(line) for line in found if line.strip()), default=0)
    return [line[common:].rstrip() for line in found], end


def _opens(lines, at, markdown):
    """Whether a block follows the line, and over which indentation."""
    line = lines[at]
    if markdown:
        after = at + 1 < len(lines) and lines[at + 1].startswith("    ")
        return not line.strip() and after, 3
    literal = line.rstrip().endswith("::") and not _DIRECTIVE.match(line)
    return literal or bool(_CODE.match(line)), _indentation(line)


def _fenced(lines, at):
    """The fenced block that begins at this line, and its end."""
    end = next(number for number in range(at + 1, len(lines)) if _FENCE.match(lines[number]))
    return [line.rstrip() for line in lines[at + 1:end]], end + 1


def blocks(text, markdown=False):
    """The literal blocks of a document, and (line, complaint) for each marker without a block."""
    lines, found, stray, marker, at = text.splitlines(), [], [], None, 0
    while at < len(lines):
        matched = _MARKER.match(lines[at])
        opens, over = _opens(lines, at, markdown)
        if matched:
            if marker:
                stray.append((marker[0], "is a marker, and no block follows"))
            marker = (at + 1, matched[1] or matched[2])
        elif markdown and _FENCE.match(lines[at]):
            literal, end = _fenced(lines, at)
            found.append(Block(at + 1, marker and marker[1], literal))
            marker, at = None, end
            continue
        elif opens:
            literal, end = _literal(lines, at + 1, over)
            if literal:
                found.append(Block(at + 1, marker and marker[1], literal))
                marker, at = None, end
                continue
        at += 1
    if marker:
        stray.append((marker[0], "is a marker, and no block follows"))
    return found, stray


def read(path):
    """The blocks of a document and complaints of it; those that are tested have a name."""
    found, stray = blocks(path.read_text(encoding="utf-8"), path.suffix == ".md")
    counts = {}
    for block in found:
        if block.marker and block.tested:
            stem = f"{path.stem.lower()}_{block.state}".replace("-", "_")
            counts[stem] = counts.get(stem, 0) + 1
            block.name = stem if counts[stem] == 1 else f"{stem}_{counts[stem]}"
    return found, stray


def complaints(path):
    """What is wrong with a document that is tested, as (line, text)."""
    found, stray = read(path)
    yield from stray
    for block in found:
        complaint = block.complaint()
        if complaint:
            yield block.line, complaint


def untested(path):
    """What is wrong with a document that is not tested, as (line, text)."""
    for block in blocks(path.read_text(encoding="utf-8"))[0]:
        if block.has_commands() and not (block.marker and not block.tested):
            yield block.line, "has commands, and its document is not one of those that are tested"


def _masked(lines):
    """Lines without what may be otherwise each time."""
    found = []
    for each in lines:
        line = each.rstrip()
        for pattern, text in MASKS:
            line = pattern.sub(text, line)
        if line != _BUCKET or found[-1:] != [line]:
            found.append(line)
    return found


def _at(wanted, found):
    """Whether lines are found as they are wanted, with gaps."""
    pattern = "".join(r"(?:.*\n)*" if line == GAP else re.escape(f"{line}\n") for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in found)) is not None


def differences(wanted, found):
    """None if the lines are the same but for masks and gaps; else what is different."""
    wanted, found = (_masked(lines) for lines in (wanted, found))
    # An empty line at the end of a block is not there in the document.
    found = list(reversed(list(itertools.dropwhile(lambda line: not line, reversed(found)))))
    if _at(wanted, found):
        return None
    return "\n".join(difflib.unified_diff(wanted, found, "document", "found", lineterm="", n=99))

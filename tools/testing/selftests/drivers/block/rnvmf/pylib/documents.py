# SPDX-License-Identifier: GPL-2.0
"""Parses the literal blocks of documents, and how each is tested.

A marker before a block says how the block is tested: the comment `.. test: WHAT`, in Markdown
`<!-- test: WHAT -->`. WHAT is one of:

    STATE            commands with their output, after the prompt `# ` (root) or `$ ` (any user),
                     run in this state of the fixture
    commands, STATE  commands without prompt and output, one a line; each must succeed
    output, STATE    output that the fixture produces in this state
    text, STATE      a file or a script that the fixture uses
    no, REASON       not tested
"""

import difflib
import itertools
import re

PROMPTS = ("# ", "$ ")
# Stands for any number of lines that the document omits.
GAP = "..."


def _row(match):
    """Mask a row of statistics or of column titles, whose widths depend on the numbers."""
    return match[1] + " ".join(re.sub(r"\b[\d.]+( k?M?B)?(?= |$)", "N", match[2]).split())


# Replacement for a line of a histogram. The number of lines varies.
_BUCKET = "  < N  N  #"

# Parts of lines that vary. All other text must match exactly.
MASKS = [(re.compile(pattern), text) for pattern, text in (
    (r"generation \d+", "generation N"),
    (r"next in [\d.]+ m?s", "next in N s"),
    (r"given up in (5\d\d|600) s", "given up in N s"),
    (r"no response from the target in [\d.]+ m?s", "no response from the target in N s"),
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
# Commands that a document without tests must not contain.
_COMMAND = re.compile(r"(?:[#$] |sudo )*rnvmf (?:[a-z]+-all|connect|discover|disconnect|doctor|"
                      r"list|monitor|rescan|reset|set|show|stats)\b")


class Block:
    """A literal block: its first line number, its marker or None, and its lines."""

    def __init__(self, line, marker, lines):
        self.line = line
        self.marker = marker
        self.lines = lines
        first, comma, rest = (marker or "").partition(", ")
        self.tested = first != "no"
        self.kind, self.state = (first, rest) if comma else ("session", first)
        self.name = None

    def complaint(self):
        """Return what is wrong with the block or its marker, or None."""
        if self.marker is None:
            return "has no marker: `.. test: STATE`, or `.. test: no, REASON`, before it"
        if not self.tested:
            return None if self.state else "has the marker `no` without a reason"
        if self.kind not in ("session", *_KINDS) or not _STATE.match(self.state):
            return f"has the unknown marker '{self.marker}'"
        if self.kind == "session" and not self.lines[0].startswith(PROMPTS):
            return "begins without a prompt; use `.. test: commands, STATE` if it has none"
        if self.kind == "commands" and any(line.startswith(PROMPTS) for line in self.lines):
            return "has a prompt; use `.. test: STATE` and add the output"
        return None

    def has_commands(self):
        """Return whether a line is a command of rnvmf."""
        return any(_COMMAND.match(line) for line in self.lines)


def _indentation(line):
    return len(line) - len(line.lstrip())


def _literal(lines, start, over):
    """Return the lines from `start` indented by more than `over`, dedented, and their end."""
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
    """Return whether a block follows the line, and the indentation that it exceeds."""
    line = lines[at]
    if markdown:
        after = at + 1 < len(lines) and lines[at + 1].startswith("    ")
        return not line.strip() and after, 3
    literal = line.rstrip().endswith("::") and not _DIRECTIVE.match(line)
    return literal or bool(_CODE.match(line)), _indentation(line)


def _fenced(lines, at):
    """Return the lines of the fenced block that begins at this line, and its end."""
    end = next(number for number in range(at + 1, len(lines)) if _FENCE.match(lines[number]))
    return [line.rstrip() for line in lines[at + 1:end]], end + 1


def blocks(text, markdown=False):
    """Return the literal blocks of a document, and (line, text) for each marker without a block."""
    lines, found, stray, marker, at = text.splitlines(), [], [], None, 0
    while at < len(lines):
        matched = _MARKER.match(lines[at])
        opens, over = _opens(lines, at, markdown)
        if matched:
            if marker:
                stray.append((marker[0], "has a marker without a block"))
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
        stray.append((marker[0], "has a marker without a block"))
    return found, stray


def read(path):
    """Return the blocks of a document and its stray markers. Tested blocks get a name."""
    found, stray = blocks(path.read_text(encoding="utf-8"), path.suffix == ".md")
    counts = {}
    for block in found:
        if block.marker and block.tested:
            stem = f"{path.stem.lower()}_{block.state}".replace("-", "_")
            counts[stem] = counts.get(stem, 0) + 1
            block.name = stem if counts[stem] == 1 else f"{stem}_{counts[stem]}"
    return found, stray


def complaints(path):
    """Yield what is wrong with a tested document, as (line, text)."""
    found, stray = read(path)
    yield from stray
    for block in found:
        complaint = block.complaint()
        if complaint:
            yield block.line, complaint


def untested(path):
    """Yield what is wrong with a document without tests, as (line, text)."""
    for block in blocks(path.read_text(encoding="utf-8"))[0]:
        if block.has_commands() and not (block.marker and not block.tested):
            yield block.line, "has commands of rnvmf, but test_documents.sh does not test it"


def _masked(lines):
    """Return the lines with the varying parts masked."""
    found = []
    for each in lines:
        line = each.rstrip()
        for pattern, text in MASKS:
            line = pattern.sub(text, line)
        if line != _BUCKET or found[-1:] != [line]:
            found.append(line)
    return found


def _at(wanted, found):
    """Return whether the lines match, with gaps."""
    pattern = "".join(r"(?:.*\n)*" if line == GAP else re.escape(f"{line}\n") for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in found)) is not None


def differences(wanted, found):
    """Return a diff, or None if the lines are equal apart from masks and gaps."""
    wanted, found = (_masked(lines) for lines in (wanted, found))
    # A literal block cannot end with empty lines.
    found = list(reversed(list(itertools.dropwhile(lambda line: not line, reversed(found)))))
    if _at(wanted, found):
        return None
    return "\n".join(difflib.unified_diff(wanted, found, "document", "found", lineterm="", n=99))

# SPDX-License-Identifier: GPL-2.0
"""Calls of functions with the attribute `track_caller`, which get the place of the call."""

import re

_TRACKED = re.compile(r"#\[track_caller\]\n(?:\s*#\[.*\n)*\s*(?:pub(?:\([a-z ]+\))? )?fn (\w+)[^(]*"
                      r"\(\s*(&(?:mut )?self|self|)")
_IMPL = re.compile(r"^impl(?:<.*?>)? (?:.* for )?(\w+)", re.MULTILINE)
_GENERIC = re.compile(r"(?:::)?<[^<>()]*>")
_CALL = re.compile(r"((?:\w+::)*\w+)\(")


def functions(top):
    """Return the tracked functions in the files below `top`: `Type::function`, or a method."""
    found = set()
    for path in sorted(top.rglob("*.rs")):
        text = path.read_text(encoding="utf-8")
        for match in _TRACKED.finditer(text):
            owner = [one[1] for one in _IMPL.finditer(text, 0, match.start())][-1:]
            found.add(match[1] if match[2] or not owner else f"{owner[0]}::{match[1]}")
    return found


def called(line, column):
    """Return the function that is called at a column of a line, as `functions` names it, or None.

    The place of a method call is that of the method's name.
    """
    rest, count = line[column - 1:], 1
    while count:
        rest, count = _GENERIC.subn("", rest)
    match = _CALL.match(rest)
    return "::".join(match[1].split("::")[-2:]) if match else None

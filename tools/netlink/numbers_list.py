# SPDX-License-Identifier: GPL-2.0
"""List the numbers of the netlink interface, and find those that changed.

Programs are built with these numbers. So an entry of the list stays as it is; new ones are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spec import Specification

FILE = Path(__file__).resolve().with_name("numbers")
HEAD = """\
# SPDX-License-Identifier: GPL-2.0
# Made by tools/netlink/gen-uapi: the numbers that programs are built with. No line may change.
"""


def entries(found: Specification) -> list[str]:
    """Return a line for each operation, attribute and entry of an enumeration."""
    return [f"{found.family} {line}" for line in _entries(found)]


def _entries(found: Specification) -> Iterator[str]:
    for command in found.commands:
        yield f"operation {command.name} = {command.value}"
    for space in found.sets:
        for each in space.attributes.values():
            inner = f" of {each.nested}" if each.nested else ""
            yield f"{space.name} {each.name} = {each.number}: {each.type}{inner}"
    for enumeration in found.enumerations:
        for entry in enumeration.entries:
            yield f"{enumeration.name} {entry.name} = {entry.value}"


def recorded() -> list[str]:
    """Return the recorded lines."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    return [line for line in lines if not line.startswith("#")]


def changed(before: list[str], now: list[str]) -> list[str]:
    """Return the lines of `before` that are no longer true."""
    return [line for line in before if line not in set(now)]


def record(now: list[str]) -> None:
    """Write the list."""
    FILE.write_text(HEAD + "".join(f"{line}\n" for line in now), encoding="utf-8")

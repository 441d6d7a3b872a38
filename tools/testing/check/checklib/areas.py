# SPDX-License-Identifier: GPL-2.0
"""Read layers.table: the crates and their layers."""

import pathlib
from dataclasses import dataclass, field
from typing import NamedTuple

from . import table

TABLE = pathlib.Path(__file__).resolve().parents[1] / "layers.table"
# Directories of the crates that Kbuild compiles, except for the samples.
KERNEL = ("rust", "drivers/")


class Layer(NamedTuple):
    """A layer: its number from the bottom, and its description."""

    number: int
    holds: str

    def __str__(self):
        return f"layer {self.number} ({self.holds})"


class Room(NamedTuple):
    """An entry of a layer: a module with all modules below it, or a pattern of files."""

    where: str
    name: str
    layer: Layer

    def holds(self, file):
        """Return whether the entry matches a file; the path is relative to the area."""
        if self.name.endswith(".rs"):
            return bool(table.pattern(self.name).match(file))
        return file == f"{self.name}.rs" or file.startswith(f"{self.name}/")


@dataclass
class Area:
    """A directory and its layers. Without a root file, only the crates that it uses are checked."""

    where: str
    directory: str
    root: str = ""
    uses: set = field(default_factory=set)
    parents: bool = False
    impls: bool = False
    pending: bool = False
    rooms: list = field(default_factory=list)
    # Accepted imports: (file, imported file) -> place of the line in the table.
    allowed: dict = field(default_factory=dict)

    @property
    def crate(self):
        """The name of the crate."""
        return self.root.removesuffix(".rs")

    def inside(self, file):
        """Return the path of a file relative to the directory."""
        return file.removeprefix(f"{self.directory}/")

    def room(self, file):
        """Return the entry of a file: the longest that matches. None if no entry matches."""
        found = [room for room in self.rooms if room.holds(self.inside(file))]
        longest = max((len(room.name) for room in found), default=0)
        found = [room for room in found if len(room.name) == longest]
        if len({room.layer.number for room in found}) > 1:
            raise table.TableError(f"{found[1].where}: {file} is also in {found[0].layer}")
        return found[0] if found else None


def read(path):
    """Return the areas of a table."""
    found = []
    for where, text in table.lines(path):
        words = text.split()
        if words[0] == "area":
            found.append(_area(where, words[1:]))
        elif not found:
            raise table.TableError(f"{where}: expected an area before this line")
        elif words[0] == "allow":
            _allow(found[-1], where, text)
        else:
            _layer(found[-1], where, text)
    return found


def _area(where, words):
    area = Area(where, words.pop(0) if words else "")
    if words and words[0].endswith(".rs"):
        area.root = words.pop(0)
    for option in ("parents", "impls", "pending"):
        if option in words:
            words.remove(option)
            setattr(area, option, True)
    if words and words.pop(0) != "uses":
        raise table.TableError(f"{where}: expected `area DIRECTORY [ROOT.rs] [uses CRATE...]`")
    area.uses = set(words)
    return area


def _allow(area, where, text):
    imports, colon, reason = text.removeprefix("allow").partition(":")
    files = imports.split(" -> ")
    if len(files) != 2 or not colon or not reason.strip():
        raise table.TableError(f"{where}: expected `allow FILE -> FILE: REASON`")
    area.allowed[files[0].strip(), files[1].strip()] = where


def _layer(area, where, text):
    rooms, colon, holds = text.partition(":")
    number, *names = rooms.split()
    if not number.isdecimal() or not names or not colon or not area.root:
        raise table.TableError(f"{where}: expected `NUMBER FILES...: DESCRIPTION`, in an area "
                               "with a root file")
    layer = Layer(int(number), holds.strip())
    if any(layer.number <= room.layer.number for room in area.rooms):
        raise table.TableError(f"{where}: layer {number} is not above the previous layer")
    area.rooms += [Room(where, name, layer) for name in names]


def kernel_crates(top):
    """Return the crates of the modules; a crate follows those that it uses.

    A crate is a pair: the path of its root file without the suffix, and whether another crate
    uses it.
    """
    found = [area for area in read(TABLE) if area.root and area.directory.startswith(KERNEL)]
    used = set().union(*(area.uses for area in found))
    return [(f"{area.directory}/{area.crate}", area.crate in used)
            for area in sorted(found, key=lambda area: len(area.uses))
            if (top / area.directory / area.root).is_file()]

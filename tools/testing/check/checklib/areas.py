# SPDX-License-Identifier: GPL-2.0
"""The crates and their layers, as layers.table has them."""

import pathlib
from dataclasses import dataclass, field
from typing import NamedTuple

from . import table

TABLE = pathlib.Path(__file__).resolve().parents[1] / "layers.table"
# Where the crates are that the kernel's build compiles, less the samples.
KERNEL = ("rust", "drivers/")


class Layer(NamedTuple):
    """A layer: its number from the bottom, and what it holds."""

    number: int
    holds: str

    def __str__(self):
        return f"layer {self.number} ({self.holds})"


class Room(NamedTuple):
    """Files of a layer: by a pattern, or a module with all that is below it."""

    where: str
    name: str
    layer: Layer

    def holds(self, file):
        """Whether a file of the area is one of them."""
        if self.name.endswith(".rs"):
            return bool(table.pattern(self.name).match(file))
        return file == f"{self.name}.rs" or file.startswith(f"{self.name}/")


@dataclass
class Area:
    """A directory with its layers; without a root only what crates it uses is looked at."""

    where: str
    directory: str
    root: str = ""
    uses: set = field(default_factory=set)
    parents: bool = False
    impls: bool = False
    pending: bool = False
    rooms: list = field(default_factory=list)
    # Imports that stay, from and to which file, with the place of their line.
    allowed: dict = field(default_factory=dict)

    @property
    def crate(self):
        """The name of the crate."""
        return self.root.removesuffix(".rs")

    def inside(self, file):
        """The path of a file from the directory."""
        return file.removeprefix(f"{self.directory}/")

    def room(self, file):
        """The room of a file: the one with the longest name that holds it."""
        found = [room for room in self.rooms if room.holds(self.inside(file))]
        longest = max((len(room.name) for room in found), default=0)
        found = [room for room in found if len(room.name) == longest]
        if len({room.layer.number for room in found}) > 1:
            raise table.TableError(f"{found[1].where}: {file} is in {found[0].layer} as well")
        return found[0] if found else None


def read(path):
    """The areas of a table."""
    found = []
    for where, text in table.lines(path):
        words = text.split()
        if words[0] == "area":
            found.append(_area(where, words[1:]))
        elif not found:
            raise table.TableError(f"{where}: stands before the first area")
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
        raise table.TableError(f"{where}: is not `area DIRECTORY [ROOT.rs] [uses CRATE...]`")
    area.uses = set(words)
    return area


def _allow(area, where, text):
    imports, colon, reason = text.removeprefix("allow").partition(":")
    files = imports.split(" -> ")
    if len(files) != 2 or not colon or not reason.strip():
        raise table.TableError(f"{where}: is not `allow FILE -> FILE: REASON`")
    area.allowed[files[0].strip(), files[1].strip()] = where


def _layer(area, where, text):
    rooms, colon, holds = text.partition(":")
    number, *names = rooms.split()
    if not number.isdecimal() or not names or not colon or not area.root:
        raise table.TableError(f"{where}: is not `NUMBER ROOM...: WHAT IT HOLDS` of an area")
    layer = Layer(int(number), holds.strip())
    if any(layer.number <= room.layer.number for room in area.rooms):
        raise table.TableError(f"{where}: layer {number} is not above the one before")
    area.rooms += [Room(where, name, layer) for name in names]


def kernel_crates(top):
    """The crates of the modules, each after those that it uses.

    Pairs of the path of the root file without its suffix, and whether another uses the crate.
    """
    found = [area for area in read(TABLE) if area.root and area.directory.startswith(KERNEL)]
    used = set().union(*(area.uses for area in found))
    return [(f"{area.directory}/{area.crate}", area.crate in used)
            for area in sorted(found, key=lambda area: len(area.uses))
            if (top / area.directory / area.root).is_file()]

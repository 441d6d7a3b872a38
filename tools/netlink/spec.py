# SPDX-License-Identifier: GPL-2.0
"""Read what the generator needs of a netlink specification, and number its parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Constant:
    """A named number."""

    name: str
    value: int
    doc: str


@dataclass(frozen=True)
class Enumeration:
    """A named list of named numbers."""

    name: str
    doc: str
    entries: list[Constant]


@dataclass(frozen=True)
class Attribute:
    """An attribute of a set.

    A limit of `checks` is a number or the name of a constant; `nested` is the name of the set of
    a nest, and `multi` whether it may occur several times.
    """

    name: str
    number: int
    type: str
    doc: str
    checks: dict[str, int | str]
    nested: str
    multi: bool


@dataclass(frozen=True)
class AttributeSet:
    """A space of attributes, by name, in the order of their numbers."""

    name: str
    doc: str
    attributes: dict[str, Attribute]


@dataclass(frozen=True)
class Request:
    """What the do or the dump of an operation takes."""

    operation: str
    mode: str
    admin: bool
    set: AttributeSet
    attributes: list[Attribute]


@dataclass(frozen=True)
class Specification:
    """A generic netlink family."""

    family: str
    constants: list[Constant]
    enumerations: list[Enumeration]
    sets: list[AttributeSet]
    commands: list[Constant]
    requests: list[Request]
    groups: list[str]


def load(path: Path) -> Specification:
    """Read a specification; the kernel's schema is taken to have been checked."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    sets = _sets(tree)
    return Specification(
        family=tree["name"],
        constants=_constants(tree),
        enumerations=_enumerations(tree),
        sets=list(sets.values()),
        commands=_commands(tree),
        requests=_requests(tree, sets),
        groups=[group["name"] for group in tree["mcast-groups"]["list"]],
    )


def _constants(tree: dict) -> list[Constant]:
    return [
        Constant(item["name"], item["value"], item["doc"])
        for item in tree["definitions"]
        if item["type"] == "const"
    ]


def _enumerations(tree: dict) -> list[Enumeration]:
    return [
        Enumeration(
            item["name"],
            item["doc"],
            [
                Constant(entry["name"], number, entry["doc"])
                for number, entry in enumerate(item["entries"], item.get("value-start", 0))
            ],
        )
        for item in tree["definitions"]
        if item["type"] == "enum"
    ]


def _sets(tree: dict) -> dict[str, AttributeSet]:
    sets = {}
    for item in tree["attribute-sets"]:
        attributes = {
            each["name"]: Attribute(
                name=each["name"],
                number=number,
                type=each["type"],
                doc=each["doc"],
                checks=each.get("checks", {}),
                nested=each.get("nested-attributes", ""),
                multi=each.get("multi-attr", False),
            )
            for number, each in enumerate(item["attributes"], 1)
        }
        sets[item["name"]] = AttributeSet(item["name"], item["doc"], attributes)
    return sets


def _commands(tree: dict) -> list[Constant]:
    return [
        Constant(item["name"], number, item["doc"])
        for number, item in enumerate(tree["operations"]["list"], 1)
    ]


def _requests(tree: dict, sets: dict[str, AttributeSet]) -> list[Request]:
    requests = []
    for item in tree["operations"]["list"]:
        for mode in ("do", "dump"):
            if mode not in item:
                continue
            space = sets[item["attribute-set"]]
            names = item[mode].get("request", {}).get("attributes", [])
            attributes = sorted(
                (space.attributes[name] for name in names), key=lambda each: each.number
            )
            admin = "admin-perm" in item.get("flags", [])
            requests.append(Request(item["name"], mode, admin, space, attributes))
    return requests

# SPDX-License-Identifier: GPL-2.0
"""Reads the netlink specification of rnvmf, and decodes messages with it."""

import importlib
import pathlib
import struct
import sys

import yaml

from . import genl

HERE = pathlib.Path(__file__).resolve().parents[1]
SCALARS = {"u8": "=B", "u16": "=H", "u32": "=I", "s32": "=i", "uint": "=Q"}


def _first(what, candidates):
    for path in candidates:
        if path.exists():
            return path
    raise FileNotFoundError(f"no {what}, neither of {', '.join(map(str, candidates))}")


def path():
    """Return the path of the specification: beside the tests, or in the test VM's source tree."""
    return _first("specification", [
        HERE / "rnvmf.yaml",
        pathlib.Path("/opt/rnvmf/src/Documentation/netlink/specs/rnvmf.yaml")])


def ynl_family():
    """Return the kernel's Python client (pyynl) for the family."""
    release = pathlib.Path("/proc/sys/kernel/osrelease").read_text(encoding="ascii").strip()
    sys.path.insert(0, str(_first("ynl client", [
        HERE.parents[4] / "net/ynl/pyynl",
        HERE.parents[2] / "net/lib/ynl/pyynl",
        pathlib.Path(f"/lib/modules/{release}/build/tools/net/ynl/pyynl"),
        pathlib.Path("/opt/rnvmf/kernel/tools/net/ynl/pyynl")])))
    # pyynl caches family IDs, which change when the module is loaded again.
    for name in [name for name in sys.modules if name.partition(".")[0] == "lib"]:
        del sys.modules[name]
    # Without a schema: validating the specification takes long.
    return importlib.import_module("lib").YnlFamily(str(path()), schema="")


class Attribute:
    """An attribute of an attribute set."""

    def __init__(self, number, yaml_entry, constants, enums):
        self.number = number
        self.name = yaml_entry["name"]
        self.type = yaml_entry["type"]
        self.nested = yaml_entry.get("nested-attributes")
        self.is_list = yaml_entry.get("multi-attr", False)
        self.words = enums.get(yaml_entry.get("enum"))
        checks = yaml_entry.get("checks", {})
        self.checks = {key: constants.get(value, value) for key, value in checks.items()}

    def scalar(self, value):
        """Return the payload of a number."""
        return struct.pack(SCALARS[self.type], value)

    def payload(self, value):
        """Return the payload of a value. A flag ignores its value."""
        if self.type in SCALARS:
            return self.scalar(value)
        return {"string": lambda: value.encode() + b"\0", "binary": lambda: value,
                "flag": lambda: b""}[self.type]()

    def value(self, payload):
        """Return the value of a payload that is not nested."""
        if self.type in SCALARS:
            number = int.from_bytes(payload, sys.byteorder, signed=self.type.startswith("s"))
            return self.words[number] if self.words else number
        return {"string": lambda: payload.rstrip(b"\0").decode(), "binary": lambda: payload,
                "flag": lambda: True}[self.type]()

    def limits(self):
        """Return the smallest and the largest allowed value of a number."""
        bits = 8 * struct.calcsize(SCALARS[self.type])
        return self.checks.get("min", 0), self.checks.get("max", (1 << bits) - 1)


class Request:
    """A request of an operation, `do` or `dump`, with the attributes that it may carry."""

    def __init__(self, operation, mode, command, names, pool):
        self.operation = operation
        self.mode = mode
        self.command = command
        self.admin = "admin-perm" in operation.get("flags", [])
        self.attributes = {name: pool[name] for name in names}
        self.others = {name: one for name, one in pool.items() if name not in names}

    def __str__(self):
        return f"{self.operation['name']} ({self.mode})"


class Spec:
    """The parsed specification."""

    def __init__(self):
        text = path().read_text(encoding="utf-8")
        tree = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        constants = {one["name"]: one["value"] for one in tree["definitions"]
                     if one["type"] == "const"}
        enums = {one["name"]: [entry["name"] for entry in one["entries"]]
                 for one in tree["definitions"] if one["type"] == "enum"}
        self.sets = {}
        for each in tree["attribute-sets"]:
            entries = enumerate(each["attributes"], 1)
            self.sets[each["name"]] = {entry["name"]: Attribute(number, entry, constants, enums)
                                       for number, entry in entries}
        operations = tree["operations"]["list"]
        self.requests = list(self._requests(operations))
        self.commands = len(operations)
        named = {one["name"]: one for one in operations}
        # By command: the name of a notification and its attribute set.
        self.events = {command: (one["name"], named[one["notify"]]["attribute-set"])
                       for command, one in enumerate(operations, 1) if "notify" in one}

    def _requests(self, operations):
        for command, operation in enumerate(operations, 1):
            for mode in ("do", "dump"):
                if mode in operation:
                    names = operation[mode].get("request", {}).get("attributes", [])
                    yield Request(operation, mode, command, names,
                                  self.sets[operation["attribute-set"]])

    def request(self, name, mode="do"):
        """Return the request of an operation."""
        return next(one for one in self.requests
                    if (one.operation["name"], one.mode) == (name, mode))

    def values(self, attribute_set, data):
        """Decode attributes of a set; return values by name."""
        known = {one.number: one for one in self.sets[attribute_set].values()}
        found = {}
        for number, payload in genl.attributes(data):
            one = known[number]
            value = self.values(one.nested, payload) if one.nested else one.value(payload)
            if one.is_list:
                found.setdefault(one.name, []).append(value)
            else:
                found[one.name] = value
        return found

# SPDX-License-Identifier: GPL-2.0
"""A specification as Rust, for the kernel module and the user program, as rustfmt would have it."""

from __future__ import annotations

import textwrap

from spec import Attribute, AttributeSet, Constant, Enumeration, Request, Specification

SOURCE = "Documentation/netlink/specs/rnvmf.yaml"
GENERATOR = "tools/netlink/gen-uapi"

# rustfmt's widths of a line and of a struct literal that stays on its line.
LINE = 100
LITERAL = 18

# The variants of `rrdma::netlink::Kind`, by the type that the specification names.
KINDS = {
    "u8": ("U8", ("min", "max"), "u8"),
    "u16": ("U16", ("min", "max"), "u16"),
    "u32": ("U32", ("min", "max"), "u32"),
    "string": ("Str", ("max_len",), "u16"),
    "binary": ("Binary", ("min_len", "max_len"), "u16"),
    "flag": ("Flag", (), None),
}


def kernel(spec: Specification) -> str:
    """The module's constants and one policy for each request."""
    parts = [
        _head("Numbers and policies of the generic netlink family, as data.", "module"),
        "use rrdma::netlink::{Attribute, Kind};\n",
        _family(spec, cstr=True),
        *(_constant(each) for each in spec.constants),
        _enumeration(_command(spec), "u8"),
        *(_enumeration(each, "u32") for each in spec.enumerations),
        *(_set(each) for each in spec.sets),
        *(_policy(each) for each in spec.requests),
    ]
    return "\n".join(parts)


def program(spec: Specification) -> str:
    """The user program's constants, with names for what the kernel sends."""
    enumerations = [(_command(spec), "u8"), *((each, "u32") for each in spec.enumerations)]
    parts = [
        _head("Numbers and names of the generic netlink family.", "program"),
        _family(spec, cstr=False),
        *(_constant(each) for each in spec.constants),
        *(
            _enumeration(each, width) + "\n" + _lookups(each, width)
            for each, width in enumerations
        ),
        *(_set(each, names=True) for each in spec.sets),
    ]
    return "\n".join(parts)


def _head(what: str, user: str) -> str:
    return (
        "// SPDX-License-Identifier: GPL-2.0\n"
        f"// Made by {GENERATOR} from {SOURCE}; do not edit.\n"
        "\n"
        f"//! {what}\n"
        "\n"
        f"// The specification is the whole interface; the {user} need not use all of it.\n"
        "#![allow(dead_code)]\n"
    )


def _family(spec: Specification, *, cstr: bool) -> str:
    kind, prefix = ("&core::ffi::CStr", "c") if cstr else ("&str", "")
    lines = [
        "/// Name of the family.",
        f'pub(crate) const FAMILY: {kind} = {prefix}"{spec.family}";',
        "",
        "/// Version of the family.",
        "pub(crate) const VERSION: u8 = 1;",
        "",
    ]
    for group in spec.groups:
        lines += [
            f"/// Name of the multicast group of {group}.",
            f'pub(crate) const GROUP_{_upper(group)}: {kind} = {prefix}"{group}";',
            "",
        ]
    return "\n".join(lines)


def _constant(constant: Constant) -> str:
    # Lengths size arrays and slices; the rest are values of attributes.
    kind = "usize" if constant.name.endswith("-len") else "u32"
    return (
        _doc(constant.doc, 0)
        + f"pub(crate) const {_upper(constant.name)}: {kind} = {_number(constant.value)};\n"
    )


def _command(spec: Specification) -> Enumeration:
    return Enumeration("command", "Commands of requests, replies and events.", spec.commands)


def _enumeration(enumeration: Enumeration, width: str) -> str:
    body = "".join(
        _doc(entry.doc, 4) + f"    {_camel(entry.name)} = {entry.value},\n"
        for entry in enumeration.entries
    )
    return (
        _doc(enumeration.doc, 0)
        + "#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n"
        + f"#[repr({width})]\n"
        + f"pub(crate) enum {_camel(enumeration.name)} {{\n{body}}}\n"
    )


def _lookups(enumeration: Enumeration, width: str) -> str:
    values = "".join(
        f"            {entry.value} => Some(Self::{_camel(entry.name)}),\n"
        for entry in enumeration.entries
    )
    names = "".join(
        f'            Self::{_camel(entry.name)} => "{entry.name}",\n'
        for entry in enumeration.entries
    )
    return (
        f"impl {_camel(enumeration.name)} {{\n"
        "    /// The entry of a number; a newer kernel may send one that is not known here.\n"
        f"    pub(crate) fn from_raw(raw: {width}) -> Option<Self> {{\n"
        f"        match raw {{\n{values}            _ => None,\n        }}\n    }}\n"
        "\n"
        "    /// Its name in the specification.\n"
        "    pub(crate) fn name(self) -> &'static str {\n"
        f"        match self {{\n{names}        }}\n    }}\n"
        "}\n"
    )


def _set(space: AttributeSet, *, names: bool = False) -> str:
    lines = [f"{_doc(space.doc, 0)}pub(crate) mod {space.name.replace('-', '_')} {{"]
    attributes = list(space.attributes.values())
    for index, attribute in enumerate(attributes):
        lines.append(_doc(attribute.doc, 4).rstrip("\n"))
        lines.append(
            f"    pub(crate) const {_upper(attribute.name)}: u16 = {attribute.number};"
        )
        if index + 1 < len(attributes):
            lines.append("")
    if names:
        lines += ["", *_attribute_names(attributes)]
    lines += ["}", ""]
    return "\n".join(lines)


def _attribute_names(attributes: list[Attribute]) -> list[str]:
    return [
        "    /// The name of an attribute of this set.",
        "    pub(crate) fn name(id: u16) -> Option<&'static str> {",
        "        match id {",
        *(f'            {_upper(each.name)} => Some("{each.name}"),' for each in attributes),
        "            _ => None,",
        "        }",
        "    }",
    ]


def _policy(request: Request) -> str:
    name = _upper(f"{request.operation}-{request.mode}")
    doc = f"/// What the {request.mode} request of {request.operation} takes."
    if not request.attributes:
        return f"{doc}\npub(crate) const {name}: &[Attribute] = &[];\n"
    head = f"{doc}\npub(crate) const {name}: &[Attribute] = &["
    bodies = [_attribute(request.set, attribute) for attribute in request.attributes]
    if len(bodies) == 1:  # rustfmt lets a single literal hug its brackets
        return f"{head}{bodies[0]}];\n"
    return f"{head}\n" + "".join(textwrap.indent(f"{body},\n", " " * 4) for body in bodies) + "];\n"


def _attribute(space: AttributeSet, attribute: Attribute) -> str:
    lines = [
        "Attribute {",
        f"    id: {space.name}::{_upper(attribute.name)},",
        *_kind(attribute),
        "}",
    ]
    return "\n".join(lines)


def _kind(attribute: Attribute) -> list[str]:
    name, fields, width = KINDS[attribute.type]
    if not fields:
        return [f"    kind: Kind::{name},"]
    checks = attribute.checks
    length = checks.get("exact-len")
    limits = {
        "min": checks.get("min", 0),
        "max": checks.get("max"),
        "min_len": length,
        "max_len": checks.get("max-len", length),
    }
    values = []
    for field in fields:
        value = limits[field]
        values.append(f"{field}: " + (f"{width}::MAX" if value is None else _number(value)))
    body = ", ".join(values)
    if len(body) <= LITERAL:
        return [f"    kind: Kind::{name} {{ {body} }},"]
    return [
        f"    kind: Kind::{name} {{",
        *(f"        {value}," for value in values),
        "    },",
    ]


def _doc(text: str, indent: int) -> str:
    prefix = " " * indent + "/// "
    return "".join(prefix + line + "\n" for line in textwrap.wrap(text, LINE - len(prefix)))


def _number(value: int) -> str:
    return f"{value:_}" if value >= 100_000 else str(value)


def _upper(name: str) -> str:
    return name.replace("-", "_").upper()


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))

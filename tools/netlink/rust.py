# SPDX-License-Identifier: GPL-2.0
"""Write a specification as Rust: calls of the macros of drivers/nvme/uapi/define.rs."""

from __future__ import annotations

import textwrap

from spec import Attribute, AttributeSet, Constant, Enumeration, Request, Specification

SOURCE = "Documentation/netlink/specs/rnvmf.yaml"
GENERATOR = "tools/netlink/gen-uapi"

HEAD = f"""\
// SPDX-License-Identifier: GPL-2.0
// Made by {GENERATOR} from {SOURCE}; do not edit.

//! The interface as its specification defines it.

use crate::define::{{attribute_set, enumeration, requests}};
use core::ffi::CStr;
"""

# rustfmt's width of a line.
LINE = 100

# The number types that a request may carry.
NUMBERS = ("u8", "u16", "u32")


def crate(spec: Specification) -> str:
    """The module of the crate rnvmf_uapi."""
    command = Enumeration("command", "Commands of requests, replies and events.", spec.commands)
    parts = [
        HEAD,
        _name("family", "the family", spec.family),
        "/// Version of the family.\npub const VERSION: u8 = 1;\n",
        *(_name(f"group-{each}", f"the multicast group of {each}", each) for each in spec.groups),
        *(_constant(each) for each in spec.constants),
        _enumeration(command, "u8"),
        *(_enumeration(each, "u32") for each in spec.enumerations),
        *map(_set, spec.sets),
        _requests(spec.requests),
    ]
    return "\n".join(parts)


def _name(constant: str, what: str, name: str) -> str:
    constant = _upper(constant)
    return (
        f"/// Name of {what}.\n"
        f'pub const {constant}: &str = "{name}";\n'
        "\n"
        f"/// Name of {what}, with its NUL.\n"
        f'pub const {constant}_CSTR: &CStr = c"{name}";\n'
    )


def _constant(constant: Constant) -> str:
    # Lengths size arrays and slices; the rest are values of attributes.
    kind = "usize" if constant.name.endswith("-len") else "u32"
    value = f"{constant.value:_}" if constant.value >= 100_000 else str(constant.value)
    return _doc(constant.doc, 0) + f"pub const {_upper(constant.name)}: {kind} = {value};\n"


def _enumeration(enumeration: Enumeration, width: str) -> str:
    entries = "".join(
        _doc(entry.doc, 8) + f'        {_camel(entry.name)} = {entry.value}, "{entry.name}";\n'
        for entry in enumeration.entries
    )
    head = f"{_doc(enumeration.doc, 4)}    {_camel(enumeration.name)}: {width} {{\n"
    return f"enumeration! {{\n{head}{entries}    }}\n}}\n"


def _set(space: AttributeSet) -> str:
    lines = "".join(
        _doc(each.doc, 8)
        + f'        {_upper(each.name)} = {each.number}, "{each.name}", {_kind(each)};\n'
        for each in space.attributes.values()
    )
    head = f"{_doc(space.doc, 4)}    {_lower(space.name)} {{\n"
    return f"attribute_set! {{\n{head}{lines}    }}\n}}\n"


def _kind(attribute: Attribute) -> str:
    """A `Kind` of the crate, with the limits that the specification gives."""
    checks = {name: _limit(bound) for name, bound in attribute.checks.items()}
    if attribute.type in ("flag", "s32", "uint"):
        return attribute.type.capitalize()
    if attribute.type == "nest":
        kind = "Nests" if attribute.multi else "Nest"
        return f"{kind}({_lower(attribute.nested)}::ATTRIBUTES)"
    if attribute.type == "string":
        return f"Str({checks.get('max-len', 'usize::MAX')})"
    if attribute.type == "binary":
        return f"Bytes({checks['exact-len']})"
    if attribute.type not in NUMBERS:
        raise ValueError(f"{attribute.name} has the type {attribute.type}, which is not supported")
    most = checks.get("max", f"{attribute.type}::MAX")
    return f"{attribute.type.upper()} {{ min: {checks.get('min', 0)}, max: {most} }}"


def _limit(bound: int | str) -> str:
    """A limit: a number, or the name of a constant."""
    return _upper(bound) if isinstance(bound, str) else str(bound)


def _requests(requests: list[Request]) -> str:
    return "requests! {\n" + "\n".join(map(_request, requests)) + "}\n"


def _request(request: Request) -> str:
    name = _upper(f"{request.operation}-{request.mode}")
    for attribute in request.attributes:
        if attribute.type == "string" and "max-len" not in attribute.checks:
            raise ValueError(f"the string {attribute.name} of a request has no max-len")
    admin = str(request.admin).lower()
    names = " ".join(_upper(attribute.name) for attribute in request.attributes)
    head = f"{name}: {_camel(request.operation)}, admin: {admin}, {_lower(request.set.name)} ["
    if len(head) + len(names) <= LINE - 6:
        body = names
    else:
        body = "\n" + textwrap.fill(names, LINE - 8) + "\n"
        body = textwrap.indent(body, " " * 8) + " " * 4
    doc = f"    /// The {request.mode} request of {request.operation}.\n"
    return f"{doc}    {head}{body}];\n"


def _doc(text: str, indent: int) -> str:
    prefix = " " * indent + "/// "
    lines = textwrap.wrap(text, LINE - len(prefix), break_on_hyphens=False)
    return "".join(f"{prefix}{line}\n" for line in lines)


def _lower(name: str) -> str:
    return name.replace("-", "_")


def _upper(name: str) -> str:
    return _lower(name).upper()


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))

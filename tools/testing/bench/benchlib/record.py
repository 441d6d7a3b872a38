# SPDX-License-Identifier: GPL-2.0
"""Writes the results to the build directory, or with their table to the documentation."""

import json
import pathlib
import subprocess

from vmlib import root

from . import plot, show

CHECKOUT = pathlib.Path(__file__).resolve().parents[4]
DOCUMENT = CHECKOUT / "Documentation/performance.rst"
KEPT = CHECKOUT / "Documentation/performance"
RESULTS = "results.json"
# The table is the literal block after this line of the document.
BEFORE_TABLE = "What ``results.json`` says::\n\n"


def versions(tree):
    """Return the versions that results depend on; for this tree, the last commit to the modules."""
    last = ["git", "log", "-1", "--format=%h", "--abbrev=12", "--", "rust", "drivers"]
    commit = subprocess.run(last, cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True)
    qemu = root.quietly(["qemu-system-x86_64", "--version"]).split()[3]
    fio = root.quietly(["fio", "--version"]).strip().removeprefix("fio-")
    return {"commit": commit.stdout.strip(), "kernel": tree.release, "qemu": qemu, "fio": fio}


def write(results, directory):
    """Write the results and their plot."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / RESULTS).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (directory / "ratios.svg").write_text("\n".join(plot.svg(results)) + "\n", encoding="utf-8")


def load():
    """Return the results in the documentation."""
    return json.loads((KEPT / RESULTS).read_text(encoding="utf-8"))


def with_table(text, results):
    """Return the document with its table replaced by that of the results."""
    head, _, rest = text.partition(BEFORE_TABLE)
    lines = rest.splitlines(keepends=True)
    after = next((number for number, line in enumerate(lines) if line.strip() and line[0] != "\t"),
                 len(lines))
    table = "".join(f"\t{line}".rstrip() + "\n" for line in show.all_of(results))
    return "".join([head, BEFORE_TABLE, table, "\n", *lines[after:]])


def keep(results):
    """Write the results, their plot and their table to the documentation."""
    write(results, KEPT)
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8"), results), encoding="utf-8")

# SPDX-License-Identifier: GPL-2.0
"""Writes the results to the build directory, or those of a kernel series to the documentation."""

import json
import pathlib
import subprocess

from vmlib import root

from . import plot, show

CHECKOUT = pathlib.Path(__file__).resolve().parents[4]
# A directory for each kernel series, such as 7.3.
KEPT = CHECKOUT / "Documentation/performance"
RESULTS = "results.json"
TABLE = "results.txt"


def versions(tree):
    """Return the versions that results depend on; for this tree, the last commit to the modules."""
    last = ["git", "log", "-1", "--format=%h", "--abbrev=12", "--", "rust", "drivers"]
    commit = subprocess.run(last, cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True)
    qemu = root.quietly(["qemu-system-x86_64", "--version"]).split()[3]
    fio = root.quietly(["fio", "--version"]).strip().removeprefix("fio-")
    return {"commit": commit.stdout.strip(), "kernel": tree.release, "qemu": qemu, "fio": fio}


def table(results):
    """Return the text of the tables."""
    return "".join(line.rstrip() + "\n" for line in show.all_of(results))


def write(results, directory):
    """Write the results, their tables and their plot."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / RESULTS).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (directory / TABLE).write_text(table(results), encoding="utf-8")
    (directory / "ratios.svg").write_text("\n".join(plot.svg(results)) + "\n", encoding="utf-8")


def _series(release):
    """Return the two numbers of the series of a kernel release."""
    major, minor = release.split(".")[:2]
    return int(major), int(minor)


def kept():
    """Return the directories of all recorded results, the oldest kernel series first."""
    return sorted((path for path in KEPT.iterdir() if path.is_dir()),
                  key=lambda path: _series(path.name))


def read(directory):
    """Return the recorded results of a directory."""
    return json.loads((directory / RESULTS).read_text(encoding="utf-8"))


def load(release):
    """Return the recorded results of this kernel's series, or else of the newest recorded one."""
    series = [path for path in kept() if _series(path.name) == _series(release)]
    return read((series or kept())[-1])


def keep(results):
    """Write the results, their tables and their plot to the documentation."""
    major, minor = _series(results["kernel"])
    write(results, KEPT / f"{major}.{minor}")

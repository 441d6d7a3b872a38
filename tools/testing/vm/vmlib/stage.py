# SPDX-License-Identifier: GPL-2.0
"""What the VM has of the checkout: its sources, and the built modules without debug information."""

import os
import pathlib
import shutil

from . import build, cache, root

INDEX_INPUTS = ["modules.builtin", "modules.builtin.modinfo", "modules.order"]


# The checkout in the VM.
SOURCE = "opt/rnvmf/src"
# The built modules in the VM, and the program.
MODULES = "opt/rnvmf"
PROGRAM = "usr/local/bin/rnvmf"
# Directories of the checkout that the VM does not need.
LEFT_OUT = {".git", "build", "__pycache__"}
# Built files that the VM has, below `build`, beside the modules and the program.
BUILT = ["selftests", "bench/mark"]


def sources(archive, tree):
    """Add the sources of the checkout to the archive of an initramfs, and links to what was built.

    The data of a directory shared with the host would arrive at a moment that depends on its load.
    """
    _add(archive, build.CHECKOUT)
    for name in BUILT:
        path = build.BUILD / name
        archive.parents(f"{SOURCE}/{path.relative_to(build.CHECKOUT)}")
        if path.is_file():
            _add_file(archive, path)
        elif path.is_dir():
            _add(archive, path)
    links = {path: f"/{MODULES}/{path.name}" for path in build.built(tree.release)}
    links[build.PROGRAM] = f"/{PROGRAM}"
    for path, target in links.items():
        name = f"{SOURCE}/{path.relative_to(build.CHECKOUT)}"
        archive.parents(name)
        archive.link(name, target)


def _add(archive, top):
    for directory, names, files in os.walk(top):
        names[:] = sorted(set(names) - LEFT_OUT)
        path = pathlib.Path(directory)
        archive.directory(f"{SOURCE}/{path.relative_to(build.CHECKOUT)}".removesuffix("/."))
        links = [name for name in names if (path / name).is_symlink()]
        for name in sorted(files + links):
            _add_file(archive, path / name)


def _add_file(archive, path):
    name = f"{SOURCE}/{path.relative_to(build.CHECKOUT)}"
    if path.is_symlink():
        archive.link(name, os.readlink(path))
    else:
        archive.file(name, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)


def files(tree):
    """Return the staged files by path in the VM's root; stage again if a module has changed."""
    modules = build.built(tree.release)
    if not modules:
        return {}
    stage = build.output(tree.release) / ".stage"
    staged = stage / "lib/modules" / tree.release
    stamp = stage / "stamp"
    wanted = repr([tree.path, *((path, path.stat().st_mtime_ns) for path in modules)])
    # Several VMs may start at the same time.
    with cache.lock(f"stage-{cache.key(str(stage))}"):
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            shutil.rmtree(stage, ignore_errors=True)
            _fill(tree, modules, staged)
            stamp.write_text(wanted, encoding="utf-8")
    found = {f"{MODULES}/{path.name}": path for path in (staged / "updates").iterdir()}
    for path in staged.rglob("*"):
        if path.is_file():
            found[f"usr/lib/modules/{tree.release}/{path.relative_to(staged)}"] = path
    return found


def _fill(tree, modules, staged):
    # The stock modules are mounted at `kernel` when depmod runs.
    for name in ("kernel", "updates"):
        (staged / name).mkdir(parents=True)
    for name in INDEX_INPUTS:
        shutil.copy(tree.modules / name, staged / name)
    for path in modules:
        root.quietly(["strip", "--strip-debug", "-o", staged / "updates" / path.name, path])
    root.quietly(["depmod", "-b", staged.parents[2], tree.release],
                 binds=[(tree.modules / "kernel", staged / "kernel")])

# SPDX-License-Identifier: GPL-2.0
"""The built modules for the VM: without debug information, and with an index for modprobe."""

import shutil

from . import build, cache, root

INDEX_INPUTS = ["modules.builtin", "modules.builtin.modinfo", "modules.order"]


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
    found = {f"opt/rnvmf/{path.name}": path for path in (staged / "updates").iterdir()}
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

# SPDX-License-Identifier: GPL-2.0
"""Run programs. The error of a failed program has the end of its output."""

import subprocess

from .log import ToolError

# Lines of output in an error.
TAIL_LINES = 40


def run(argv, **options):
    """Run a program and return its stdout; on failure, raise an error with its last lines."""
    argv = [str(arg) for arg in argv]
    options.setdefault("input", "")
    result = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False,
                            **options)
    if result.returncode != 0:
        lines = (result.stdout + result.stderr).strip().splitlines()[-TAIL_LINES:]
        raise ToolError("\n".join([f"failed with status {result.returncode}: {' '.join(argv)}",
                                   *(f"  | {line}" for line in lines)]))
    return result.stdout


def pipe(*stages):
    """Run a pipeline of programs; raise an error if one fails."""
    running = []
    source = subprocess.DEVNULL
    for argv in stages:
        last = argv is stages[-1]
        process = subprocess.Popen([str(arg) for arg in argv], stdin=source,
                                   stdout=None if last else subprocess.PIPE)
        if source != subprocess.DEVNULL:
            source.close()
        source = process.stdout
        running.append((argv, process))
    failed = [argv for argv, process in running if process.wait() != 0]
    if failed:
        raise ToolError("failed: " + " | ".join(str(argv[0]) for argv in failed))

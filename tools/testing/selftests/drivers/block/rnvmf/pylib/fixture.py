# SPDX-License-Identifier: GPL-2.0
"""The network and the target of the shell's library, for tests in Python."""

import pathlib
import subprocess

from . import ktap

HERE = pathlib.Path(__file__).resolve().parents[1]


class Fixture:
    """Set up while it is open; closing it undoes all, and fails if that, or the kernel, failed."""

    def __init__(self):
        self.process = subprocess.Popen([HERE / "fixture.sh"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.values = {}
        while True:
            line = self.process.stdout.readline().rstrip("\n")
            if line == "ready":
                return
            if "# SKIP" in line:
                ktap.skip_all(line.partition("# SKIP ")[2])
            if not line and self.process.poll() is not None:
                raise RuntimeError("the set-up failed")
            name, equals, value = line.partition("=")
            if equals and name.isidentifier():
                self.values[name] = value
            else:
                ktap.note(line.removeprefix("# "))

    def close(self):
        """Undo the set-up."""
        output, _ = self.process.communicate()
        ktap.note(output.replace("# ", ""))
        ktap.same("status of the clean-up", 0, self.process.returncode)

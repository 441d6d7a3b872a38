# SPDX-License-Identifier: GPL-2.0
"""Runs fixture.sh, the network and the target of the shell library, for tests in Python."""

import pathlib
import subprocess

from . import ktap

HERE = pathlib.Path(__file__).resolve().parents[1]


class Fixture:
    """The set-up. `close` removes it, and fails if that fails or the kernel reported a fault."""

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
                raise RuntimeError("fixture.sh failed")
            name, equals, value = line.partition("=")
            if equals and name.isidentifier():
                self.values[name] = value
            else:
                ktap.note(line.removeprefix("# "))

    def close(self):
        """Remove the set-up."""
        output, _ = self.process.communicate()
        ktap.note(output.replace("# ", ""))
        ktap.same("exit status of fixture.sh", 0, self.process.returncode)

# SPDX-License-Identifier: GPL-2.0
"""Tests of the shell library that ends the processes of a selftest."""

import pathlib
import subprocess
import unittest

LIBRARY = (pathlib.Path(__file__).resolve().parents[2]
           / "selftests/drivers/infiniband/lib/processes.sh")


def ended(pid):
    """Return whether the library says that a process has ended."""
    script = f". {LIBRARY}; process_ended {pid}"
    result = subprocess.run(["bash", "-euc", script], check=False, capture_output=True, text=True)
    if result.stderr:
        raise AssertionError(result.stderr)
    return result.returncode == 0


class Ended(unittest.TestCase):
    """A process has ended even if its parent has not waited for it."""

    def test_running(self):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
            self.assertFalse(ended(process.pid))

    def test_not_waited_for(self):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdin.close()
            # Its output ends with the process, or a moment before.
            process.stdout.read()
            stat = pathlib.Path(f"/proc/{process.pid}/stat")
            while ") Z " not in stat.read_text(encoding="ascii"):
                pass
            self.assertTrue(ended(process.pid))

    def test_waited_for(self):
        with subprocess.Popen(["true"]) as process:
            process.wait()
            self.assertTrue(ended(process.pid))

# SPDX-License-Identifier: GPL-2.0
"""Tests of which scripts check/shellcheck checks again."""

import contextlib
import pathlib
import tempfile
import unittest
import unittest.mock

from . import program, write

shellcheck = program("shellcheck")

FILES = {
    "a.sh": "#!/bin/sh\n. ./lib.sh\n",
    "b.sh": "#!/bin/sh\n# shellcheck source=b.conf\n. \"$1\"\n",
    "lib.sh": "a=1\n",
    "b.conf": "b=1\n",
}
SCRIPTS = [pathlib.Path(name) for name in FILES if name.endswith(".sh")]


class Keys(unittest.TestCase):
    """A script is checked again if it changes, or a file that scripts may source."""

    def setUp(self):
        scratch = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.chdir(scratch))
        write(pathlib.Path(), FILES)
        self.before = shellcheck.keys(SCRIPTS)

    def changed(self):
        """Return the scripts whose key is another than before."""
        after = shellcheck.keys(SCRIPTS)
        return [str(script) for script in SCRIPTS if after[script] != self.before[script]]

    def test_nothing(self):
        self.assertEqual(self.changed(), [])

    def test_script(self):
        write(pathlib.Path(), {"a.sh": "#!/bin/sh\n"})
        self.assertEqual(self.changed(), ["a.sh"])

    def test_sourced(self):
        for name in ("lib.sh", "b.conf"):
            with self.subTest(name):
                write(pathlib.Path(), {name: "c=1\n"})
                self.assertEqual(self.changed(), ["a.sh", "b.sh", "lib.sh"])
                write(pathlib.Path(), {name: FILES[name]})

    def test_command(self):
        with unittest.mock.patch.object(shellcheck, "COMMAND", ["shellcheck"]):
            self.assertEqual(self.changed(), ["a.sh", "b.sh", "lib.sh"])

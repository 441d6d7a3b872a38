# SPDX-License-Identifier: GPL-2.0
"""Programs that must be installed on this machine; all others are in the root."""

import os
import shutil

from .log import ToolError, step
from .process import run

# program -> Debian package
PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "bwrap": "bubblewrap",
    "xz": "xz-utils",
}

# If not root: maps user IDs for a bootstrap in a user namespace.
USER_PROGRAMS = {"newuidmap": "uidmap"}


def ensure():
    """Install missing programs with apt if root; otherwise raise an error with the command."""
    programs = PROGRAMS if os.geteuid() == 0 else {**PROGRAMS, **USER_PROGRAMS}
    missing = [package for program, package in programs.items() if not shutil.which(program)]
    if not missing:
        return
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if os.geteuid() != 0:
        raise ToolError(f"programs are missing; run: sudo {' '.join(install)}")
    with step(f"installing {' '.join(missing)} on this machine"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "-qq", "update"], env=environment)
        run([*install, "-qq"], env=environment)

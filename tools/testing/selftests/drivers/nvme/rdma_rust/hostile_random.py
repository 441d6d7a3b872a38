#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The random host of rnvmf's tests, with nvme-cli and sysfs in place of the program rnvmf."""

import errno
import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "block/rnvmf"))

# pylint: disable=wrong-import-position
import hostile_random  # noqa: E402
from hostile_random import IOCTL_ERRORS, PATIENCE, SLOWDOWN, Said, Wrong, wrong_unless  # noqa: E402

STATES = {"live", "connecting", "resetting", "deleting", "deleting (no IO)", "dead", "gone"}
HOST = "5e1f7e57-0000-4000-8000-000000000001"


class Host(hostile_random.Host):
    """The host of nvme-core."""

    # nvme_execute_rq() returns EINTR for a command that was cancelled, and the errno of the block
    # layer for one that was not sent.
    ioctl_errors = IOCTL_ERRORS | {errno.EINTR, errno.EIO}

    def nvme(self, *arguments):
        """Run nvme with a time limit; return its exit status and output."""
        try:
            done = subprocess.run(("nvme", *arguments), capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired as error:
            raise Wrong(f"timed out after {PATIENCE} s: {error.cmd}") from error
        return Said(done.returncode, done.stdout, done.stderr)

    def nqn(self):
        """Return the name of the subsystem; each target has its own."""
        return f"nqn.2014-08.org.example:hostile{self.port}"

    def at(self):
        """Return the options with the target's address."""
        return ("-t", "rdma", "-a", self.address, "-s", str(self.port),
                "-q", f"nqn.2014-08.org.nvmexpress:uuid:{HOST}", "-I", HOST, "-o", "json")

    def shown(self):
        """Return the controllers of the target."""
        found = []
        for path in glob.glob("/sys/class/nvme/nvme*/address"):
            try:
                address = pathlib.Path(path).read_text(encoding="ascii")
            except OSError:
                continue
            if f"trsvcid={self.port}" in address.strip().split(","):
                found.append(path)
        return found

    def connect(self):
        """Connect and return whether that succeeded. A failed connect must leave no controller."""
        said = self.nvme("connect", "-n", self.nqn(), "-i", "2", "-Q", "16", "-l", "60", "-c", "1",
                         f"--fast_io_fail_tmo={2 * SLOWDOWN}", *self.at())
        if said.status == -signal.SIGSEGV:
            self.note("connect", "nvme-cli crashed")
            self.delete()
            return False
        if said.status:
            wrong_unless(said.status == 1 and said.errors, "connect", said)
            self.note("connect", "refused")
            self.left_nothing()
            return False
        self.controller = json.loads(said.output)["device"]
        self.note("connect", "connected")
        return True

    def delete(self):
        """Delete the controller of a connect that crashed, if it made one.

        nvme-cli reads the attributes of all controllers. It was seen to dereference NULL while the
        controller of another host was removed.
        """
        for address in self.shown():
            attribute = pathlib.Path(address).with_name("delete_controller")
            try:
                attribute.write_text("1", encoding="ascii")
            except OSError as error:
                self.note("delete", error.strerror)
        self.left_nothing()

    def use(self):
        """As before, when the disk exists or the controller is not live."""
        end = time.monotonic() + 5 * SLOWDOWN
        while self.state() == "live" and not os.path.exists(self.disk()) and time.monotonic() < end:
            time.sleep(0.1)
        super().use()

    def name(self):
        """Return the name of the only disk; nvme0c1n1 is a path of nvme0n1."""
        for path in glob.glob(f"/sys/class/nvme/{self.controller}/nvme*n*"):
            return re.sub(r"c\d+n", "n", os.path.basename(path))
        return f"{self.controller}n1"

    def rescan(self):
        """Rescan the namespaces, or reset the controller."""
        verb = self.chance.choice(("ns-rescan", "reset"))
        said = self.nvme(verb, f"/dev/{self.controller}")
        self.note(verb, "failed" if said.status else "done")

    def discover(self):
        """Read the discovery log by a separate connection."""
        said = self.nvme("discover", *self.at())
        self.note("discover", "failed" if said.status else "log")

    def state(self):
        """Return the controller's state. A controller that nvme-core has deleted is dead."""
        try:
            with open(f"/sys/class/nvme/{self.controller}/state", encoding="ascii") as state:
                now = state.read().strip()
        except OSError:
            now = "gone"
        wrong_unless(now in STATES, "state", now)
        self.note("state", now)
        return "dead" if now == "gone" else now

    def disconnect(self):
        """Disconnect; within the time limit, no controller may remain.

        If nvme-core deletes the controller already, the command does not wait for the end.
        """
        end = time.monotonic() + PATIENCE
        said = self.nvme("disconnect", "-d", self.controller)
        while left := self.shown():
            wrong_unless(time.monotonic() < end, "controllers remain:", left, said)
            time.sleep(0.1)


hostile_random.main(Host)

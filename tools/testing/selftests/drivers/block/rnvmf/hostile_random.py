#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Uses a target that breaks replies at random, and checks that each operation ends as documented.

    hostile_random.py ADDRESS PORT SEED STOP [COUNT]

It connects, does random operations on the disk and the controller, and disconnects: COUNT times,
or until the file STOP exists. At the first undocumented outcome it exits with status 1. Otherwise
it prints how often each operation had which outcome.
"""

import collections
import ctypes
import errno
import json
import mmap
import os
import random
import re
import subprocess
import sys
import time

from ioctls import ADMIN, IO, call

SLOWDOWN = int(os.environ.get("RNVMF_SLOWDOWN", "1"))

# Time limit of an operation, in seconds.
PATIENCE = 60 * SLOWDOWN

# Time limit of a disconnect, in seconds: more than the 5 s that a shutdown without end takes.
AT_ONCE = 6 * SLOWDOWN

# Command time-out, in milliseconds: the target leaves some commands unanswered.
COMMAND_MS = 1000 * SLOWDOWN

# Largest number of operations with one connection.
MOST = 40

# I/O sizes: in the capsule, in one memory region, in several commands.
SIZES = (4096, 16384, 65536, 1 << 18)

DISK_SIZE = 8 << 20

# Allowed errors of I/O: those of an NVMe status, of a lost connection, and of a removed disk.
IO_ERRORS = {errno.ENOSPC, errno.EREMOTEIO, errno.EOPNOTSUPP, errno.ENODATA, errno.EILSEQ,
             errno.EBADE, errno.EIO, errno.ENOLINK, errno.ENODEV, errno.ENXIO}

# Allowed errors of opening a disk or a controller that is removed or not live.
OPEN_ERRORS = {errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.EAGAIN}

# Allowed errors of an ioctl with a well-formed command.
IOCTL_ERRORS = {errno.EBUSY, errno.ENODEV, errno.EINVAL}

STATES = {"live", "connecting", "resetting", "dead"}

# Error messages of a rescan that did not complete.
NO_LOOK = re.compile("rescan|looks? at|removed meanwhile|no controller")

Said = collections.namedtuple("Said", "status output errors")


class Wrong(Exception):
    """An operation had an undocumented outcome."""


def wrong_unless(good, *what):
    """Raise Wrong unless a condition holds."""
    if not good:
        raise Wrong(" ".join(str(each) for each in what))


def name(number):
    """The name of an error number."""
    return errno.errorcode.get(number, str(number))


class Host:
    """The host: one connection to the target, and its operations."""

    # Errors of a passthrough command.
    ioctl_errors = IOCTL_ERRORS

    def __init__(self, address, port, seed):
        self.address, self.port = address, port
        self.chance = random.Random(seed)
        self.area = mmap.mmap(-1, max(SIZES))
        self.controller = None
        self.began = 0
        self.outcomes = collections.Counter()

    def note(self, what, outcome):
        """Count an outcome."""
        self.outcomes[f"{what}: {outcome}"] += 1

    def rnvmf(self, *arguments):
        """Run rnvmf with a time limit; return its exit status and output."""
        try:
            done = subprocess.run(("rnvmf", *arguments), capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired as error:
            raise Wrong(f"timed out after {PATIENCE} s: {error.cmd}") from error
        return Said(done.returncode, done.stdout, done.stderr)

    def at(self):
        """Return the options with the target's address."""
        return ("-a", self.address, "-s", str(self.port), "--timeout", str(2 * SLOWDOWN),
                "-o", "json")

    def failed(self, what, said):
        """Return the stage of a failure. The error must have a stage, an errno and a message."""
        wrong_unless(said.status in (1, 5), what, "ends with", said)
        failure = self.error(said).get("failure")
        if not failure:
            # On a slow kernel an attempt may take longer than the program waits.
            late = SLOWDOWN > 1 and "timed out waiting for the kernel" in said.errors
            wrong_unless(late, what, said)
            return "late"
        wrong_unless(failure["stage"] and failure["errno"] > 0 and failure["message"], what, said)
        return failure["stage"]

    @staticmethod
    def error(said):
        """Return the error of a command, the last line of its standard error."""
        try:
            return json.loads(said.errors.splitlines()[-1])["error"]
        except (IndexError, KeyError, ValueError) as error:
            raise Wrong(f"no error in {said}") from error

    def shown(self):
        """Return the controllers of the target."""
        said = self.rnvmf("show", "-o", "json")
        wrong_unless(said.status == 0, "show", said)
        return [each for each in json.loads(said.output)["controllers"]
                if each["trsvcid"] == self.port]

    def left_nothing(self):
        """Check that no controller remains, in a quarter of the cases."""
        if self.chance.random() < 0.25:
            left = self.shown()
            wrong_unless(not left, "controllers remain:", left)

    def connect(self):
        """Connect and return whether that succeeded. A failed connect must leave no controller."""
        said = self.rnvmf("connect", "-n", "nqn.2014-08.org.example:hostile", "-i", "2", "-Q", "16",
                          "--ctrl-loss-tmo", "60", "-c", "1", "--fast_io_fail_tmo",
                          str(2 * SLOWDOWN), *self.at())
        if said.status:
            self.note("connect", self.failed("connect", said))
            self.left_nothing()
            return False
        self.controller = json.loads(said.output)["device"]
        self.note("connect", "connected")
        return True

    def name(self):
        """Return the name of the only disk."""
        return f"{self.controller}n1"

    def disk(self):
        """Return the path of the only disk."""
        return f"/dev/{self.name()}"

    def opened(self, path, flags):
        """Open a file; return None if it is gone or not live."""
        try:
            return os.open(path, flags)
        except OSError as error:
            wrong_unless(error.errno in OPEN_ERRORS, "open", path, error)
            return None

    def limit(self):
        """Shorten the I/O time-out of the disk."""
        try:
            with open(f"/sys/class/block/{self.name()}/queue/io_timeout", "w",
                      encoding="ascii") as limit:
                limit.write(str(COMMAND_MS))
        except OSError as error:
            wrong_unless(error.errno in OPEN_ERRORS, "the time-out of I/O:", error)

    def transfer(self, what, act):
        """Do up to 32 reads or writes at random positions."""
        disk = self.opened(self.disk(), os.O_RDWR | os.O_DIRECT)
        if disk is None:
            self.note(what, "no disk")
            return
        self.limit()
        try:
            for _ in range(self.chance.randrange(1, 33)):
                size = self.chance.choice(SIZES[:-1] * 4 + SIZES[-1:])
                at = self.chance.randrange(DISK_SIZE // size) * size
                # Each further one could also wait until the connection loss fails it.
                if self.move(what, lambda size=size, at=at: act(
                        disk, [memoryview(self.area)[:size]], at), size, at) == errno.ENOLINK:
                    break
        finally:
            os.close(disk)

    def move(self, what, act, size, at):
        """Do one transfer; return 0 or errno. It may be short only at the end of the disk."""
        try:
            moved = act()
        except OSError as error:
            wrong_unless(error.errno in IO_ERRORS, what, error)
            self.note(what, name(error.errno))
            return error.errno
        wrong_unless(moved == size or self.ends_before(at + size), what, "of", size, "at", at,
                     "moves", moved)
        self.note(what, "moved" if moved == size else "short")
        return 0

    def ends_before(self, end):
        """Return whether the disk may be, or have been, smaller than `end`."""
        return any(0 <= size < end for size in self.sizes(end))

    def sizes(self, end):
        """Yield the size of the disk, and a smaller one if the target may have reported it."""
        try:
            with open(f"/sys/class/block/{self.name()}/size", encoding="ascii") as size:
                yield int(size.read()) * 512
        except OSError:
            yield 0
        # The target may have reported a smaller size only for a while.
        if self.has_broken("namespace ", "trap", "format "):
            yield end - 1

    @staticmethod
    def has_broken(*steps):
        """Return whether the target has changed a reply of a step that begins so."""
        beginnings = tuple(f"- broken {step}" for step in steps)
        with open(os.environ["SEEN"], encoding="utf-8", errors="replace") as seen:
            return any(line.startswith(beginnings) for line in seen)

    def read(self):
        """Read from the disk."""
        self.transfer("read", os.preadv)

    def write(self):
        """Write to the disk."""
        self.transfer("write", os.pwritev)

    def ask(self, what, path, number, **fields):
        """Send a passthrough command."""
        node = self.opened(path, os.O_RDWR)
        if node is None:
            self.note(what, "cannot be asked")
            return
        try:
            result, _ = call(node, number, timeout_ms=COMMAND_MS, **fields)
        finally:
            os.close(node)
        if result < 0:
            wrong_unless(-result in self.ioctl_errors, what, name(-result))
        # A status has 15 bits; the highest is Do Not Retry.
        wrong_unless(result < 1 << 15, what, hex(result))
        self.note(what, name(-result) if result < 0 else "status" if result else "success")

    def memory(self, size):
        """Return the fields of a command that describe the data buffer."""
        return {"addr": ctypes.addressof(ctypes.c_char.from_buffer(self.area)), "data_len": size}

    def passthrough(self):
        """Send a random passthrough command to the disk or the controller."""
        disk, controller = self.disk(), f"/dev/{self.controller}"
        what, path, number, fields = self.chance.choice((
            ("flush", disk, IO, {"opcode": 0x00, "nsid": 1}),
            ("flush", disk, IO, {"opcode": 0x00, "nsid": 1}),
            ("user's read", disk, IO, {"opcode": 0x02, "nsid": 1} | self.memory(512)),
            ("user's write", disk, IO, {"opcode": 0x01, "nsid": 1} | self.memory(512)),
            ("identify", disk, ADMIN, {"opcode": 0x06, "cdw10": 1} | self.memory(4096)),
            ("log", controller, ADMIN,
             {"opcode": 0x02, "cdw10": 0x03ff0005} | self.memory(4096)),
            ("vendor's", controller, ADMIN, {"opcode": 0xc5}),
            ("lonely", controller, ADMIN, {"opcode": 0xc1}),
            ("changing", controller, ADMIN, {"opcode": 0xc0}),
            ("format", controller, ADMIN,
             {"opcode": 0x80, "nsid": 1, "cdw10": self.chance.randrange(2)}),
        ))
        self.ask(what, path, number, **fields)

    def rescan(self):
        """Rescan the namespaces."""
        said = self.rnvmf("rescan", self.controller, "-o", "json")
        if said.status == 0:
            wrong_unless("nr_namespaces" in json.loads(said.output), "rescan", said)
            self.note("rescan", "looked")
            return
        # Status 5 is a time-out: the target may not reply in time.
        wrong_unless(said.status in (1, 5), "rescan", said)
        wrong_unless(NO_LOOK.search(self.error(said)["message"]), "rescan", said)
        self.note("rescan", "refused or failed")

    def discover(self):
        """Read the discovery log by a separate connection."""
        said = self.rnvmf("discover", *self.at())
        if said.status:
            self.note("discover", self.failed("discover", said))
            return
        log = json.loads(said.output)
        wrong_unless(len(log["records"]) == min(log["numrec"], 1024), "discover", said)
        self.note("discover", "log")

    def state(self):
        """Return the controller's state. In connecting and dead it must have an error."""
        try:
            with open(f"/sys/class/rnvmf/{self.controller}/state", encoding="ascii") as state:
                if state.read() == "live\n":
                    self.note("state", "live")
                    return "live"
        except OSError as error:
            raise Wrong(f"the state of {self.controller}: {error}") from error
        shown = self.shown()
        wrong_unless(len(shown) == 1 and shown[0]["device"] == self.controller, "shown:", shown)
        now = shown[0]
        wrong_unless(now["state"] in STATES, now)
        if now["state"] in ("connecting", "dead"):
            error = now.get("error", {})
            # A reset has no error. An event may ask for it.
            is_reset = now["state"] == "connecting" and not error and self.has_broken("event ")
            reason = error.get("message") and error.get("stage")
            wrong_unless(is_reset or reason, "no reason:", now)
        self.note("state", now["state"])
        return now["state"]

    def disconnect(self):
        """Disconnect within the time limit; no disk and no controller may remain."""
        began = time.monotonic()
        said = self.rnvmf("disconnect", "-d", self.controller)
        took = time.monotonic() - began
        wrong_unless(said.status == 0, "disconnect", said)
        wrong_unless(took < AT_ONCE, "the disconnect took", took, "s")
        wrong_unless(not os.path.exists(self.disk()), self.disk(), "remains")
        self.left_nothing()

    def use(self):
        """Do random operations until the controller is dead, then disconnect."""
        deeds = (self.read, self.read, self.write, self.write, self.passthrough, self.passthrough,
                 self.passthrough, self.rescan, self.discover)
        for _ in range(self.chance.randrange(1, MOST)):
            self.timed(self.chance.choice(deeds))
            if self.timed(self.state) == "dead":
                break
        self.timed(self.disconnect)

    def timed(self, deed):
        """Run an operation with a time limit."""
        began = time.monotonic()
        result = deed()
        took = time.monotonic() - began
        wrong_unless(took < 2 * PATIENCE, deed.__name__, "took", took, "s")
        return result

    def once(self):
        """Connect and use the connection; if that fails, sometimes read the discovery log."""
        if self.timed(self.connect):
            self.use()
        elif self.chance.random() < 0.2:
            self.timed(self.discover)


def main(kind):
    """Parse the arguments and run a host of this class."""
    address, port, seed, stop = sys.argv[1:5]
    count = int(sys.argv[5]) if len(sys.argv) > 5 else None
    host = kind(address, int(port), int(seed))
    done = 0
    try:
        while done != count and not os.path.exists(stop):
            host.once()
            done += 1
    except Wrong as why:
        raise SystemExit(f"{why}; so far: {dict(host.outcomes)}") from why
    for outcome, times in sorted(host.outcomes.items()):
        print(times, outcome)


if __name__ == "__main__":
    main(Host)

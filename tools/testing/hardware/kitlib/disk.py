# SPDX-License-Identifier: GPL-2.0
"""The disk to test: finds it, and refuses one that is in use."""

import dataclasses
import errno
import json
import os
import pathlib
import re
import subprocess

from . import machine

BLOCK = pathlib.Path("/sys/block")
REMEDY = "to lose them, add --erase"
# Names of disks: that of the controller, or of the subsystem, and a number.
DISK = re.compile(r"((?:nvme|rnvmf)\d+)n\d+")


class RefusedError(Exception):
    """The kit does nothing, and says why."""


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk of an NVMe/RDMA host."""

    name: str
    # Identity of the namespace, which no other disk has.
    identity: str
    # Controllers with a path to it.
    controllers: tuple

    @property
    def path(self):
        """The block device."""
        return f"/dev/{self.name}"

    @property
    def sysfs(self):
        """The directory of the disk in sysfs."""
        return BLOCK / self.name

    def bytes(self):
        """Return the size."""
        return int(machine.read(self.sysfs / "size")) * 512

    def describe(self):
        """Return the description for the report."""
        limits = machine.attributes(self.sysfs / "queue", (
            "logical_block_size", "physical_block_size", "max_hw_sectors_kb", "max_segments",
            "write_cache", "zoned", "nr_requests", "scheduler"))
        return {"name": self.name, "identity": self.identity, "bytes": self.bytes(),
                "controllers": list(self.controllers), "limits": limits}


def _controllers(sysfs):
    """Return the RDMA controllers of a disk: those of its subsystem with native multipath."""
    match = DISK.fullmatch(sysfs.name)
    if not match:
        return ()
    if sysfs.name.startswith("rnvmf"):
        return (match[1],)
    parent = sysfs / "device"
    if (parent / "transport").exists():
        found = [parent.resolve()]
    else:
        found = [each for each in machine.children(parent) if (each / "transport").exists()]
    return tuple(each.name for each in found
                 if machine.read(each / "transport").startswith("rdma"))


def find(name):
    """Return the disk of this name or path."""
    name = pathlib.Path(name).resolve().name if "/" in name else name
    sysfs = BLOCK / name
    if not sysfs.is_dir():
        raise RefusedError(f"there is no disk {name}; partitions are not tested")
    controllers = _controllers(sysfs)
    if not controllers:
        raise RefusedError(f"{name} is no disk of an NVMe/RDMA host")
    identity = machine.read(sysfs / "wwid") or machine.read(sysfs / "device/wwid")
    if not identity:
        raise RefusedError(f"{name} has no identity (wwid)")
    return Disk(name, "".join(identity.split()), controllers)


def _nodes(disk):
    """Return the directories of the disk and its partitions."""
    return [disk.sysfs, *(each.parent for each in disk.sysfs.glob("*/partition"))]


def _users(disk):
    """Yield what uses the disk."""
    nodes = _nodes(disk)
    numbers = {machine.read(node / "dev"): node.name for node in nodes}
    for line in machine.read(pathlib.Path("/proc/self/mountinfo")).splitlines():
        fields = line.split()
        if fields[2] in numbers or any(word == f"/dev/{name}" for name in numbers.values()
                                       for word in fields):
            yield f"{fields[4]} is mounted from it"
    for line in machine.read(pathlib.Path("/proc/swaps")).splitlines()[1:]:
        if pathlib.Path(line.split()[0]).name in numbers.values():
            yield "it has swap space in use"
    for node in nodes:
        for holder in machine.children(node / "holders"):
            yield f"{holder.name} is on {node.name}"


def _signatures(disk):
    """Return the kinds of signatures on the disk."""
    listed = machine.output(["wipefs", "--no-act", "--json", disk.path])
    if listed is None:
        raise RefusedError("wipefs (package util-linux) is needed to look for signatures")
    return [each["type"] for each in json.loads(listed or '{"signatures": []}')["signatures"]]


def _begins_with_zeros(disk):
    done = subprocess.run(["dd", f"if={disk.path}", "bs=1M", "count=1", "iflag=direct"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise RefusedError(f"cannot read {disk.path}")
    return not any(done.stdout)


def refuse_in_use(disk, erase):
    """Refuse a disk that is in use, or has contents that `erase` does not give up."""
    for use in _users(disk):
        raise RefusedError(f"{disk.path} is in use: {use}")
    try:
        # Only one can have it open like this: a file system, swap, LVM, RAID or the like.
        os.close(os.open(disk.path, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise RefusedError(f"{disk.path} is in use: it is open exclusively") from error
        raise RefusedError(f"cannot open {disk.path}: {error.strerror}") from error
    if erase:
        return
    found = _signatures(disk)
    if found:
        raise RefusedError(f"{disk.path} has contents: {', '.join(found)}; {REMEDY}")
    if not _begins_with_zeros(disk):
        raise RefusedError(f"{disk.path} has contents: its first MiB is not zero; {REMEDY}")

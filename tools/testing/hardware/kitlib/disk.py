# SPDX-License-Identifier: GPL-2.0
"""The disk to test: finds it, and refuses one that is in use."""

import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import re
import stat
import subprocess

from . import machine

BLOCK = pathlib.Path("/sys/block")
REMEDY = "to lose them, add --erase"
# Names of disks: that of the controller, or of the subsystem, and a number.
DISK = re.compile(r"((?:nvme|rnvmf)\d+)n\d+")
# Names of paths of native multipath.
PATH = re.compile(r"nvme\d+c\d+n\d+")


class RefusedError(Exception):
    """The kit does nothing, and says why."""


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk of an NVMe/RDMA host."""

    name: str
    # Identity of the namespace. Another disk of the same namespace has it, too.
    identity: str
    # Controllers with a path to it.
    controllers: tuple
    bytes: int

    @property
    def path(self):
        """The block device."""
        return f"/dev/{self.name}"

    @property
    def sysfs(self):
        """The directory of the disk in sysfs."""
        return BLOCK / self.name

    def describe(self):
        """Return the description for the report."""
        limits = machine.attributes(self.sysfs / "queue", (
            "logical_block_size", "physical_block_size", "max_hw_sectors_kb", "max_segments",
            "write_cache", "zoned", "nr_requests", "scheduler"))
        return {"name": self.name, "identity": self.identity, "bytes": self.bytes,
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
    identity, size = _identity(sysfs), machine.read(sysfs / "size")
    if not identity:
        raise RefusedError(f"{name} has no identity (wwid)")
    if not size or int(size) < 2048:
        raise RefusedError(f"{name} is smaller than 1 MiB")
    return Disk(name, identity, controllers, int(size) * 512)


def _identity(sysfs):
    """Return the identity of a disk without white space; None if it has none."""
    found = machine.read(sysfs / "wwid") or machine.read(sysfs / "device/wwid")
    return "".join(found.split()) if found else None


def check_identity(disk):
    """Raise ValueError if the disk is gone, or its name is that of another one."""
    if _identity(disk.sysfs) != disk.identity:
        raise ValueError(f"{disk.path} is gone")


def _nodes(disk):
    """Return the directories of the disk and its partitions."""
    return [disk.sysfs, *(each.parent for each in disk.sysfs.glob("*/partition"))]


def _users(disk):
    """Yield what uses the disk."""
    nodes = _nodes(disk)
    numbers = {machine.read(node / "dev"): node.name for node in nodes}
    for line in (machine.read(pathlib.Path("/proc/self/mountinfo")) or "").splitlines():
        fields = line.split()
        if fields[2] in numbers or any(word == f"/dev/{name}" for name in numbers.values()
                                       for word in fields):
            yield f"{fields[4]} is mounted from it"
    for line in (machine.read(pathlib.Path("/proc/swaps")) or "").splitlines()[1:]:
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


def refuse_other_names(disk):
    """Refuse a disk whose namespace is another disk, too: what uses that one is not looked for."""
    for other in machine.children(BLOCK):
        # Paths of native multipath, such as nvme0c1n1, are no disks for users.
        if other.name != disk.name and not PATH.fullmatch(other.name) \
                and _identity(other) == disk.identity:
            raise RefusedError(f"{disk.path} is {other.name}, too: disconnect one of them")


def refuse_neighbours_in_use(disk):
    """Refuse a disk whose controllers have another disk that is in use."""
    for other in machine.children(BLOCK):
        if other.name != disk.name and set(_controllers(other)) & set(disk.controllers):
            found = find(other.name)
            os.close(_open(found, f"{found.path}, which has the same controller,"))


def _open(disk, subject):
    """Open a disk exclusively. Refuse one that is in use, which `subject` names."""
    for use in _users(disk):
        raise RefusedError(f"{subject} is in use: {use}")
    try:
        # Only one can have it open like this: a file system, swap, LVM, RAID or the like.
        opened = os.open(disk.path, os.O_RDONLY | os.O_EXCL)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise RefusedError(f"{subject} is in use: it is open exclusively") from error
        raise RefusedError(f"cannot open {disk.path}: {error.strerror}") from error
    status = os.fstat(opened)
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    if not stat.S_ISBLK(status.st_mode) or number != machine.read(disk.sysfs / "dev"):
        os.close(opened)
        raise RefusedError(f"{disk.path} is not the block device {disk.name}")
    return opened


@contextlib.contextmanager
def held(disk, erase):
    """Keep a disk open exclusively.

    Refuses a disk that is in use, or has contents that `erase` does not give up. Nobody can mount
    it meanwhile, and its name does not become that of another disk.
    """
    opened = _open(disk, disk.path)
    try:
        if not erase:
            _refuse_contents(disk)
        yield
    finally:
        os.close(opened)


def _refuse_contents(disk):
    found = _signatures(disk)
    if found:
        raise RefusedError(f"{disk.path} has contents: {', '.join(found)}; {REMEDY}")
    if not _begins_with_zeros(disk):
        raise RefusedError(f"{disk.path} has contents: its first MiB is not zero; {REMEDY}")

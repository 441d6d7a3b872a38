#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests direct I/O with buffers at any offset in a page, and with scattered buffers.

It writes patterns to a disk, reads them back, and compares them and the contents of the target's
backend. Usage: unaligned.py DISK BACKEND
"""

import mmap
import os
import random
import sys

PAGE = mmap.PAGESIZE
# Alignment of buffers that the block layer accepts for the disk.
ALIGNMENT = 4
OFFSETS = (0, ALIGNMENT, 508, 512, 2052, PAGE - 512, PAGE - ALIGNMENT)
PAGES = (0, 1, 15, 256)


class Mismatch(Exception):
    """Read data differs from written data."""


def view(memory, offset, length):
    """Return `length` bytes at `offset` of the page-aligned `memory`."""
    return memoryview(memory)[offset:offset + length]


def split(buffer, block):
    """Split the buffer into up to three pieces of whole blocks, in a non-contiguous order."""
    blocks = len(buffer) // block
    first, second = blocks // 3 * block, (blocks - blocks // 4) * block
    pieces = (buffer[second:], buffer[:first], buffer[first:second])
    return [piece for piece in pieces if piece]


def compare(what, wanted, found):
    """Raise Mismatch with the position of the first difference."""
    if wanted == found:
        return
    where = next(at for at, pair in enumerate(zip(wanted, found)) if pair[0] != pair[1])
    raise Mismatch(f"{what}: differs from byte {where} of {len(wanted)}")


def contents(backend, memory, length, position):
    """Read from the target's backend with direct I/O, past the page cache."""
    buffer = view(memory, 0, length)
    if os.preadv(backend, [buffer], position) != length:
        raise Mismatch(f"short read of the backend at {position}")
    return bytes(buffer)


def transfer(disk, target, buffers, position, what):
    """Write a pattern from the buffers, and read it back from the disk and from the backend."""
    length = sum(map(len, buffers))
    data = random.randbytes(length)
    at = 0
    for buffer in buffers:
        buffer[:] = data[at:at + len(buffer)]
        at += len(buffer)
    if os.pwritev(disk, buffers, position) != length:
        raise Mismatch(f"{what}: short write")
    for buffer in buffers:
        buffer[:] = bytes(len(buffer))
    if os.preadv(disk, buffers, position) != length:
        raise Mismatch(f"{what}: short read")
    compare(f"{what}, read back", data, b"".join(buffers))
    compare(f"{what}, at the target", data, contents(*target, length, position))


def main(disk_path, backend_path):
    """Test all offsets with all lengths."""
    random.seed(7)
    disk = os.open(disk_path, os.O_RDWR | os.O_DIRECT)
    with open(f"/sys/block/{os.path.basename(disk_path)}/queue/logical_block_size",
              encoding="ascii") as file:
        block = int(file.read())
    size = (max(PAGES) + 3) * PAGE
    memory = mmap.mmap(-1, size)
    target = os.open(backend_path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, size)
    count = 0
    for pages in PAGES:
        length = pages * PAGE + block
        for offset in OFFSETS:
            buffer = view(memory, offset, length)
            position = random.randrange(1024) * block
            what = f"{length} bytes at {offset} in the page, position {position}"
            transfer(disk, target, [buffer], position, what)
            transfer(disk, target, split(buffer, block), position + length, what + ", in pieces")
            count += 2
    print(f"{count} transfers")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Mismatch, OSError) as error:
        sys.exit(f"unaligned.py: {error}")

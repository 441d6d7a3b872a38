#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Submits a polled read (REQ_POLLED) with io_uring, and polls for it only on request.

It submits the read, prints "sent", waits for a line or the end of the standard input, polls for
the completion and prints the result. Usage: unpolled.py DISK
"""

import ctypes
import mmap
import os
import struct
import sys

LENGTH = 4096

# From <linux/io_uring.h>.
IO_URING_SETUP = 425
IO_URING_ENTER = 426
IORING_SETUP_IOPOLL = 1 << 0
IORING_ENTER_GETEVENTS = 1 << 0
IORING_OFF_SQ_RING = 0
IORING_OFF_SQES = 0x10000000
IORING_OP_READ = 22
PARAMS_SIZE = 120
SQ_OFFSETS = 40
CQ_OFFSETS = 80
SQE_SIZE = 64

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    """Make a system call; raise OSError on failure."""
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def word(memory, offset):
    """Return 32 bits of memory shared with the kernel."""
    return struct.unpack_from("=I", memory, offset)[0]


def main(path):
    """Submit, wait, poll."""
    disk = os.open(path, os.O_RDONLY | os.O_DIRECT)
    params = ctypes.create_string_buffer(PARAMS_SIZE)
    struct.pack_into("=I", params, 8, IORING_SETUP_IOPOLL)
    ring = call(IO_URING_SETUP, 1, ctypes.addressof(params))
    tail, array = (word(params, SQ_OFFSETS + at) for at in (4, 24))
    entries = word(params, CQ_OFFSETS + 20)
    # One mapping covers both rings.
    rings = mmap.mmap(ring, max(array + 4, entries + 2 * 16), offset=IORING_OFF_SQ_RING)
    sqes = mmap.mmap(ring, SQE_SIZE, offset=IORING_OFF_SQES)
    buffer = mmap.mmap(-1, LENGTH)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    struct.pack_into("=BBHiQQI", sqes, 0, IORING_OP_READ, 0, 0, disk, 0, address, LENGTH)
    struct.pack_into("=I", rings, array, 0)
    struct.pack_into("=I", rings, tail, 1)
    call(IO_URING_ENTER, ring, 1, 0, 0, 0, 0)
    print("sent", flush=True)
    sys.stdin.readline()
    call(IO_URING_ENTER, ring, 0, 1, IORING_ENTER_GETEVENTS, 0, 0)
    _, result = struct.unpack_from("=Qi", rings, entries)
    print(os.strerror(-result) if result < 0 else result, flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OSError as error:
        sys.exit(f"unpolled.py: {error}")

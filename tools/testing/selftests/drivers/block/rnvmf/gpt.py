#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes a GUID partition table with one partition: gpt.py DISK SIZE BLOCK-SIZE UUID NAME"""

import struct
import sys
import uuid
import zlib

LINUX = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
DISK = uuid.UUID("5e1f7e57-0003-4000-8000-0000000000d0")
ENTRIES, ENTRY_SIZE = 128, 128


def main(path, size, block, identity, name):
    """Write the protective MBR and both copies of the table."""
    last = size // block - 1
    blocks = ENTRIES * ENTRY_SIZE // block
    first, end = 2 + blocks, last - 1 - blocks
    entry = struct.pack("<16s16sQQQ72s", LINUX.bytes_le, uuid.UUID(identity).bytes_le, first, end,
                        0, name.encode("utf-16-le"))
    entries = entry.ljust(ENTRIES * ENTRY_SIZE, b"\0")

    def header(here, there, table):
        def packed(crc):
            return struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, crc, 0, here, there,
                               first, end, DISK.bytes_le, table, ENTRIES, ENTRY_SIZE,
                               zlib.crc32(entries))
        return packed(zlib.crc32(packed(0)))

    boot = struct.pack("<446xB3sB3sII48xH", 0, b"\0\2\0", 0xee, b"\xff" * 3, 1, last, 0xaa55)
    with open(path, "r+b") as disk:
        for place, data in ((0, boot), (1, header(1, last, 2)), (2, entries),
                            (last - blocks, entries), (last, header(last, 1, last - blocks))):
            disk.seek(place * block)
            disk.write(data)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])

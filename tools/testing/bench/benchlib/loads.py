# SPDX-License-Identifier: GPL-2.0
"""The loads that the drivers are measured with, as fio is told of them."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Load:
    """One kind of load. Of I/Os that are long there are fewer in a run: one of so many."""

    title: str
    rw: str
    size: int
    depth: int
    # I/Os that one call submits, so that the block layer gathers them.
    together: int = 1
    polled: bool = False
    fewer: int = 1

    def name(self):
        """Of its files."""
        return f"{self.rw}-{self.size}-{self.depth}-{self.together}" + "-polled" * self.polled

    def shape(self):
        """Options of fio, besides how long it runs."""
        polled = "--ioengine=io_uring --hipri=1 " if self.polled else ""
        return (f"{polled}--rw={self.rw} --bs={self.size} --iodepth={self.depth} --size=1g "
                f"--iodepth_batch_submit={self.together} "
                f"--iodepth_batch_complete_min={self.together}")

    def of(self, ios):
        """Options of fio for so many I/Os."""
        return f"{self.shape()} --io_size={self.size * max(ios // self.fewer, 1)}"


READ = Load("read 4k, QD1", "randread", 4096, 1)
READS = Load("read 4k, QD32", "randread", 4096, 32)
WRITES = Load("write 4k, QD32", "randwrite", 4096, 32)
# On one processor, who polls keeps it from those that have to answer, until his time is up.
POLLED = Load("read 4k, QD1, polled", "randread", 4096, 1, polled=True, fewer=20)

QUICK = [
    READ,
    READS,
    Load("read 4k, QD32 by 16", "randread", 4096, 32, 16),
    Load("write 4k, QD1", "randwrite", 4096, 1),
    WRITES,
    Load("write 4k, QD32 by 16", "randwrite", 4096, 32, 16),
]
FULL = [
    *QUICK,
    Load("read 512, QD1", "randread", 512, 1),
    Load("read 512, QD32", "randread", 512, 32),
    Load("write 512, QD1", "randwrite", 512, 1),
    Load("write 512, QD32", "randwrite", 512, 32),
    Load("read 128k, QD8", "read", 131072, 8, fewer=8),
    Load("write 128k, QD8", "write", 131072, 8, fewer=8),
    Load("read 1m, QD8", "read", 1 << 20, 8, fewer=50),
    Load("write 1m, QD8", "write", 1 << 20, 8, fewer=50),
    POLLED,
]
# What fio takes for itself is that of a run of one I/O, but for the I/O.
FIO = Load("fio", "read", 4096, 1)

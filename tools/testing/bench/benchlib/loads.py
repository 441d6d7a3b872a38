# SPDX-License-Identifier: GPL-2.0
"""The loads of the benchmark, as fio options."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Load:
    """A load. A run of large I/Os is shorter: it has the number of I/Os divided by `fewer`."""

    title: str
    rw: str
    size: int
    depth: int
    # I/Os per submission, which the block layer batches.
    together: int = 1
    polled: bool = False
    fewer: int = 1

    def name(self):
        """Return the name for files."""
        return f"{self.rw}-{self.size}-{self.depth}-{self.together}" + "-polled" * self.polled

    def shape(self):
        """Return the fio options, without the length of the run."""
        polled = "--ioengine=io_uring --hipri=1 " if self.polled else ""
        return (f"{polled}--rw={self.rw} --bs={self.size} --iodepth={self.depth} --size=1g "
                f"--iodepth_batch_submit={self.together} "
                f"--iodepth_batch_complete_min={self.together}")

    def of(self, ios):
        """Return the fio options for a run of this many I/Os."""
        return f"{self.shape()} --io_size={self.size * max(ios // self.fewer, 1)}"


READ = Load("read 4k, QD1", "randread", 4096, 1)
READS = Load("read 4k, QD32", "randread", 4096, 32)
WRITES = Load("write 4k, QD32", "randwrite", 4096, 32)
# With one CPU, a polling task keeps the CPU from the target until its time slice ends.
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
# A run of one I/O: its cost, without that of the I/O, is the cost of fio itself.
FIO = Load("fio", "read", 4096, 1)

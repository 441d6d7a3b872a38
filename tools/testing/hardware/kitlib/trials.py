# SPDX-License-Identifier: GPL-2.0
"""The tests of a disk."""

import concurrent.futures
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

from . import machine
from .disk import check_identity

HARNESS = pathlib.Path(__file__).resolve().parents[2] / \
    "selftests/drivers/infiniband/lib/harness.sh"


def _faults():
    """Return the pattern of kernel messages that report a fault, of an IOMMU as well."""
    if not HARNESS.exists():
        sys.exit(f"kit: {HARNESS} is missing: run the kit in its source tree")
    parts = re.findall(r"^FAULTS\+?='(.+)'$", HARNESS.read_text(encoding="utf-8"), re.MULTILINE)
    if not parts:
        raise ValueError(f"no FAULTS in {HARNESS}")
    return re.compile("".join(parts) + "|DMAR: |IO_PAGE_FAULT")


FAULTS = _faults()
# Seconds in which a controller must be live again after a reset or a loss.
LIVE = 120
READS = {"4k": ("4k", 1), "4k at once": ("4k", 32), "1m at once": ("1m", 8)}
WRITES = {"4k": "4k-4k", "4k to 512k": "4k-512k", "1m": "1m-1m"}
# fio would make a regular file of a disk that is gone.
FIO = ["fio", "--name=kit", "--direct=1", "--ioengine=libaio", "--output-format=json",
       "--allow_file_create=0"]
VERIFY = ["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0"]


class _Log:
    """The kernel log since this was made."""

    def __init__(self, name):
        self._mark = f"rnvmf kit: {name} {time.time_ns()}"
        pathlib.Path("/dev/kmsg").write_text(self._mark + "\n", encoding="utf-8")

    def lines(self):
        """Return the lines, or raise ValueError."""
        _, found, after = (machine.output(["dmesg"]) or "").rpartition(self._mark)
        if not found:
            raise ValueError("the kernel log cannot be read, or does not reach back to the start")
        return after.splitlines()[1:]


def _trial(results, name, function):
    """Run a test, which returns details and values; add the result."""
    results.begin(name)
    lines = []
    try:
        log = _Log(name)
        try:
            detail, values = function()
        finally:
            lines = log.lines()
        faults = [line for line in lines if FAULTS.search(line)]
        if faults:
            raise ValueError(f"the kernel reported: {faults[0]}")
        results.add(name, "ok", detail, **values)
    except (OSError, LookupError, TypeError, ValueError, subprocess.SubprocessError) as error:
        results.add(name, "FAILED", str(error), log=lines[-200:])


def _outcome(command, status, text, errors):
    """Return the job of fio's output, or raise ValueError."""
    job = None
    # Warnings may precede the JSON.
    if "{" in text:
        job = json.loads(text[text.index("{"):])["jobs"][0]
    if status != 0 or job is None or job["error"]:
        raise ValueError(f"fio ended with status {status}: {errors.strip() or ' '.join(command)}")
    return job


def _fio(disk, *options):
    check_identity(disk)
    command = [*FIO, f"--filename={disk.path}", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return _outcome(command, done.returncode, done.stdout, done.stderr)


def _read(disk, size, depth, seconds):
    job = _fio(disk, "--readonly", "--rw=randread", f"--bs={size}", f"--iodepth={depth}",
               "--time_based", f"--runtime={seconds}")
    found = job["read"]
    latency = found["clat_ns"]["mean"] / 1000
    return (f"{found['iops']:.0f} IOPS, {found['bw'] / 1024:.1f} MiB/s, {latency:.1f} us",
            {"iops": found["iops"], "kib_per_second": found["bw"], "mean_us": latency})


def _same_twice(disk):
    sums = []
    for _ in range(2):
        done = subprocess.run(["dd", f"if={disk.path}", "bs=1M", "count=64", "iflag=direct"],
                              capture_output=True, check=True)
        sums.append(hashlib.sha256(done.stdout).hexdigest())
    if sums[0] != sums[1]:
        raise ValueError("the first 64 MiB changed: wrong data, or somebody writes to the disk")
    return "", {}


def read_only(disk, results, seconds):
    """Run the tests that only read."""
    if shutil.which("nvme") and disk.name.startswith("nvme"):
        _trial(results, "nvme id-ns", lambda: (
            "", {"id_ns": subprocess.run(["nvme", "id-ns", disk.path], check=True, text=True,
                                         capture_output=True).stdout}))
    _trial(results, "read the same twice", lambda: _same_twice(disk))
    if not shutil.which("fio"):
        results.add("read", "skipped", "fio is not installed")
        return
    for name, (size, depth) in READS.items():
        _trial(results, f"read {name}", lambda s=size, d=depth: _read(disk, s, d, seconds))


def _verified(disk, sizes, mib, seed=1):
    """Write blocks of these sizes, and read them back. A block of another seed is wrong."""
    job = _fio(disk, *VERIFY, "--rw=randwrite", f"--bsrange={sizes}", "--iodepth=16",
               f"--size={mib}m", f"--randseed={seed}")
    return f"{job['write']['iops']:.0f} IOPS", {"iops": job["write"]["iops"]}


def _controller(name):
    return machine.SYS / "class" / ("rnvmf" if name.startswith("rnvmf") else "nvme") / name


def _is_live(disk):
    """Return whether all controllers of the disk are live."""
    return all(machine.read(_controller(name) / "state") == "live" for name in disk.controllers)


def _wait_live(disk):
    """Wait until all controllers of the disk are live; return the seconds."""
    began = time.monotonic()
    while not _is_live(disk):
        if time.monotonic() - began > LIVE:
            raise ValueError(f"{' '.join(disk.controllers)}: not live after {LIVE} s")
        time.sleep(0.1)
    return time.monotonic() - began


def _under_verified_io(disk, mib, fault):
    """Write and verify again and again until `fault` has returned; return its result."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(fault)
        seed, over = 1, False
        while not over:
            over = running.done()
            _verified(disk, "4k-64k", mib, seed)
            seed += 1
        return running.result()


def _reset(disk):
    for name in disk.controllers:
        if name.startswith("rnvmf"):
            subprocess.run(["rnvmf", "reset", name], check=True, capture_output=True)
        else:
            (_controller(name) / "reset_controller").write_text("1", encoding="utf-8")
    return _wait_live(disk)


def _resets(disk, number, mib):
    times = _under_verified_io(disk, mib, lambda: [_reset(disk) for _ in range(number)])
    return f"live after {max(times):.1f} s at most", {"seconds": times}


def _loss(disk, commands, seconds, mib):
    def shell(command):
        # In a session of its own, Ctrl-C does not reach it.
        subprocess.run(command, shell=True, check=True, capture_output=True, start_new_session=True)

    def fault():
        stays = True
        try:
            shell(commands[0])
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                stays = stays and _is_live(disk)
                time.sleep(0.1)
        finally:
            shell(commands[1])
        if stays:
            raise ValueError(f"no controller lost its connection within {seconds} s: the command "
                             "is wrong, or --down is too short")
        return _wait_live(disk)

    took = _under_verified_io(disk, mib, fault)
    return f"live {took:.1f} s after the path returned", {"seconds": took}


def writing(disk, results, arguments):
    """Run the tests that write, until one fails."""
    if not shutil.which("fio"):
        results.add("write", "skipped", "fio is not installed")
        return
    mib = min(arguments.size, disk.bytes >> 20)
    planned = {f"write and verify {name}": lambda s=sizes: _verified(disk, s, mib)
               for name, sizes in WRITES.items()}
    if arguments.reset:
        planned[f"{arguments.reset} resets under verified I/O"] = \
            lambda: _resets(disk, arguments.reset, mib)
    if arguments.loss:
        planned[f"loss of {arguments.down} s under verified I/O"] = \
            lambda: _loss(disk, arguments.loss, arguments.down, mib)
    for name, function in planned.items():
        if results.has_failures():
            results.add(name, "skipped", "a test before it failed")
        else:
            _trial(results, name, function)

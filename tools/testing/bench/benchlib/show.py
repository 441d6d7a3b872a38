# SPDX-License-Identifier: GPL-2.0
"""Formats the results as tables."""

TITLES = {"whole": "the whole machine", "own": "the driver's own",
          "locks": "locks of the machine"}
DIGITS = {"locks": 1}
# Columns of the table of counts: key and title.
COUNTS = {"commands": "commands", "work_requests": "requests", "doorbells": "posts",
          "completions": "completions", "registrations": "regions", "allocations": "allocations",
          "polls": "polls"}
NAMES = {"nvme": "nvme-rdma", "rnvmf": "rnvmf"}


def instructions(found):
    """Yield the table of instructions and locks per I/O."""
    yield f"instructions an I/O, {found['pairs']} pairs"
    for what, title in TITLES.items():
        if what not in found["loads"][0]:
            continue
        yield ""
        yield f"{title:22} {'nvme-rdma':>10} {'rnvmf':>10} {'ratio':>7}  from .. to"
        for cell in found["loads"]:
            row, digits = cell[what], DIGITS.get(what, 0)
            yield (f"{cell['load']:22} {row['nvme']:10.{digits}f} {row['rnvmf']:10.{digits}f}"
                   f" {row['ratio']:7.4f}  {row['lowest']:.4f} .. {row['highest']:.4f}"
                   f"{'  looks in vain, too' * (cell['polled'] and what == 'own')}")


def counts(found):
    """Yield the table of events per I/O."""
    yield f"{'an I/O':22} {'':9}" + "".join(f" {title:>11}" for title in COUNTS.values())
    for row in found["counts"]:
        for driver, name in NAMES.items():
            yield f"{row['load']:22} {name:9}" + "".join(
                f" {row[driver][count]:11.3f}" if count in row[driver] else f" {'-':>11}"
                for count in COUNTS)


def steps(found):
    """Yield the tables of connect, reset and disconnect."""
    units = {"kernel": ("the kernel's instructions", 1), "program": ("the program's", 1),
             "time": ("its time, ms", 1e6)}
    for cost, (title, unit) in units.items():
        if cost != "kernel":
            yield ""
        yield f"{title:22} {'nvme-rdma':>12} {'rnvmf':>12} {'ratio':>7}  from .. to"
        for row in found["steps"]:
            one = row[cost]
            digits = 0 if unit == 1 else 2
            yield (f"{row['step']:22} {one['nvme'] / unit:12.{digits}f}"
                   f" {one['rnvmf'] / unit:12.{digits}f} {one['ratio']:7.4f}"
                   f"  {one['lowest']:.4f} .. {one['highest']:.4f}")


def functions(found):
    """Yield the tables of instructions per I/O by function."""
    for cell in found["loads"]:
        for driver, rows in cell.get("functions", {}).items():
            yield ""
            yield f"{cell['load']}, {NAMES[driver]}"
            for module, name, cost in rows:
                yield f"{cost:10.1f}  {module}  {name}"


def throughput(found):
    """Yield the table of throughput."""
    yield f"{'I/Os in the same time':22} {'CPUs':>4} {'pairs':>5} {'ratio':>7}  95 % confidence"
    for row in found["throughput"]:
        yield (f"{row['load']:22} {row['cpus']:4} {row['pairs']:5} {row['ratio']:7.4f}"
               f"  {row['low']:.4f} .. {row['high']:.4f}")


def memory(found):
    """Yield the table of memory per controller."""
    if "memory" in found:
        yield ""
        yield f"{'memory, KiB':22} {'nvme-rdma':>10} {'rnvmf':>10} {'ratio':>7}"
        for what, title in (("controller", "a controller"), ("queue", "of it, an I/O queue")):
            if what not in found["memory"]["rnvmf"]:
                continue
            theirs, ours = (found["memory"][driver][what] for driver in NAMES)
            yield f"{title:22} {theirs:10.0f} {ours:10.0f} {ours / theirs:7.4f}"


def modules(found):
    """Yield the table of module sizes."""
    yield f"{'modules, bytes':22} {'text':>10} {'data':>10}"
    for sizes in found["modules"].values():
        for module, size in sizes.items():
            yield f"{module:22} {size['text']:10} {size['data']:10}"


def all_of(results):
    """Yield all tables."""
    yield (f"commit {results['commit']}, kernel {results['kernel']}, QEMU {results['qemu']}, "
           f"fio {results['fio']}")
    if "instructions" in results:
        found = results["instructions"]
        for part in (instructions, counts, steps):
            yield ""
            yield from part(found)
        yield from memory(found)
        yield from functions(found)
    if "throughput" in results:
        yield ""
        yield from throughput(results)
        yield ""
        yield from modules(results)

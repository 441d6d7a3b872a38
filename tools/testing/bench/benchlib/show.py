# SPDX-License-Identifier: GPL-2.0
"""Formats the results as tables."""

TITLES = {"whole": "the whole machine", "own": "the driver's own",
          "locks": "locks of the machine"}
DIGITS = {"locks": 1}
# Columns of the table of counts: key and title.
COUNTS = {"commands": "commands", "work_requests": "requests", "doorbells": "posts",
          "completions": "completions", "registrations": "regions", "allocations": "allocations",
          "polls": "polls"}
THEIRS = {"nvme": "nvme-rdma", "nvmet": "nvmet-rdma"}
NAMES = {**THEIRS, "rnvmf": "rnvmf", "rust": "nvme_rdma_rust", "nvmet_rust": "nvmet_rdma_rust"}


def _ours(row):
    """Return the key of the driver in a row that is of this tree."""
    return next(key for key in NAMES if key in row and key not in THEIRS)


def _theirs(row):
    """Return the key of the driver in a row that is in C."""
    return next(key for key in THEIRS if key in row)


def _width(ours, width):
    return max(width, len(NAMES[ours]))


def _head(title, row, width=10):
    ours, theirs = _ours(row), NAMES[_theirs(row)]
    return f"{title:22} {theirs:>{width}} {NAMES[ours]:>{_width(ours, width)}} {'ratio':>7}"


def _numbers(row, width=10, digits=0, unit=1):
    """Return the columns of both drivers."""
    ours = _ours(row)
    return (f"{row[_theirs(row)] / unit:{width}.{digits}f}"
            f" {row[ours] / unit:{_width(ours, width)}.{digits}f}")


def instructions(found):
    """Yield the table of instructions and locks per I/O."""
    yield f"instructions an I/O, {found['pairs']} pairs"
    for what, title in TITLES.items():
        if what not in found["loads"][0]:
            continue
        yield ""
        yield _head(title, found["loads"][0][what]) + "  from .. to"
        for cell in found["loads"]:
            row, digits = cell[what], DIGITS.get(what, 0)
            yield (f"{cell['load']:22} {_numbers(row, digits=digits)}"
                   f" {row['ratio']:7.4f}  {row['lowest']:.4f} .. {row['highest']:.4f}"
                   f"{'  looks in vain, too' * (cell['polled'] and what == 'own')}")


def counts(found):
    """Yield the table of events per I/O."""
    width = max((_width(_ours(row), 9) for row in found["counts"]), default=9)
    yield f"{'an I/O':22} {'':{width}}" + "".join(f" {title:>11}" for title in COUNTS.values())
    for row in found["counts"]:
        for driver in (_theirs(row), _ours(row)):
            yield f"{row['load']:22} {NAMES[driver]:{width}}" + "".join(
                f" {row[driver][count]:11.3f}" if count in row[driver] else f" {'-':>11}"
                for count in COUNTS)


def steps(found):
    """Yield the tables of connect, reset and disconnect."""
    if not found["steps"]:
        return
    units = {"kernel": ("the kernel's instructions", 1), "program": ("the program's", 1),
             "time": ("its time, ms", 1e6)}
    for cost, (title, unit) in units.items():
        if cost != "kernel":
            yield ""
        yield _head(title, found["steps"][0][cost], 12) + "  from .. to"
        for row in found["steps"]:
            one = row[cost]
            digits = 0 if unit == 1 else 2
            yield (f"{row['step']:22} {_numbers(one, 12, digits, unit)} {one['ratio']:7.4f}"
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
    """Yield the tables of memory per controller."""
    tables = {"memory, KiB": found["memory"]} if "memory" in found else found.get("receives", {})
    for title, by_driver in tables.items():
        yield ""
        yield _head(title, by_driver)
        for what, name in (("controller", "a controller"), ("queue", "of it, an I/O queue")):
            row = {driver: used[what] for driver, used in by_driver.items() if what in used}
            if row:
                yield f"{name:22} {_numbers(row)} {row[_ours(row)] / row[_theirs(row)]:7.4f}"


def modules(found):
    """Yield the table of module sizes."""
    yield f"{'modules, bytes':22} {'text':>10} {'data':>10}"
    for sizes in found["modules"].values():
        for module, size in sizes.items():
            yield f"{module:22} {size['text']:10} {size['data']:10}"


def connects(found):
    """Yield the tables of connects with many queues."""
    titles = {True: "ms, 1 ns an instruction", False: "ms, the host's clock"}
    for ours in ("rnvmf", "rust"):
        for icount, title in titles.items():
            rows = [row for row in found if ours in row and row["icount"] == icount]
            yield ""
            yield _head(title, rows[0]) + "  from .. to"
            for row in rows:
                name = f"connect, {row['queues']} queues"
                yield (f"{name:22} {_numbers(row, digits=1, unit=1e6)} {row['ratio']:7.4f}"
                       f"  {row['lowest']:.4f} .. {row['highest']:.4f}")


def scale(what, rows):
    """Yield the table of many controllers or namespaces."""
    names = {"connect": "connect ms", "disconnect": "disconnect ms", "kib": "KiB", "qp": "QP",
             "cq": "CQ", "mr": "MR", "threads": "threads"}
    shown = [field for field in names if field in rows[0]]
    yield " ".join([f"{what:12} {'driver':16}", *(f"{names[field]:>13}" for field in shown)])
    for row in rows:
        values = (row[field] // 1000 if field.endswith("connect") else row[field]
                  for field in shown)
        yield " ".join([f"{row['number']:<12} {NAMES[row['driver']]:16}",
                        *(f"{value:13}" for value in values)])


def all_of(results):
    """Yield all tables."""
    yield (f"commit {results['commit']}, kernel {results['kernel']}, QEMU {results['qemu']}, "
           f"fio {results['fio']}")
    if "instructions" in results or "target" in results:
        both = results.get("instructions", {})
        for found in filter(None, (both, both.get("transport"), results.get("target"))):
            for part in (instructions, counts, steps):
                if part is counts and not found["counts"]:
                    continue
                yield ""
                yield from part(found)
            yield from memory(found)
            yield from functions(found)
    if "connects" in results:
        yield from connects(results["connects"])
    for what in ("controllers", "namespaces"):
        if what in results:
            yield ""
            yield from scale(what, results[what])
    if "throughput" in results:
        yield ""
        yield from throughput(results)
        yield ""
        yield from modules(results)

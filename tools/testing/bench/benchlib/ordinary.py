# SPDX-License-Identifier: GPL-2.0
"""Measures throughput, in VMs whose clock is the host's, and the size of the modules.

Other load on the host disturbs the results. So the runs are short and alternate between the
drivers. The result is the median of the ratios of pairs, with its confidence interval of 95 %.
"""

import collections
import dataclasses
import json
import math
import pathlib
import statistics
import tempfile

from vmlib import build, launch, log, machine, root

from . import loads

GUEST = "/opt/rnvmf/src/tools/testing/bench/side_by_side/ordinary.sh"
SECONDS = 3600
CONFIDENCE = 0.95
MODULES = {"rnvmf": ("rnvmf", "rrdma"), "nvme": ("nvme-rdma", "nvme-fabrics", "nvme-core")}


@dataclasses.dataclass(frozen=True)
class Plan:
    """Amount of measurements."""

    cpus: tuple = (1, 2, 4)
    pairs: int = 24
    milliseconds: int = 300


def interval(values):
    """Return the confidence interval of the median.

    Its ends are two of the values, selected by rank from the binomial distribution. The values may
    have any distribution.
    """
    ordered, number = sorted(values), len(values)
    outside, rank = 0.0, 0
    while rank < number // 2:
        outside += 2 * math.comb(number, rank) / 2 ** number
        if outside > 1 - CONFIDENCE:
            break
        rank += 1
    if rank == 0:
        raise log.ToolError(f"{number} pairs are too few for a confidence interval")
    return ordered[rank - 1], ordered[-rank]


def _throughput(path):
    """Return the I/Os per second, by driver and pair."""
    found = collections.defaultdict(dict)
    for job in json.loads(path.read_text(encoding="utf-8"))["jobs"]:
        if job["error"]:
            raise log.ToolError(f"fio failed with error {job['error']}: {path.name}")
        pair, driver = job["jobname"].split(".")
        found[driver][int(pair)] = job["read"]["iops"] + job["write"]["iops"]
    return found


def _load(path, load, cpus):
    found = _throughput(path)
    ratios = [found["rnvmf"][pair] / rate for pair, rate in found["nvme"].items()]
    low, high = interval(ratios)
    return {"cpus": cpus, "load": load.title, "pairs": len(ratios),
            "ratio": statistics.median(ratios), "low": low, "high": high}


def _modules(tree):
    """Return the size in bytes, by driver and module."""
    return {driver: {module: _size(tree, module) for module in modules}
            for driver, modules in MODULES.items()}


def _size(tree, module):
    ours = build.output(tree.release) / f"{module}.ko"
    path = ours if ours.exists() else next(tree.modules.rglob(f"{module}.ko"))
    text, data, bss, *_ = root.quietly(["size", path]).splitlines()[1].split()
    return {"text": int(text), "data": int(data) + int(bss)}


def _boot(tree, plan, cpus, results):
    """Measure in one VM and add to the results."""
    chosen = [loads.READ, loads.READS, loads.WRITES, *([loads.POLLED] if cpus > 1 else [])]
    with tempfile.TemporaryDirectory(dir=build.BUILD, prefix="bench.") as directory:
        out = pathlib.Path(directory)
        command = [GUEST, str(plan.pairs), str(plan.milliseconds),
                   *(f"{load.name()}={load.shape()}" for load in chosen)]
        # For comparison with earlier results, which had these CPU features.
        settings = machine.Settings(command, cpus=cpus, out=out, timeout=SECONDS, bytewise=True)
        status = launch.launch(tree, settings)
        if status != 0:
            raise log.ToolError(f"the script in the VM failed with status {status}")
        results["throughput"] += [_load(out / f"{load.name()}.json", load, cpus) for load in chosen]


def measure(tree, plan):
    """Measure everything, in one VM for each number of CPUs. Return the results."""
    results = {"throughput": [], "modules": _modules(tree)}
    for cpus in plan.cpus:
        _boot(tree, plan, cpus, results)
    return results

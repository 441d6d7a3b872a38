# SPDX-License-Identifier: GPL-2.0
"""Measures the drivers in instructions, in a VM whose clock counts them.

Results are objects that can be converted to JSON; show.py formats them as tables.
"""

import collections
import dataclasses
import json
import pathlib
import statistics
import tempfile

from vmlib import build, launch, log, machine

from . import plugin, profile
from .loads import FIO

GUEST = "/opt/rnvmf/src/tools/testing/bench/side_by_side/instructions.sh"
NVME = "nvme"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A driver of this tree, beside one in C. `rust` are the kernel's functions for Rust."""

    ours: str
    # Modules whose instructions are the driver's own.
    modules: dict[str, tuple]
    # Label of the C driver in the steps.
    stepped: str = NVME
    theirs: str = NVME

    def of_steps(self):
        """Return the labels in the steps by driver."""
        return {self.ours: self.ours, self.theirs: self.stepped}

    def compare(self, costs, typical=statistics.median):
        """Return the typical costs by driver, and the median and range of the ratios of pairs."""
        ratios = [our / their for our, their in zip(costs[self.ours], costs[self.theirs])]
        return {**{driver: typical(cost) for driver, cost in costs.items()},
                "ratio": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}


RNVMF = Comparison("rnvmf", {"rnvmf": ("rnvmf", "rrdma", "rust"),
                             NVME: ("nvme_rdma", "nvme_core", "nvme_fabrics")})
# Both are below nvme-core, which is neither's own. nvme-cli cannot connect nvme_rdma_rust, so for
# the steps nvme-rdma is connected without it, too.
TRANSPORT = Comparison("rust", {"rust": ("nvme_rdma_rust", "rrdma", "rust"), NVME: ("nvme_rdma",)},
                       "written")
# Time limit of the VM.
SECONDS = 7200

# Results for the whole machine, without the costs of fio itself.
WHOLE = {"whole": profile.Profile.total, "locks": profile.Profile.locks}

# Memory is measured with this many controllers, with MORE or FEWER I/O queues each. The number is
# also in the script of the guest.
CONTROLLERS = 8
MORE, FEWER = 3, 1

STEPS = ("connect", "reset", "disconnect")
# Costs of a step: in instructions, except the time of its command, which is in nanoseconds.
COSTS = ("kernel", "program", "time")

# What stands for the rounds of a step. The VM's clock counts waits for the host, too, which only
# lengthen a step.
TYPICAL = {"kernel": statistics.median, "program": statistics.median, "time": min}
# Counters of `rnvmf stats` that count per I/O.
COUNTERS = ("doorbells", "work_requests", "completions", "polls", "registrations",
            "local_invalidations")
# Handlers of send completions and of responses, by driver without counters of its own.
HANDLERS = {NVME: ("nvme_rdma_send_done", "nvme_rdma_recv_done"),
            "rust": ("operation4sent", "operation9completed")}
ALLOCATIONS = ("kmalloc", "kmem_cache_alloc")


@dataclasses.dataclass(frozen=True)
class Plan:
    """Amount of measurements."""

    loads: list
    pairs: int
    ios: int
    # Number of connects, resets and disconnects. If 0, calls are not counted either.
    rounds: int


@dataclasses.dataclass
class Run:
    """Cost of a run per I/O, in instructions and in acquired locks."""

    whole: float
    locks: float
    own: float
    functions: dict[profile.Function, float]
    calls: dict[profile.Function, float]

    def handled(self, handler):
        """Return the number of calls of a completion handler, by a part of its name."""
        return sum(times for function, times in self.calls.items() if handler in function.name)


def _deduced(run, calls, handlers):
    """Return what a driver under nvme-core does for an I/O, from its calls."""
    sends, commands = (run.handled(handler) for handler in handlers)
    regions = calls.get("ib_map_mr_sg", 0)
    return {"commands": commands, "doorbells": calls.get("rxe_post_send", 0),
            "work_requests": commands + regions, "completions": sends + commands,
            "registrations": regions}


def _with_memory(counts, calls):
    return {**counts, "allocations": sum(calls.get(event, 0) for event in ALLOCATIONS)}


class Output:
    """Output files of the VM, for a comparison."""

    def __init__(self, out, counted, plan, comparison):
        self._out = out
        self._counted = counted
        self._plan = plan
        self._comparison = comparison
        self.compare = comparison.compare
        self._fio = {driver: self._of_fio(driver) for driver in comparison.modules}

    def _of_fio(self, driver):
        runs = [self._counted[f"{FIO.name()}.{pair}.{driver}"] for pair in range(self._plan.pairs)]
        return {cost: statistics.median(map(of, runs)) for cost, of in WHOLE.items()}

    def runs(self, load):
        """Return the runs of a load by driver, in the order of the pairs."""
        return {driver: [self._run(f"{load.name()}.{pair}.{driver}", driver)
                         for pair in range(self._plan.pairs)]
                for driver in self._comparison.modules}

    def _run(self, label, driver):
        ios = self._ios(label)
        counted = self._counted[label]
        modules = counted.modules()
        whole = {cost: (of(counted) - self._fio[driver][cost]) / (ios - 1)
                 for cost, of in WHOLE.items()}
        return Run(**whole,
                   own=sum(modules[module] for module in self._comparison.modules[driver])
                   / ios,
                   functions={function: count / ios for function, count in counted.counts.items()},
                   calls={function: times / ios for function, times in counted.calls.items()})

    def _ios(self, label):
        return self._jobs(label)["load"]

    def _jobs(self, label):
        """Return the number of I/Os by fio job."""
        ios = {}
        for job in self._json(f"{label}.json")["jobs"]:
            if job["error"]:
                raise log.ToolError(f"fio failed with error {job['error']}: {label}")
            ios[job["jobname"]] = job["read"]["total_ios"] + job["write"]["total_ios"]
        return ios

    def counts(self, load, runs):
        """Return what each driver did for an I/O."""
        name = load.name()
        ios, calls = self._jobs(name), self._calls(name)
        found = {driver: {event: count / ios[driver] for event, count in calls[driver].items()}
                 for driver in calls}
        counts = {driver: _deduced(runs[driver][-1], found[driver], handlers)
                  for driver, handlers in HANDLERS.items() if driver in found}
        if RNVMF.ours in found:
            counts[RNVMF.ours] = self._own_counts(name, ios[RNVMF.ours])
        return {"load": load.title, **{driver: _with_memory(counts[driver], found[driver])
                                       for driver in found}}

    def _own_counts(self, name, ios):
        """Return the counters of rnvmf, per I/O."""
        before, after = (self._json(f"{name}.{when}")["controllers"][0]
                         for when in ("before", "after"))
        per_io = {counter: (after[counter] - before[counter]) / ios
                  for counter in (*COUNTERS, "reads", "writes")}
        return {"commands": per_io.pop("reads") + per_io.pop("writes"), **per_io}

    def _calls(self, name):
        """Return the calls by driver and event, from the modules of the driver."""
        modules_of = self._comparison.modules
        found = {driver: collections.Counter() for driver in modules_of}
        text = (self._out / f"{name}.calls").read_text(encoding="utf-8")
        for event, module, times in map(str.split, text.splitlines()):
            if module == "dropped":
                raise log.ToolError(f"the kernel dropped events of {event}")
            for driver, modules in modules_of.items():
                if module in modules:
                    found[driver][event] += int(times)
        return found

    def _json(self, name):
        return json.loads((self._out / name).read_text(encoding="utf-8"))

    def memory(self, name="memory"):
        """Return the memory by driver in KiB: of a controller with MORE I/O queues, and of a queue.

        The latter is computed from controllers with FEWER queues. Also return all measurements.
        """
        used = {driver: collections.defaultdict(list) for driver in self._comparison.modules}
        for line in (self._out / name).read_text(encoding="utf-8").splitlines():
            driver, queues, kib = line.split()
            if driver in used:
                used[driver][int(queues)].append(int(kib) / CONTROLLERS)
        return {driver: _memory(found) for driver, found in used.items()}

    def step(self, name):
        """Return the cost of a step, such as connect, for the whole machine."""
        costs = {driver: self._less_measuring(name, label)
                 for driver, label in self._comparison.of_steps().items()}
        return {"step": name, **{cost: self.compare({driver: [found[cost] for found in all_found]
                                                     for driver, all_found in costs.items()},
                                                    TYPICAL[cost])
                                 for cost in COSTS}}

    def functions(self, runs, number):
        """Return the most expensive functions of each driver in its last run, with their cost."""
        return {driver: functions(runs[driver][-1], modules, number)
                for driver, modules in self._comparison.modules.items()}

    def _less_measuring(self, name, driver):
        """Return the cost of a step in each round, without the typical cost of measuring."""
        turns = range(self._plan.rounds)
        nothing = [self._spent("nothing", driver, turn) for turn in turns]
        measuring = {cost: TYPICAL[cost](found[cost] for found in nothing) for cost in COSTS}
        return [{cost: found[cost] - measuring[cost] for cost in COSTS}
                for found in (self._spent(name, driver, turn) for turn in turns)]

    def _spent(self, name, driver, turn):
        command, rest = (self._counted[f"{name}.{turn}.{driver}.{part}"]
                         for part in ("command", "rest"))
        return {"kernel": command.kernel() + rest.kernel(), "program": command.user(),
                "time": command.nanoseconds}


def _memory(found):
    more, fewer = (statistics.median(found[queues]) for queues in (MORE, FEWER))
    return {"controller": more, "queue": (more - fewer) / (MORE - FEWER), "found": found}


def functions(run, modules, number):
    """Return the most expensive functions of the modules in a run, with their cost."""
    own = [[function.module, function.name, cost] for function, cost in run.functions.items()
           if function.module in modules]
    return sorted(own, key=lambda row: -row[-1])[:number]


def run(tree, plan, guest, read):
    """Run the script `guest` in a VM. Return what `read` finds in its files and profiles."""
    with tempfile.TemporaryDirectory(dir=build.BUILD, prefix="bench.") as directory:
        out = pathlib.Path(directory)
        loads = [f"{FIO.name()}={FIO.of(1)}",
                 *(f"{load.name()}={load.of(plan.ios)}" for load in plan.loads)]
        # For comparison with earlier results, which had the CPU features `bytewise`.
        settings = machine.Settings([guest, str(plan.pairs), str(plan.rounds), *loads], icount=0,
                                    cpus=1, out=out, timeout=SECONDS, plugin=plugin.ensure(),
                                    bytewise=True)
        status = launch.launch(tree, settings)
        if status != 0:
            raise log.ToolError(f"the script in the VM failed with status {status}")
        return read(out, profile.profiles(out))


def measure(tree, plan, most=0):
    """Measure in one VM. Return the results, with `most` functions of each load and driver."""
    def read(out, counted):
        found, under_core = (_results(Output(out, counted, plan, comparison), plan, most)
                             for comparison in (RNVMF, TRANSPORT))
        return {**found, "transport": under_core}
    return run(tree, plan, GUEST, read)


def _results(output, plan, most):
    found = {**of_loads(output, plan, most), "rounds": plan.rounds,
             "counts": [output.counts(load, output.runs(load))
                        for load in plan.loads if plan.rounds],
             "steps": [output.step(name) for name in STEPS if plan.rounds]}
    if plan.rounds // 3:
        found["memory"] = output.memory()
    return found


def of_loads(output, plan, most):
    """Return the costs of each load, with its `most` expensive functions."""
    found = {"pairs": plan.pairs, "ios": plan.ios, "loads": []}
    for load in plan.loads:
        runs = output.runs(load)
        cell = {"load": load.title, "polled": load.polled}
        for what in (*WHOLE, "own"):
            cell[what] = output.compare({driver: [getattr(run, what) for run in all_runs]
                                         for driver, all_runs in runs.items()})
        if most:
            cell["functions"] = output.functions(runs, most)
        found["loads"].append(cell)
    return found

# SPDX-License-Identifier: GPL-2.0
"""Tests of the cost of a read and of a disconnect.

The own instructions for a read of rnvmf, relative to those of nvme-rdma, and of nvme_rdma_rust,
relative to those of nvme-rdma.ko, must not exceed the recorded ratios.
The disconnect of a live controller with a disk must not exceed a time limit.
"""

from . import instructions, loads, record

# The ratios vary by 0.2 % between runs.
MARGIN = 1.01
# Time limit of a disconnect, in milliseconds of the VM's clock.
DISCONNECT = 100
PLAN = instructions.Plan([loads.READ], pairs=1, ios=500, rounds=2)


def _own(found):
    """Return the ratio for the measured load."""
    return next(cell["own"]["ratio"] for cell in found["loads"]
                if cell["load"] == loads.READ.title)


def _disconnect(results):
    """Return the shortest time of rnvmf in milliseconds."""
    return next(step["time"]["rnvmf"] / 1e6 for step in results["instructions"]["steps"]
                if step["step"] == "disconnect")


def check(tree):
    """Measure, print the results as KTAP, and return the exit status."""
    recorded = record.load(tree.release)["instructions"]
    limit, under_core = _own(recorded) * MARGIN, _own(recorded["transport"]) * MARGIN
    results = {"instructions": instructions.measure(tree, PLAN)}
    ratio, took = _own(results["instructions"]), _disconnect(results)
    transport = _own(results["instructions"]["transport"])
    tests = {
        "instructions_of_a_read":
            (ratio <= limit,
             f"{loads.READ.title}: the driver's own instructions are {ratio:.4f} of nvme-rdma's, "
             f"limit {limit:.4f}"),
        "instructions_of_a_read_under_nvme_core":
            (transport <= under_core,
             f"{loads.READ.title}: nvme_rdma_rust's own instructions are {transport:.4f} of "
             f"nvme-rdma.ko's, limit {under_core:.4f}"),
        "time_of_a_disconnect":
            (took < DISCONNECT,
             f"a disconnect takes {took:.2f} ms of the VM's time, limit {DISCONNECT} ms"),
    }
    print(f"KTAP version 1\n1..{len(tests)}")
    for number, (name, (good, says)) in enumerate(tests.items(), 1):
        print(f"# {says}\n{'ok' if good else 'not ok'} {number} {name}")
    return 0 if all(good for good, _ in tests.values()) else 1

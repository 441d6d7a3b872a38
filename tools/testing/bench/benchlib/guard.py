# SPDX-License-Identifier: GPL-2.0
"""Tests: rnvmf's own instructions for a read are no more of nvme-rdma's than was recorded, and a
live controller with a disk is disconnected in time."""

from . import instructions, loads, record

# What the driver's own share differs by from one run to the next is a tenth of a per cent.
MARGIN = 1.02
# What a disconnect may take of the VM's time, in milliseconds.
DISCONNECT = 100
PLAN = instructions.Plan([loads.READ], pairs=1, ios=500, rounds=2)


def _own(results):
    """The ratio of the load that is looked at."""
    return next(cell["own"]["ratio"] for cell in results["instructions"]["loads"]
                if cell["load"] == loads.READ.title)


def _disconnect(results):
    """The median of the milliseconds that rnvmf takes."""
    return next(step["time"]["rnvmf"] / 1e6 for step in results["instructions"]["steps"]
                if step["step"] == "disconnect")


def check(tree):
    """Print the results as KTAP; return the status."""
    limit = _own(record.load()) * MARGIN
    results = {"instructions": instructions.measure(tree, PLAN)}
    ratio, took = _own(results), _disconnect(results)
    tests = {
        "instructions_of_a_read":
            (ratio <= limit,
             f"{loads.READ.title}: the driver's own instructions are {ratio:.4f} of nvme-rdma's, "
             f"and may be {limit:.4f}"),
        "time_of_a_disconnect":
            (took < DISCONNECT,
             f"a disconnect takes {took:.2f} ms of the VM's time, and may take {DISCONNECT}"),
    }
    print(f"KTAP version 1\n1..{len(tests)}")
    for number, (name, (good, says)) in enumerate(tests.items(), 1):
        print(f"# {says}\n{'ok' if good else 'not ok'} {number} {name}")
    return 0 if all(good for good, _ in tests.values()) else 1

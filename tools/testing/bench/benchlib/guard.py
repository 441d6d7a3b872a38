# SPDX-License-Identifier: GPL-2.0
"""A test: rnvme's own instructions for a read are no more of nvme-rdma's than was recorded."""

from . import instructions, loads, record

# What the driver's own share differs by from one run to the next is a tenth of a per cent.
MARGIN = 1.02
PLAN = instructions.Plan([loads.READ], pairs=1, ios=500, rounds=0)


def _own(results):
    """The ratio of the load that is looked at."""
    return next(cell["own"]["ratio"] for cell in results["instructions"]["loads"]
                if cell["load"] == loads.READ.title)


def check(tree):
    """Print the result as KTAP; return the status."""
    limit = _own(record.load()) * MARGIN
    ratio = _own({"instructions": instructions.measure(tree, PLAN)})
    good = ratio <= limit
    print("KTAP version 1\n1..1\n"
          f"# {loads.READ.title}: the driver's own instructions are {ratio:.4f} of nvme-rdma's, "
          f"and may be {limit:.4f}")
    print(f"{'ok' if good else 'not ok'} 1 instructions_of_a_read")
    return 0 if good else 1

# SPDX-License-Identifier: GPL-2.0
"""Measures nvmet_rdma_rust beside nvmet-rdma, in instructions and memory. The host is nvme-rdma."""

from . import instructions, loads

GUEST = "/opt/rnvmf/src/tools/testing/bench/side_by_side/targets.sh"
# The host is nvme-rdma, so nobody else uses rrdma and the functions for Rust.
COMPARISON = instructions.Comparison(
    "nvmet_rust", {"nvmet_rust": ("nvmet_rdma_rust", "rrdma", "rust"), "nvmet": ("nvmet_rdma",)},
    "nvmet", "nvmet")
RECEIVES = {"own": "own receives", "shared": "shared receives"}
LOADS = [
    loads.READ,
    loads.Load("read 4k, QD32 by 16", "randread", 4096, 32, 16),
    # In the capsule.
    loads.Load("write 4k, QD1", "randwrite", 4096, 1),
    loads.Load("write 4k, QD32 by 16", "randwrite", 4096, 32, 16),
    # By RDMA READ.
    loads.Load("write 8k, QD1", "randwrite", 8192, 1),
    loads.Load("read 128k, QD8", "read", 131072, 8, fewer=8),
    loads.Load("write 128k, QD8", "write", 131072, 8, fewer=8),
]
PLAN = instructions.Plan(LOADS, pairs=3, ios=1000, rounds=3)
QUICK = instructions.Plan(LOADS[:1] + LOADS[2:3] + LOADS[4:5], pairs=1, ios=500, rounds=0)


def measure(tree, plan, most=0):
    """Measure in one VM. Return the results, with `most` functions of each load and driver."""
    def read(out, counted):
        output = instructions.Output(out, counted, plan, COMPARISON)
        found = {**instructions.of_loads(output, plan, most), "counts": [], "steps": []}
        if plan.rounds:
            found["steps"] = [output.step("accept")]
            found["receives"] = {title: output.memory(f"memory.{name}")
                                 for name, title in RECEIVES.items()}
        return found
    return instructions.run(tree, plan, GUEST, read)

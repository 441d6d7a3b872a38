# SPDX-License-Identifier: GPL-2.0
"""Measures what many controllers, and many namespaces of a controller, cost.

A VM with two CPUs connects with each driver in turn. A controller has two I/O queues. The target is
in the same VM.
"""

import pathlib
import tempfile

from vmlib import build, launch, log, machine

GUEST = "/opt/rnvmf/src/tools/testing/bench/side_by_side/scale.sh"
SECONDS = 7200
# Most controllers, and most namespaces that nvmet has.
LIMITS = {"controllers": 250, "namespaces": 1024}
# MiB, and for each controller of a driver.
MEMORY, EACH = 3072, 12
FIELDS = {
    "controllers": ("connect", "disconnect", "kib", "qp", "cq", "mr", "threads"),
    "namespaces": ("connect", "disconnect"),
}


def measure(tree, what, numbers):
    """Measure with these numbers of controllers or namespaces. Return a row for each and driver."""
    controllers = max(numbers) if what == "controllers" else 1
    with tempfile.TemporaryDirectory(dir=build.BUILD, prefix="bench.") as directory:
        out = pathlib.Path(directory)
        settings = machine.Settings([GUEST, what, *map(str, numbers)], out=out, timeout=SECONDS,
                                    memory=MEMORY + EACH * controllers)
        status = launch.launch(tree, settings)
        if status != 0:
            raise log.ToolError(f"the script in the VM failed with status {status}")
        lines = (out / "scale").read_text(encoding="utf-8").splitlines()
    rows = []
    for line in lines:
        _, number, driver, *values = line.split()
        rows.append({"number": int(number), "driver": driver,
                     **dict(zip(FIELDS[what], map(int, values)))})
    return rows

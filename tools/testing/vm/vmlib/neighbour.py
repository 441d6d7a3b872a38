# SPDX-License-Identifier: GPL-2.0
"""A second VM, linked to the VM of a test, which starts and kills it."""

import threading

from . import launch, machine, report

# SCRIPT is in the directory of the test, below SELFTESTS.
SELFTESTS = "/opt/rnvmf/selftests"
SCRIPT = "neighbour.sh"

START = "# neighbour: start"
KILL = "# neighbour: kill"


class Neighbour:
    """The second VM, which runs SCRIPT. The test starts and kills it by lines of its output.

    `faults` has the faults that its kernel reported. `failures` has a line if it ended by itself.
    """

    def __init__(self, tree, directory, wire_directory):
        self.faults = []
        self.failures = []
        self._tree = tree
        self._command = [f"{SELFTESTS}/{directory}/{SCRIPT}"]
        self._wire = machine.Wire(wire_directory, "neighbour")
        self._stop = None
        self._thread = None

    def see(self, line):
        """Handle a line that the test printed."""
        if line == START:
            self.kill()
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=[self._stop])
            self._thread.start()
        elif line == KILL:
            self.kill()

    def kill(self):
        """Kill the VM if it is running."""
        if self._thread:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _run(self, stop):
        watch = report.Watch()
        output = []
        settings = machine.Settings(self._command, timeout=0, wire=self._wire)
        status = launch.launch(self._tree, settings, stdout=output.append, watch=watch, stop=stop)
        self.faults += watch.faults
        if status is not None:
            said = b"".join(output).decode("utf-8", "replace").strip()
            self.failures.append(f"the second VM ended by itself with status {status}: {said}")

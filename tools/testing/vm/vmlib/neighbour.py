# SPDX-License-Identifier: GPL-2.0
"""A second VM, on the wire of one that runs a test, which starts and kills it."""

import threading

from . import launch, machine, report

# Beside the test, whose directory is below this one.
SELFTESTS = "/opt/rnvmf/selftests"
SCRIPT = "neighbour.sh"

START = "# neighbour: start"
KILL = "# neighbour: kill"


class Neighbour:
    """The second VM: it runs SCRIPT and does what the test says in lines of its output. Leaves the
    faults that its kernel reports in `places`, and why it ended by itself in `failures`."""

    def __init__(self, tree, directory, wire_directory):
        self.places = []
        self.failures = []
        self._tree = tree
        self._command = [f"{SELFTESTS}/{directory}/{SCRIPT}"]
        self._wire = machine.Wire(wire_directory, "neighbour")
        self._stop = None
        self._thread = None

    def see(self, line):
        """Take one line that the test printed."""
        if line == START:
            self.kill()
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=[self._stop])
            self._thread.start()
        elif line == KILL:
            self.kill()

    def kill(self):
        """Take its power, if it has any."""
        if self._thread:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _run(self, stop):
        watch = report.Watch()
        output = []
        settings = machine.Settings(self._command, timeout=0, wire=self._wire)
        status = launch.launch(self._tree, settings, stdout=output.append, watch=watch, stop=stop)
        self.places += watch.places
        if status is not None:
            said = b"".join(output).decode("utf-8", "replace").strip()
            self.failures.append(f"the neighbour ended with status {status}: {said}")

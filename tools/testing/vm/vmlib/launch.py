# SPDX-License-Identifier: GPL-2.0
"""Run a VM, and watch it until it ends."""

import contextlib
import itertools
import os
import selectors
import subprocess
import sys
import termios
import threading
import time

from . import build, machine, report
from .log import note

# Exit statuses of the launcher. Otherwise it returns the status of COMMAND.
KERNEL_REPORT = 123
TIMED_OUT = 124
FAILED = 125

# Time limit from the start of the VM to that of COMMAND, for a stock kernel. A boot takes seconds,
# but longer on a loaded machine.
BOOT_SECONDS = 180
# CPUs that a boot starts within this limit. More take longer, one after the other.
BOOT_CPUS = 8
# Time limit for the rest of the console output after COMMAND has ended.
CONSOLE_SECONDS = 5
# Number of console lines that are shown on a failure.
TAIL_LINES = 30
# Number of files to keep in build/console.
KEPT_CONSOLES = 20

# Numbers for console files: runs of this process may begin in the same second.
_NUMBERS = itertools.count(1)

PORTS = ("console", "status", "stdout", "stderr")
END_OF_RUN = "rnvmf-vm: end of run"


class Run:
    """The state of a run, updated with the data from the VM's ports."""

    def __init__(self, settings, boot_seconds, console, stdout, watch):
        self.began = time.monotonic()
        self.limit = self.began + boot_seconds
        self.started = False
        self.status = None
        self.timed_out = False
        self.watch = watch
        self.tail = []
        self._settings = settings
        self._boot_seconds = boot_seconds
        self._console_file = console
        self._sinks = {"stdout": stdout, "stderr": _to(sys.stderr)}
        self._partial = {"console": b"", "status": b""}
        self._console_complete = False

    def take(self, port, data):
        """Handle data from a port."""
        if port in self._sinks:
            self._sinks[port](data)
            return
        if port == "console":
            self._console_file.write(data)
            self._console_file.flush()
        *lines, self._partial[port] = (self._partial[port] + data).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if port == "console":
                self._console(text)
            else:
                self._status(text)

    def _console(self, line):
        self.tail = [*self.tail[1 - TAIL_LINES:], line]
        self.watch.see(line)
        if END_OF_RUN in line:
            self._console_complete = True

    def _status(self, line):
        word, _, value = line.partition(" ")
        now = time.monotonic()
        if word == "start":
            self.started = True
            self.limit = now + self._settings.timeout if self._settings.timeout else None
            note(f"vm: booted in {now - self.began:.1f} s")
        elif word == "exit":
            self.status = int(value)
            self.limit = now + CONSOLE_SECONDS

    def over(self):
        """Return whether the run has ended or timed out."""
        if self.status is not None and self._console_complete:
            return True
        if self.limit is None or time.monotonic() < self.limit:
            return False
        self.timed_out = self.status is None
        return True

    def conclude(self):
        """Print faults and time-outs, and return the exit status."""
        faults = self.watch.faults
        if faults:
            note(f"vm: the kernel reported {len(faults)} fault(s):")
            for fault in faults:
                _show(fault.lines)
        if self.timed_out:
            what = f"COMMAND timed out after {self._settings.timeout} s" if self.started else \
                f"boot timed out after {self._boot_seconds} s"
            note(f"vm: {what}: killed the VM; last lines of the console:")
            _show(self.tail)
        elif self.status is None and not self.tail:
            note("vm: the emulator did not start the VM: its own message is above")
            return FAILED
        elif self.status is None:
            note("vm: the VM ended before COMMAND did; last lines of the console:")
            _show(self.tail)
        if faults or self.timed_out or self.status is None:
            note(f"vm: complete console: {self._console_file.name}")
        if faults:
            return KERNEL_REPORT
        if self.timed_out:
            return TIMED_OUT if self.started else FAILED
        return FAILED if self.status is None else self.status


def _to(stream):
    """Return a function that writes bytes to a stream and flushes it."""
    def write(data):
        stream.buffer.write(data)
        stream.buffer.flush()
    return write


def _show(lines):
    for line in lines:
        note(f"  | {line}")


def _console_path():
    """Return the path of a new console file; delete all but the newest KEPT_CONSOLES."""
    directory = build.BUILD / "console"
    directory.mkdir(parents=True, exist_ok=True)
    for path in sorted(directory.iterdir())[:1 - KEPT_CONSOLES]:
        path.unlink(missing_ok=True)
    now = time.strftime("%Y%m%d-%H%M%S")
    return directory / f"{now}-{os.getpid()}-{next(_NUMBERS)}.log"


@contextlib.contextmanager
def _terminal():
    """Restore the settings of the terminal, because a killed emulator leaves it in raw mode."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _memory_file(data):
    """Return the descriptor of an unnamed file, which the emulator opens as /dev/fd/N."""
    descriptor = os.memfd_create("initramfs")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    return descriptor


def _start(tree, settings):
    """Start the emulator; return its process, and descriptors to read the ports from."""
    initramfs = _memory_file(machine.initramfs(tree, settings))
    ends = {name: os.pipe() for name in PORTS}
    writing = {name: end[1] for name, end in ends.items()}
    process = subprocess.Popen(
        machine.command(tree, settings, initramfs, writing),
        stdin=None if settings.interactive else subprocess.DEVNULL,
        stdout=None if settings.interactive else subprocess.DEVNULL,
        pass_fds=(initramfs, *writing.values(),
                  *([] if settings.input is None else [settings.input])))
    for descriptor in (initramfs, *writing.values()):
        os.close(descriptor)
    return process, {name: end[0] for name, end in ends.items()}


def _watch(process, ports, run, stop):
    """Pass data from the ports to `run` until the VM ends; kill it if `run` is over or stopped."""
    with selectors.DefaultSelector() as selector:
        for name, descriptor in ports.items():
            selector.register(descriptor, selectors.EVENT_READ, name)
        while selector.get_map():
            if process.poll() is None and (run.over() or stop.is_set()):
                process.kill()
            for key, _ in selector.select(timeout=0.2):
                data = os.read(key.fd, 65536)
                if data:
                    run.take(key.data, data)
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)


def launch(tree, settings, stdout=None, watch=None, stop=None):
    """Run COMMAND in a fresh VM and return the exit status, or None if it was stopped.

    `stdout` is called with the output of COMMAND, as bytes; without it, the output is written to
    our stdout. `watch` gets each line of the console. When the event `stop` is set, the VM is
    killed, which is like a power failure.
    """
    stop = stop or threading.Event()
    with _terminal(), open(settings.console or _console_path(), "wb") as console:
        process, ports = _start(tree, settings)
        boot_seconds = BOOT_SECONDS * tree.slowdown * max(1, settings.cpus / BOOT_CPUS)
        run = Run(settings, boot_seconds, console, stdout or _to(sys.stdout),
                  watch or report.Watch())
        try:
            _watch(process, ports, run, stop)
        finally:
            process.kill()
            process.wait()
        return None if stop.is_set() else run.conclude()

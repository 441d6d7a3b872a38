# SPDX-License-Identifier: GPL-2.0
"""Reads the counts of the QEMU plugin: instructions by module and function, and calls.

The files of a benchmark are in one directory:

profile.N: counts between mark N - 1 and mark N
marks: for each mark a line with its label and the VM's time in nanoseconds
kallsyms.N: symbols of the VM's kernel, from mark N on if there is an earlier file
"""

import bisect
import collections
import dataclasses
import functools
import re

from vmlib.log import ToolError

USER = 0
# mark.c executes this many instructions in user space between the marks with these labels.
CHECK = ("check-begin", "check-end")
CHECK_INSTRUCTIONS = 1000000
# Upper limit of the instructions before and after the loop.
CHECK_SLACK = 2000

# Kernel functions that take a lock. None of them is inlined.
_LOCK = re.compile(r"_raw_(spin|read|write)_(try)?lock|mutex_(try)?lock|down_(read|write)")


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of the kernel or of a module."""

    name: str
    module: str


class Symbols:
    """Maps addresses to functions."""

    def __init__(self, path):
        found = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                address, kind, name, *module = line.split()
                if kind in "tTwW":
                    found[int(address, 16)] = Function(name, _module(name, module))
        self._starts = sorted(found)
        self._functions = [found[start] for start in self._starts]

    def begins(self, address):
        """Return whether a function starts at the address."""
        index = bisect.bisect(self._starts, address) - 1
        return index >= 0 and self._starts[index] == address

    def at(self, address):
        """Return the function that contains the address."""
        if address == USER:
            return Function("user space", "user")
        index = bisect.bisect(self._starts, address) - 1
        return self._functions[index] if index >= 0 else Function("elsewhere", "other")


def _module(name, module):
    """Return the module of a function. The kernel's functions for Rust count as module `rust`."""
    if module:
        return module[0].strip("[]")
    return "rust" if name.startswith(("rust_helper_", "_R")) else "kernel"


class Profile:
    """Instructions between two marks."""

    def __init__(self, counts, calls, nanoseconds):
        self.counts = counts
        self.calls = calls
        self.nanoseconds = nanoseconds

    def total(self):
        """Return the number of all instructions."""
        return sum(self.counts.values())

    def user(self):
        """Return the number of instructions in user space."""
        return self.modules()["user"]

    def kernel(self):
        """Return the number of instructions in the kernel and its modules."""
        return self.total() - self.user()

    def locks(self):
        """Return the number of calls that take or try a lock of the kernel."""
        return sum(times for function, times in self.calls.items()
                   if function.module == "kernel" and _LOCK.match(function.name))

    def modules(self):
        """Return the number of instructions by module."""
        sums = collections.Counter()
        for function, count in self.counts.items():
            sums[function.module] += count
        return sums


def _read(path):
    with open(path, encoding="utf-8") as file:
        for address, count, times in map(str.split, file):
            yield int(address, 16), int(count), int(times)


def _symbols(directory):
    """Return a function that returns the symbols at a mark."""
    paths = {int(path.suffix[1:]): path for path in directory.glob("kallsyms.*")}
    read = functools.cache(lambda number: Symbols(paths[number]))
    return lambda mark: read(max((number for number in paths if number <= mark),
                                 default=min(paths)))


def profiles(directory):
    """Return the profiles by label. Each covers the time since the previous mark."""
    symbols_at = _symbols(directory)
    found = {}
    then = 0
    for number, line in enumerate((directory / "marks").read_text(encoding="utf-8").splitlines()):
        label, now = line.split()
        symbols = symbols_at(number)
        by_function, calls = collections.Counter(), collections.Counter()
        for address, count, times in _read(directory / f"profile.{number}"):
            by_function[symbols.at(address)] += count
            if symbols.begins(address):
                calls[symbols.at(address)] += times
        found[label] = Profile(by_function, calls, int(now) - then)
        then = int(now)
    _check(found)
    return found


def _check(found):
    """Check the plugin by a loop of known length, and against the clock of the VM."""
    check = found[CHECK[1]]
    loop = check.modules()["user"]
    if not 0 <= loop - CHECK_INSTRUCTIONS <= CHECK_SLACK:
        raise ToolError(f"the plugin counted {loop} instructions, expected {CHECK_INSTRUCTIONS}")
    # An interrupt may occur between the marks; both the plugin and the clock count it.
    if abs(check.total() - check.nanoseconds) > CHECK_SLACK:
        raise ToolError(f"the plugin counted {check.total()} instructions, "
                        f"and the clock {check.nanoseconds}")

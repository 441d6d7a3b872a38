# SPDX-License-Identifier: GPL-2.0
"""What the plugin of the emulator counted: instructions by module and function, and calls.

A bench leaves in one directory: profile.N, what was counted from mark N - 1 to mark N; marks, a
line each mark, a label and the VM's time in nanoseconds; kallsyms, the symbols of the VM's kernel.
"""

import bisect
import collections
import dataclasses
import re

from vmlib.log import ToolError

USER = 0
# What mark.c executes between the marks of these labels, in user space.
CHECK = ("check-begin", "check-end")
CHECK_INSTRUCTIONS = 1000000
# Beside the loop there is the way into and out of it.
CHECK_SLACK = 2000

# Functions of the kernel that take a lock: none of them is a part of its caller.
_LOCK = re.compile(r"_raw_(spin|read|write)_(try)?lock|mutex_(try)?lock|down_(read|write)")


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of the kernel or of a module of it."""

    name: str
    module: str


class Symbols:
    """Which function an address is in."""

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
        """Whether a function begins there."""
        index = bisect.bisect(self._starts, address) - 1
        return index >= 0 and self._starts[index] == address

    def at(self, address):
        """The function there."""
        if address == USER:
            return Function("user space", "user")
        index = bisect.bisect(self._starts, address) - 1
        return self._functions[index] if index >= 0 else Function("elsewhere", "other")


def _module(name, module):
    """Where a function belongs; what the kernel has for Rust only is a module in this."""
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
        """All of them."""
        return sum(self.counts.values())

    def user(self):
        """Those of programs."""
        return self.modules()["user"]

    def kernel(self):
        """Those of the kernel and its modules."""
        return self.total() - self.user()

    def locks(self):
        """Locks of the kernel that were taken or tried, of whatever kind."""
        return sum(times for function, times in self.calls.items()
                   if function.module == "kernel" and _LOCK.match(function.name))

    def modules(self):
        """By module."""
        sums = collections.Counter()
        for function, count in self.counts.items():
            sums[function.module] += count
        return sums


def _read(path):
    with open(path, encoding="utf-8") as file:
        for address, count, times in map(str.split, file):
            yield int(address, 16), int(count), int(times)


def profiles(directory):
    """By label: what was executed since the mark before."""
    symbols = Symbols(directory / "kallsyms")
    found = {}
    then = 0
    for number, line in enumerate((directory / "marks").read_text(encoding="utf-8").splitlines()):
        label, now = line.split()
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
    """The plugin must have counted a loop of known length, and as much as the clock did."""
    check = found[CHECK[1]]
    loop = check.modules()["user"]
    if not 0 <= loop - CHECK_INSTRUCTIONS <= CHECK_SLACK:
        raise ToolError(f"the plugin counted {loop} instructions of {CHECK_INSTRUCTIONS}")
    # An interrupt may come meanwhile, which both count.
    if abs(check.total() - check.nanoseconds) > CHECK_SLACK:
        raise ToolError(f"the plugin counted {check.total()} instructions, "
                        f"and the clock {check.nanoseconds}")

# SPDX-License-Identifier: GPL-2.0
"""Injects allocation failures: the kernel's FAILSLAB and FAIL_PAGE_ALLOC."""

import bisect
import contextlib
import pathlib
import re

DEBUGFS = pathlib.Path("/sys/kernel/debug")
SLABS = pathlib.Path("/sys/kernel/slab")
PAGE = 4096


class Symbols:
    """Address ranges of functions of the kernel and of a module, also after it is loaded again."""

    def __init__(self, module):
        self.module = module
        self.loaded_at = self._text()
        self.addresses, self.kernel, self.ours = [], {}, {}
        with open("/proc/kallsyms", encoding="ascii") as table:
            for line in table:
                address, kind, name, *of = line.split()
                if kind not in "Tt":
                    continue
                place = int(address, 16)
                self.addresses.append(place)
                if not of:
                    self.kernel[name] = place
                elif of[0] == f"[{module}]":
                    self.ours[name] = place
        self.addresses.sort()

    def _text(self):
        path = pathlib.Path(f"/sys/module/{self.module}/sections/.text")
        return int(path.read_text(encoding="ascii"), 16)

    def _to_next(self, place):
        return place, self.addresses[bisect.bisect_right(self.addresses, place)]

    def function(self, name):
        """Return the address range of a function of the kernel."""
        return self._to_next(self.kernel[name])

    def of_module(self, pattern=None):
        """Return the range of the module's function that matches; by default of all its code."""
        moved = self._text() - self.loaded_at
        if pattern is None:
            first, last = min(self.ours.values()), max(self.ours.values())
            place = first, last // PAGE * PAGE + PAGE
        else:
            [found] = [where for name, where in self.ours.items() if re.search(pattern, name)]
            place = self._to_next(found)
        return place[0] + moved, place[1] + moved


class Fault:
    """One kind of fault injection: fails the nth allocation from now on, once.

    The kernel counts allocations only while a failure is pending (`times` is not 0).
    """

    def __init__(self, kind):
        self.kind = kind
        self.path = DEBUGFS / kind
        # Allocations that the kernel has counted. It fails the one whose number is a multiple of
        # `interval`. So after a failure the count is a multiple of the interval left behind.
        self.counted = None

    def is_there(self):
        """Return whether the kernel supports this fault."""
        return (self.path / "require-start").exists()

    def set(self, **values):
        """Write settings to debugfs. A `_` in a keyword is the `-` of a file name."""
        for name, value in values.items():
            (self.path / name.replace("_", "-")).write_text(str(value), encoding="ascii")

    def within(self, place):
        """Fail only allocations with a caller in this address range."""
        self.set(require_start=hex(place[0]), require_end=hex(place[1]))

    def but_for(self, place):
        """Fail no allocation with a caller in this address range."""
        self.set(reject_start=hex(place[0]), reject_end=hex(place[1]))

    def next(self, nth):
        """Fail the nth allocation from now on."""
        if self.counted is None:
            interval = int(self._read("interval"))
            self.counted = interval if interval > 1 else 0
        interval = self.counted + nth
        self.set(interval=interval, times=1)
        # With an interval of 1 the kernel does not count.
        if interval > 1:
            self.counted = interval

    def has_come(self):
        """Return whether the pending failure has happened."""
        return self._read("times") == "0"

    def _read(self, name):
        return (self.path / name).read_text(encoding="ascii").strip()

    @contextlib.contextmanager
    def always(self):
        """Context in which each allocation fails; the kernel does not count them."""
        interval = self._read("interval")
        self.set(interval=1, times=-1)
        try:
            yield
        finally:
            self.set(interval=interval, times=0)

    def never(self):
        """Cancel a pending failure.

        `counted` is then too large, and the next failure comes later than requested.
        """
        self.set(times=0)

    @contextlib.contextmanager
    def held_back(self):
        """Context in which no allocation fails or counts; a pending failure remains pending."""
        times = self._read("times")
        self.set(times=0)
        try:
            yield
        finally:
            self.set(times=times)


def slabs_count(number):
    """Enable (1) or disable (0) FAILSLAB for all slab caches.

    Caches of kmemleak and debugobjects are left out: these have more allocations than all others,
    and tolerate their failure.
    """
    for cache in SLABS.iterdir():
        noted = cache.name.startswith("kmemleak_") or cache.name == "debug_objects_cache"
        if not noted and not cache.is_symlink():
            (cache / "failslab").write_text(str(number), encoding="ascii")

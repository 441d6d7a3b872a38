# SPDX-License-Identifier: GPL-2.0
"""Allocations that fail to order: a kernel's FAILSLAB and FAIL_PAGE_ALLOC."""

import bisect
import contextlib
import pathlib
import re

DEBUGFS = pathlib.Path("/sys/kernel/debug")
SLABS = pathlib.Path("/sys/kernel/slab")
PAGE = 4096


class Symbols:
    """Where functions are: of the kernel, and of a module, wherever that is loaded next."""

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
        """From where to where a function of the kernel is."""
        return self._to_next(self.kernel[name])

    def of_module(self, pattern=None):
        """The same of a function of the module, which matches; of all of its code, without one."""
        moved = self._text() - self.loaded_at
        if pattern is None:
            first, last = min(self.ours.values()), max(self.ours.values())
            place = first, last // PAGE * PAGE + PAGE
        else:
            [found] = [where for name, where in self.ours.items() if re.search(pattern, name)]
            place = self._to_next(found)
        return place[0] + moved, place[1] + moved


class Fault:
    """Allocations of a kind, of which the next but so many fails, once. They count while there is
    one that is to fail, and it is not held back."""

    def __init__(self, kind):
        self.kind = kind
        self.path = DEBUGFS / kind
        # The kernel counts them, and fails that whose number is a multiple of the interval. So that
        # is what it has counted when one has failed; and who came before has left it so.
        self.counted = None

    def is_there(self):
        """Whether the kernel has that."""
        return (self.path / "require-start").exists()

    def set(self, **values):
        """Change settings; `_` stands for the `-` of a name."""
        for name, value in values.items():
            (self.path / name.replace("_", "-")).write_text(str(value), encoding="ascii")

    def within(self, place):
        """Only those on behalf of a function that is there."""
        self.set(require_start=hex(place[0]), require_end=hex(place[1]))

    def but_for(self, place):
        """Not those on behalf of a function that is there."""
        self.set(reject_start=hex(place[0]), reject_end=hex(place[1]))

    def next(self, nth):
        """The nth one from now on fails."""
        if self.counted is None:
            interval = int(self._read("interval"))
            self.counted = interval if interval > 1 else 0
        interval = self.counted + nth
        self.set(interval=interval, times=1)
        # Where each would fail it does not count.
        if interval > 1:
            self.counted = interval

    def has_come(self):
        """Whether it has failed."""
        return self._read("times") == "0"

    def _read(self, name):
        return (self.path / name).read_text(encoding="ascii").strip()

    @contextlib.contextmanager
    def always(self):
        """Meanwhile each one fails, which does not count."""
        interval = self._read("interval")
        self.set(interval=1, times=-1)
        try:
            yield
        finally:
            self.set(interval=interval, times=0)

    def never(self):
        """None fails. If one was to, less was counted than is taken to be, until the next one has
        failed, which it does later than it is to."""
        self.set(times=0)

    @contextlib.contextmanager
    def held_back(self):
        """Meanwhile none fails, and none counts."""
        times = self._read("times")
        self.set(times=0)
        try:
            yield
        finally:
            self.set(times=times)


def slabs_count(number):
    """Whether, 1 or 0, what is allocated of the slabs counts. What the kernel notes down about
    allocations does not: it is more than they are, and does without."""
    for cache in SLABS.iterdir():
        noted = cache.name.startswith("kmemleak_") or cache.name == "debug_objects_cache"
        if not noted and not cache.is_symlink():
            (cache / "failslab").write_text(str(number), encoding="ascii")

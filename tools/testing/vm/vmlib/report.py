# SPDX-License-Identifier: GPL-2.0
"""Recognise what the kernel reports about itself on the console."""

import re

# Any of these makes a run fail.
_REPORT = re.compile("|".join([
    r"Kernel panic",
    r"BUG: ",
    r"BUG \S+ \(.*\): ",
    r"kernel BUG at ",
    r"Oops: ",
    r"Oops\b.*\[#\d+\]",
    r"general protection fault",
    r"WARNING: ",
    r"KASAN: ",
    r"UBSAN: ",
    r"KFENCE: ",
    r"INFO: task .* blocked for more than",
    r"INFO: possible (recursive locking|circular locking|irq lock inversion)",
    r"INFO: inconsistent lock state",
    r"INFO: trying to register non-static key",
    r"possible deadlock",
    r"(soft|hard) lockup",
    r"rcu.*(self-)?detected.* stalls?\b",
    r"refcount_t: ",
    r"list_(add|del) corruption",
    r"sleeping function called from invalid context",
    r"scheduling while atomic",
    r"suspicious RCU usage",
    r"kmemleak: \d+ new suspected memory leaks",
    r"kmemleak: .* disabled",
    r"rnvmf-vm: kmemleak does not scan",
    r"rust_kernel: panicked",
    r"Bad page state",
    r"Workqueue .* lockup",
    r"rnvmf-vm: process \d+ .* cannot be killed",
]))

# But for these, which are known and not ours:
_KNOWN = re.compile("|".join([
    # After packets out of order, soft-RoCE ends a read without a status.
    r"WARNING: .*\bat rxe_completer\+",
]))

# A report is shown with the lines that follow it.
FOLLOWING = 40


# Guests say on the console where they are, for a report to have a place.
_PLACE = re.compile(r"rnvmf-vm: at (\S+)$")


class Watch:
    """Collects the reports among console lines, in order, and the places they happened at."""

    def __init__(self):
        self.lines = []
        self.places = []
        self._place = "boot"
        self._more = 0

    def see(self, line):
        """Take one console line."""
        place = _PLACE.search(line)
        if place:
            self._place = place[1]
        if _REPORT.search(line) and not _KNOWN.search(line):
            # One fault is often reported in several lines that match.
            if not self._more or self.places[-1] != self._place:
                self.places.append(self._place)
            self._more = FOLLOWING
        if self._more:
            self._more -= 1
            self.lines.append(line)

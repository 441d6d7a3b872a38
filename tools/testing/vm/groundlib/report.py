# SPDX-License-Identifier: GPL-2.0
"""Recognise what the kernel reports about itself on the console."""

import re

# Any of these makes a run fail.
_REPORT = re.compile("|".join([
    r"Kernel panic",
    r"BUG: ",
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
    r"rust_kernel: panicked at",
    r"rust_kernel: .*panicked",
    r"Bad page state",
    r"Workqueue .* lockup",
    r"rnvme-vm: process \d+ .* cannot be killed",
]))

# A report is shown with the lines that follow it.
FOLLOWING = 40


class Watch:
    """Collects the reports among console lines, in order."""

    def __init__(self):
        self.lines = []
        self.count = 0
        self._more = 0

    def see(self, line):
        """Take one console line."""
        if _REPORT.search(line):
            self.count += 1
            self._more = FOLLOWING
        if self._more:
            self._more -= 1
            self.lines.append(line)

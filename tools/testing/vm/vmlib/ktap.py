# SPDX-License-Identifier: GPL-2.0
"""Count test results in the KTAP output of selftests, and in the output of cargo."""

import collections
import re

_RESULT = re.compile(r"(not )?ok (\d+)\b\s*(?:- )?([^#]*)(?:#\s*(\w+)\s*(.*))?$")
_PLAN = re.compile(r"1\.\.(\d+)(?:\s*#\s*SKIP\s*(.*))?")
_CARGO = re.compile(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
_CARGO_IGNORED = re.compile(r"test (\S+) \.\.\. ignored(?:, (.*))?$")

# Exit status of a selftest that is skipped.
SKIP = 4

# Number of lines that a test printed last, which its failure repeats; and for all failures.
REPEATED = 15
REPEATED_IN_ALL = 40


class Tally:
    """Results of tests: the number that passed, and a text for each failure and each skip.

    The first line of a failure names the test; the others are what it printed last. `took` has the
    duration of each selftest, `cases` that of each case: pairs of seconds and a name.
    """

    def __init__(self):
        self.passed = 0
        self.took = []
        self.cases = []
        self.failures = []
        self.skips = []

    def summary(self):
        """Return the last line of a test run."""
        return f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped"

    def failed(self):
        """Yield a line for each failure, each followed by what the test printed last."""
        left = REPEATED_IN_ALL
        for failure in self.failures:
            what, *printed = failure.splitlines()
            yield f"failed: {what}"
            for line in printed[max(len(printed) - left, 0):]:
                yield f"  | {line}"
                left -= 1

    def add(self, other):
        """Add the results of another tally."""
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips
        self.took += other.took
        self.cases += other.cases

    def cargo(self, what, lines, status):
        """Count the results in the output of `cargo test`; a failed run is at least one failure."""
        before = len(self.failures)
        for line in lines:
            result = _CARGO.match(line)
            ignored = _CARGO_IGNORED.match(line)
            if result:
                self.passed += int(result[1])
                self.failures += [f"{what}: a cargo test"] * int(result[2])
            elif ignored:
                self.skips.append(f"{what}: {ignored[1]}: {ignored[2] or 'no reason given'}")
        if status != 0 and len(self.failures) == before:
            self.failures.append(f"{what}: cargo test ended with status {status}")


class Test:
    """The results of one selftest, collected from its output."""

    def __init__(self, name):
        self.name = name
        self._passed = 0
        self._failures = []
        self._skips = []
        self._planned = None
        # The lines after the last result.
        self._printed = collections.deque(maxlen=REPEATED)

    def see(self, line):
        """Handle a line that the test printed; return the name of the case whose result it is."""
        plan = _PLAN.match(line)
        result = _RESULT.match(line)
        if plan:
            self._planned = int(plan[1])
            if plan[2] is not None and self._planned == 0:
                self._skips.append(f"{self.name}: {plan[2] or 'no reason given'}")
        elif result:
            self._result(*result.groups())
            return f"{self.name}: {result[2]} {result[3].strip()}"
        elif line.strip():
            self._printed.append(line.strip())
        return None

    def _result(self, negation, number, text, directive, reason):
        what = f"{self.name}: {number} {text.strip()}".rstrip()
        if negation:
            self._fail(what)
        elif (directive or "").upper() in ("SKIP", "XFAIL"):
            self._skips.append(f"{what}: {reason or 'no reason given'}")
        else:
            self._passed += 1
        self._printed.clear()

    def _fail(self, what):
        self._failures.append("\n".join([what, *self._printed]))

    def end(self, status, tally):
        """Add the results to a tally. `status` is the exit status; None if the VM ended first."""
        seen = self._passed + len(self._failures) + len(self._skips)
        if status == SKIP and not seen:
            reason = self._printed[-1] if self._printed else "no reason given"
            self._skips.append(f"{self.name}: {reason}")
        elif status == 0 and not seen:
            self._fail(f"{self.name}: reported no result")
        elif status is None:
            self._fail(f"{self.name}: the VM ended while it ran")
        elif status not in (0, SKIP) and not self._failures:
            self._fail(f"{self.name}: ended with status {status}")
        if self._planned is not None and status is not None and 0 < self._planned != seen:
            self._failures.append(f"{self.name}: planned {self._planned} results, reported {seen}")
        tally.passed += self._passed
        tally.failures += self._failures
        tally.skips += self._skips

    def passed(self):
        """Return whether results passed, and none failed; valid after `end`."""
        return bool(self._passed and not self._failures)

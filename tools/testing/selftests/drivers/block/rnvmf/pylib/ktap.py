# SPDX-License-Identifier: GPL-2.0
"""Runs functions as tests and reports the results as KTAP."""

import sys
import traceback

PASS, FAIL, SKIP = 0, 1, 4


class Failure(Exception):
    """Ends a test as failed, with a reason."""


class Skip(Exception):
    """Ends a test as skipped, because the machine lacks something."""


def note(text):
    """Print diagnostic lines."""
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def check(condition, reason):
    """Fail the test unless the condition holds."""
    if not condition:
        raise Failure(reason)


def same(what, wanted, found):
    """Fail the test unless both are equal."""
    check(wanted == found, f"{what} is {found!r}, expected {wanted!r}")


def skip_all(reason):
    """Skip the whole file and exit."""
    print(f"TAP version 13\n1..0 # SKIP {reason}", flush=True)
    sys.exit(SKIP)


def _outcome(test, world):
    """Run a test and return "ok", "not ok", or the SKIP directive."""
    try:
        try:
            test(world)
        finally:
            world.clean_up()
    except Skip as skip:
        return f"# SKIP {skip}"
    except Failure as failure:
        note(failure)
        return "not ok"
    except Exception:  # pylint: disable=broad-exception-caught
        note(traceback.format_exc())
        return "not ok"
    return "ok"


def run(tests, last, world):
    """Run the tests that the file's arguments choose, then `last`; return the exit status.

    The arguments are names of tests to run (none: all), or `-NAME` for tests that do not run. Each
    test gets `world` as its argument; `world.clean_up()` runs after each test.
    """
    arguments = sys.argv[1:]
    without = {word[1:] for word in arguments if word.startswith("-")}
    only = set(arguments) - {f"-{name}" for name in without}
    chosen = [test for test in tests if (not only or test.__name__ in only)
              and test.__name__ not in without] + [last]
    print(f"TAP version 13\n1..{len(chosen)}", flush=True)
    failed = skipped = 0
    for number, test in enumerate(chosen, 1):
        result = _outcome(test, world)
        if result.startswith("#"):
            skipped += 1
            print(f"ok {number} {test.__name__} {result}", flush=True)
            continue
        failed += result != "ok"
        print(f"{result} {number} {test.__name__}", flush=True)
    print(f"# Totals: pass:{len(chosen) - failed - skipped} fail:{failed} xfail:0 xpass:0 "
          f"skip:{skipped} error:0", flush=True)
    return FAIL if failed else PASS

# SPDX-License-Identifier: GPL-2.0
"""Tests as functions, reported as KTAP."""

import sys
import traceback

PASS, FAIL, SKIP = 0, 1, 4


class Failure(Exception):
    """The test failed, for this reason."""


class Skip(Exception):
    """The test needs what this machine has not got, for this reason."""


def note(text):
    """Say something about the test that runs."""
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def check(condition, reason):
    """Fail the test unless the condition holds."""
    if not condition:
        raise Failure(reason)


def same(what, wanted, found):
    """Fail the test unless both are the same."""
    check(wanted == found, f"{what} is {found!r} and not {wanted!r}")


def skip_all(reason):
    """None of the tests can be done here."""
    print(f"TAP version 13\n1..0 # SKIP {reason}", flush=True)
    sys.exit(SKIP)


def _outcome(test, world):
    """What comes of a test: "ok", "not ok", or the directive of one that is skipped."""
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


def run(tests, world, only):
    """Run the tests, or those that `only` names, on the world, which can `clean_up` what a test
    leaves; return the exit status."""
    chosen = [test for test in tests if not only or test.__name__ in only]
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

# SPDX-License-Identifier: GPL-2.0
"""Progress and error messages. They go to stderr, because stdout is for results."""

import contextlib
import sys
import threading
import time

# Seconds between two messages that a step is still running.
STILL_SECONDS = 20


class ToolError(Exception):
    """A failure whose message is printed without a traceback."""


class UsageError(ToolError):
    """A wrong command line."""


def note(text):
    """Print a message to stderr."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(what):
    """Print the start of a long step, its duration, and regularly that it is still running."""
    start = time.monotonic()
    done = threading.Event()

    def remind():
        while not done.wait(STILL_SECONDS):
            note(f"  {what}: still running after {time.monotonic() - start:.0f} s")

    note(f"  {what} ...")
    threading.Thread(target=remind, daemon=True).start()
    try:
        yield
    except BaseException:
        note(f"  {what}: failed after {time.monotonic() - start:.0f} s")
        raise
    finally:
        done.set()
    note(f"  {what}: {time.monotonic() - start:.0f} s")


def main(function):
    """Exit with what `function` returns; print a ToolError as one line."""
    try:
        sys.exit(function())
    except UsageError as error:
        note(f"{sys.argv[0]}: {error}")
        sys.exit(2)
    except ToolError as error:
        note(f"{sys.argv[0]}: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)

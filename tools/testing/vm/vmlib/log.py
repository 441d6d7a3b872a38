# SPDX-License-Identifier: GPL-2.0
"""Messages to the person who waits. All go to stderr: stdout belongs to results."""

import contextlib
import sys
import threading
import time

# A step that lasts longer than this says that it is still at work.
STILL_SECONDS = 20


class ToolError(Exception):
    """A failure with a message for the user; no traceback is wanted."""


class UsageError(ToolError):
    """A mistake in how a program was called."""


def note(text):
    """Print one line for the user."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(what):
    """Announce a long step, say that it goes on, and how long it took."""
    start = time.monotonic()
    done = threading.Event()

    def remind():
        while not done.wait(STILL_SECONDS):
            note(f"  {what}: still at it after {time.monotonic() - start:.0f} s")

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
    """Run a program's main function with errors turned into one line and a status."""
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

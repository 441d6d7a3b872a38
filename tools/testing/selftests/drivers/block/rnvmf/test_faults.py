#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests allocation failures: in a long run each allocation of an operation fails once, in a short
run one in STRIDE. Each failure must be reported and must leak nothing, and the next attempt must
succeed. Needs FAILSLAB, FAIL_PAGE_ALLOC and FAULT_INJECTION_STACKTRACE_FILTER in the kernel."""

import contextlib
import mmap
import os
import pathlib
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

# pylint: disable=wrong-import-position
from pylib import client, faults, fixture, genl, ktap, spec  # noqa: E402
from pylib.ktap import check, same  # noqa: E402

SLOWDOWN = int(os.environ.get("RNVMF_SLOWDOWN", "1"))
LONG = int(os.environ.get("RNVMF_TIMES", "1")) > 1
# Time limit of an operation, in seconds.
SOON = 20 * SLOWDOWN
# Seconds between two events, so that the host does not limit their rate.
QUIET = 1.1
# More repetitions than any case needs.
MANY = 1000
# One in this many allocations fails. Most allocations are in a loop, so a part of them suffices.
STRIDE = 1 if LONG else 7

OBJECTS, PAGES = faults.Fault("failslab"), faults.Fault("fail_page_alloc")
TARGET = pathlib.Path("/sys/kernel/config/nvmet")
BLOCK = pathlib.Path("/sys/block")
LOADED = pathlib.Path("/sys/module/rnvmf")
HOSTID = bytes(range(1, 17))
# Few queues and entries: each entry takes some allocations, each queue some hundred. Reconnect
# attempts follow quickly, and the keep-alive does not expire. ctrl_loss_tmo is off, because the
# time of successive losses adds up.
OPTIONS = {"nr_io_queues": 1 if LONG else 2, "queue_size": 16, "keep_alive_tmo": 60,
           "reconnect_delay": 1, "ctrl_loss_tmo": 0xffffffff,
           "connect_timeout": 5000 * SLOWDOWN}

# Error messages of allocation failures. The name of a disk is an exception: add_disk() does not
# check whether its allocation failed, and device_add() then returns EINVAL (22).
CAUSE = re.compile("out of memory|no memory|disk:.*error -22")
LOSS = re.compile("the target disconnected|stopped by the RDMA device")
CANCELLED = re.compile("the discovery was cancelled")


class World:
    """The set-up, the client and the fault injection that the tests use."""

    def __init__(self, values):
        self.values = values
        self.spec = spec.Spec()
        self.symbols = faults.Symbols("rnvmf")
        self.client = None
        self.subsystem = TARGET / "subsystems" / values["NQN"]
        # The active fault, or None.
        self.fault = None
        self.undo = contextlib.ExitStack()
        for fault in (OBJECTS, PAGES):
            # After a failure blk_mq_alloc_tag_set() cleans up wrongly: a WARNING in
            # cleanup_srcu_struct().
            fault.but_for(self.symbols.function("blk_mq_alloc_tag_set"))
            # Also fail allocations that may sleep.
            fault.set(times=0, ignore_gfp_wait="N", probability=100,
                      verbose=os.environ.get("FAULT_VERBOSE", "0"))
            self.undo.callback(fault.set, probability=0)
        PAGES.set(min_order=0, ignore_gfp_highmem="N")
        faults.slabs_count(1)
        self.undo.callback(faults.slabs_count, 0)
        OBJECTS.set(cache_filter="Y")
        self.undo.callback(OBJECTS.set, cache_filter="N")
        # Most tests need only one namespace.
        self.enable(2, False)
        self.listen()

    def listen(self):
        """Create a new client."""
        self.client = client.Client(self.spec, SOON)
        self.client.refused = self.refused

    def enable(self, nsid, enabled):
        """Enable or disable a namespace of the target."""
        (self.subsystem / f"namespaces/{nsid}/enable").write_text(str(int(enabled)))

    @contextlib.contextmanager
    def second_namespace(self):
        """Context that disables namespace 2 at its end."""
        try:
            yield
        finally:
            self.enable(2, False)

    def within(self, place):
        """Fail only allocations with a caller in this address range."""
        for fault in (OBJECTS, PAGES):
            fault.within(place)

    def refused(self, refusal):
        """Check that a request was refused because of an injected failure."""
        check(client.is_memory(refusal), f"request refused: {refusal}")
        check(self.fault and self.fault.has_come(),
              f"request refused without an injected failure: {refusal}")

    def look_at_errors(self, expected=None):
        """Check that each notified error is due to an injected failure, or expected."""
        self.client.hear()
        for error in self.client.errors:
            if expected and expected.search(error):
                continue
            check(self.fault and self.fault.has_come(),
                  f"error without an injected failure: {error}")
            check(CAUSE.search(error), f"error with another cause: {error}")

    def connect(self):
        """Connect; return the controller's ID, or None after an allocation failure."""
        told = self.client
        told.forget()
        try:
            number = told.do("connect", traddr=self.values["TARGET4"], hostid=HOSTID,
                             subsysnqn=self.values["NQN"], hostnqn=self.values["HOSTNQN"],
                             **OPTIONS)["ctrl-id"]
        except genl.Refusal as refusal:
            self.refused(refusal)
            # If only the reply failed, the kernel removes the controller.
            self.wait_until_gone()
            return None
        told.wait("connected, or not", lambda: self.state(number) in ("live", None))
        self.look_at_errors()
        if self.state(number) == "live":
            return number
        check(told.errors, "the connect failed without an error")
        self.wait_until_gone()
        return None

    def state(self, number):
        """Return the state of a controller, or None."""
        return self.client.controllers.get(number, {}).get("state")

    def disconnect(self, number):
        """Disconnect, and wait until the controller is removed."""
        self.client.insist(self.client.do, "disconnect", ctrl_id=number)
        self.wait_until_gone()

    def wait_until_gone(self):
        """Wait until no controller remains, and check that no disk does."""
        self.client.wait("removal of all controllers", lambda: not self.client.controllers)
        same("list of disks", [], disks())
        same("notified namespaces", {}, self.client.namespaces)
        same("list of controllers", [], self.client.insist(self.client.dump, "ctrl-get"))

    @contextlib.contextmanager
    def connection(self):
        """Context with a connected controller; yields its ID."""
        number = self.connect()
        yield number
        self.disconnect(number)

    def lives_again(self, number, expected=None):
        """Wait until the controller has left the state live and returned, and check its disk."""
        told = self.client
        told.wait("state live again", lambda: self.state(number) == "live" and
                  told.states & {"resetting", "connecting"})
        self.look_at_errors(expected)
        self.is_useful(number)

    def is_useful(self, number):
        """Check that the controller has a disk for namespace 1 that can be read."""
        name = self.client.namespaces[number, 1]["name"]
        disk = os.open(f"/dev/{name}", os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, mmap.PAGESIZE) as memory:
                same("bytes read", len(memory), os.preadv(disk, [memory], 0))
        finally:
            os.close(disk)

    def clean_up(self):
        """Remove all controllers and discoveries that a test left, and check for leaks."""
        for fault in (OBJECTS, PAGES):
            fault.never()
        self.within(self.symbols.of_module())
        for number in self.client.controllers:
            with contextlib.suppress(genl.Refusal):
                self.client.do("disconnect", ctrl_id=number)
        self.wait_until_gone()
        # Closing the socket ends its discovery.
        self.client.close()
        self.listen()
        owned = subprocess.run(["rdma", "resource", "show", "qp"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        check("[rnvmf]" not in owned, f"queue pairs remain: {owned}")

    def close(self):
        """Restore the settings of fault injection."""
        self.client.close()
        self.undo.close()


def disks():
    """Return the names of all disks of rnvmf."""
    names = [path.name for path in BLOCK.iterdir()]
    return [name for name in names if re.fullmatch(r"rnvmf\d+n\d+", name)]


def load():
    """Load the module."""
    subprocess.run(["modprobe", "rnvmf"], check=True)


def unload():
    """Unload the module."""
    subprocess.run(["rmmod", "rnvmf"], check=True)
    check(not LOADED.exists(), "the module is still loaded")


@contextlib.contextmanager
def connects(world):
    """Case: connect and disconnect."""
    def life():
        number = world.connect()
        if number is not None:
            world.is_useful(number)
            world.disconnect(number)
    yield life


@contextlib.contextmanager
def resets(world):
    """Case: reset a connected controller."""
    with world.connection() as number:
        def life():
            world.client.forget()
            world.client.insist(world.client.do, "ctrl-reset", ctrl_id=number)
            world.lives_again(number)
        yield life


@contextlib.contextmanager
def is_lost(world):
    """Case: the target ends the connection, and the host reconnects."""
    most = world.subsystem / "attr_qid_max"
    with world.connection() as number:
        def life():
            world.client.forget()
            # A write to attr_qid_max makes the target delete its controllers.
            most.write_text("2" if most.read_text().strip() == "3" else "3")
            world.lives_again(number, LOSS)
        yield life


@contextlib.contextmanager
def rescans(world):
    """Case: add a namespace, resize another one, remove the first, with a rescan after each.

    The target also sends events, but the host limits their rate.
    """
    told = world.client
    with world.second_namespace(), world.connection() as number, \
            sized_namespace(world, 3) as resize:
        told.wait("namespace 3", lambda: (number, 3) in told.namespaces)

        def look():
            scan = told.insist(told.do, "ctrl-rescan", ctrl_id=number)["scan"]
            told.wait("end of the scan", lambda: told.controllers[number]["scan"] >= scan)

        def life():
            told.forget()
            world.enable(2, True)
            look()
            told.wait("namespace 2", lambda: (number, 2) in told.namespaces)
            size = resize()
            look()
            told.wait("new size", lambda: told.namespaces[number, 3]["size"] == size)
            world.enable(2, False)
            look()
            told.wait("removal of namespace 2", lambda: (number, 2) not in told.namespaces)
            # The notification precedes the removal of the disk; another scan waits for it.
            look()
            same("number of disks", 2, len(disks()))
            world.look_at_errors()
            world.is_useful(number)
        yield life


@contextlib.contextmanager
def is_told(world):
    """Case: the target sends an event for an added or removed namespace."""
    told = world.client
    with world.second_namespace(), world.connection() as number:
        there = False

        def life():
            nonlocal there
            # The host delays events of a target that sends them more often.
            time.sleep(QUIET)
            told.forget()
            there = not there
            world.enable(2, there)
            told.wait("change of namespace 2", lambda: ((number, 2) in told.namespaces) == there)
            world.look_at_errors()
            world.is_useful(number)
        yield life


@contextlib.contextmanager
def sized_namespace(world, nsid):
    """Context with another namespace; yields a function that resizes it and returns the size."""
    made = world.subsystem / f"namespaces/{nsid}"
    backend = pathlib.Path(f"/tmp/rnvmf-faults-{nsid}")
    sizes = [8 << 20, 16 << 20]

    def resize():
        sizes.reverse()
        os.truncate(backend, sizes[0])
        (made / "revalidate_size").write_text("1")
        return sizes[0]

    backend.touch()
    os.truncate(backend, sizes[0])
    made.mkdir()
    try:
        (made / "device_path").write_text(str(backend))
        (made / "enable").write_text("1")
        yield resize
    finally:
        (made / "enable").write_text("0")
        made.rmdir()
        backend.unlink()


@contextlib.contextmanager
def discovers(world):
    """Case: read a discovery log."""
    told = world.client

    def life():
        told.forget()
        try:
            number = told.do("discover", traddr=world.values["TARGET4"], hostid=HOSTID,
                             hostnqn=world.values["HOSTNQN"],
                             connect_timeout=OPTIONS["connect_timeout"])["discovery-id"]
        except genl.Refusal as refusal:
            world.refused(refusal)
            return
        # An entry, so that the client reads the discovery after lost notifications.
        told.discoveries[number] = {}
        told.wait("log or error",
                  lambda: told.discoveries[number].keys() & {"generation", "error"})
        # An earlier discovery whose reply failed may be cancelled only now.
        world.look_at_errors(CANCELLED)
        if "error" not in told.discoveries.pop(number):
            found = told.insist(told.dump, "discover-get", discovery_id=number)
            same("number of entries", 2, len(found))
    yield life


@contextlib.contextmanager
def asks_and_sets(world):
    """Case: all requests that read or set something of a live controller."""
    with world.connection() as number:
        ask, do, dump = world.client.insist, world.client.do, world.client.dump
        queues = [one["qid"] for one in dump("stats-get", ctrl_id=number)]

        def life():
            world.client.forget()
            for delay in (2, 1):
                ask(do, "ctrl-set", ctrl_id=number, reconnect_delay=delay)
                same("reconnect-delay", delay,
                     ask(do, "ctrl-get", ctrl_id=number)["reconnect-delay"])
            same("namespaces", [1], [one["nsid"] for one in ask(dump, "ns-get", ctrl_id=number)])
            same("namespace", 1, ask(do, "ns-get", ctrl_id=number, nsid=1)["nsid"])
            ask(do, "stats-set", ctrl_id=number, latency=1)
            same("latency", 1, ask(do, "stats-get", ctrl_id=number)["latency"])
            ask(do, "stats-set", ctrl_id=number, latency=0)
            same("queues", queues, [one["qid"] for one in ask(dump, "stats-get", ctrl_id=number)])
            world.look_at_errors()
        yield life


@contextlib.contextmanager
def without_the_module(world):
    """Context without the module; loads it at its end."""
    world.client.close()
    unload()
    try:
        yield
    finally:
        load()
        world.listen()


@contextlib.contextmanager
def is_loaded(world):
    """Case: load and unload the module."""
    def life():
        done = subprocess.run(["modprobe", "rnvmf"], check=False, text=True, stderr=subprocess.PIPE)
        same("existence of /sys/module/rnvmf", done.returncode == 0, LOADED.exists())
        if done.returncode == 0:
            unload()
        else:
            check(world.fault.has_come(),
                  f"modprobe failed without an injected failure: {done.stderr}")
            check("Cannot allocate memory" in done.stderr, f"modprobe failed: {done.stderr}")

    with without_the_module(world):
        # The address range of the module is not known in advance.
        world.within(world.symbols.function("do_one_initcall"))
        yield life


@contextlib.contextmanager
def is_unloaded(world):
    """Case: unload the module with a connected controller."""
    def life():
        with world.fault.held_back():
            load()
            world.within(world.symbols.of_module())
            world.listen()
            world.connect()
        unload()
        world.client.close()
        same("list of disks", [], disks())

    with without_the_module(world):
        yield life


def in_turn(world, case, fault, stride=STRIDE):
    """Repeat a case with a failure of allocation 1, 1 + stride, 1 + 2 * stride and so on.

    It ends when the case has fewer allocations. Then it repeats the case until the pending failure
    has happened, because the kernel's count is known only after a failure (see Fault). For the same
    reason the first failure must happen.
    """
    nth, lives, began = 1, 0, time.monotonic()
    with case(world) as life:
        world.fault = fault
        try:
            fault.next(nth)
            while True:
                life()
                lives += 1
                if fault.has_come():
                    nth += stride
                    fault.next(nth)
                elif nth > 1:
                    break
                check(lives < MANY, "no allocation failed")
            while not fault.has_come():
                life()
                lives += 1
        except Exception:
            ktap.note(f"during the failure of allocation {nth}:")
            raise
        finally:
            fault.never()
            world.fault = None
    took = time.monotonic() - began
    ktap.note(f"fewer than {nth} allocations, 1 in {stride} failed; "
              f"{lives} repetitions of {took / lives:.2f} s")


def disconnects_without_memory(world):
    """Without memory controllers can still be listed and disconnected."""
    number = world.connect()
    with OBJECTS.always(), PAGES.always():
        same("controllers", [(number, "live")],
             [(one["ctrl-id"], one["state"]) for one in world.client.dump("ctrl-get")])
        same("namespaces", [1], [one["nsid"] for one in world.client.dump("ns-get")])
        world.client.do("disconnect", ctrl_id=number)
        world.wait_until_gone()


def nobody_waits_in_vain(world):
    """Each notification of a connect fails once; listeners must get ENOBUFS."""
    world.within(world.symbols.of_module("^_RNvM.*10Controller6notify$"))
    in_turn(world, connects, OBJECTS, 1)


def test_of(case, fault):
    """Return the test of a case with failures of this kind."""
    def test(world):
        in_turn(world, case, fault)
    test.__name__ = f"{case.__name__}_while_{'objects' if fault is OBJECTS else 'pages'}_fail"
    return test


CASES = [connects, resets, is_lost, rescans, is_told, discovers, asks_and_sets,
         is_unloaded]
TESTS = [
    disconnects_without_memory,
    nobody_waits_in_vain,
    *(test_of(case, fault) for case in CASES for fault in (OBJECTS, PAGES)),
    # Loading allocates no pages.
    test_of(is_loaded, OBJECTS),
]


def main():
    """Run the tests that the arguments choose."""
    if not (OBJECTS.is_there() and PAGES.is_there()):
        ktap.skip_all("the kernel has no FAILSLAB or FAIL_PAGE_ALLOC with a stack filter")
    base = fixture.Fixture()
    world = World(base.values)
    world.within(world.symbols.of_module())

    def leaves_nothing_behind(_):
        base.close()

    try:
        return ktap.run(TESTS, leaves_nothing_behind, world)
    finally:
        world.close()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Memory is short at each place in turn: each allocation of what a host does fails once in a long
run, of which another one takes a part. Each time that is told, nothing is left behind, and the next
attempt finds things as they were. For a kernel with FAILSLAB, FAIL_PAGE_ALLOC and
FAULT_INJECTION_STACKTRACE_FILTER."""

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
# Longer than anything here takes.
SOON = 20 * SLOWDOWN
# Seconds between two events of a target that is none that always has one.
QUIET = 1.1
# More lives than any case takes.
MANY = 1000
# One of so many fails: most are those of a loop.
STRIDE = 1 if LONG else 7

OBJECTS, PAGES = faults.Fault("failslab"), faults.Fault("fail_page_alloc")
TARGET = pathlib.Path("/sys/kernel/config/nvmet")
BLOCK = pathlib.Path("/sys/block")
LOADED = pathlib.Path("/sys/module/rnvmf")
HOSTID = bytes(range(1, 17))
# Each entry of a queue is some allocations more, and each queue some hundred. Attempts after a loss
# are quick, and a keep-alive is not the next thing to fail. Losses that come one after the other
# add up, and there are many: attempts have no end.
OPTIONS = {"nr_io_queues": 1 if LONG else 2, "queue_size": 16, "keep_alive_tmo": 60,
           "reconnect_delay": 1, "ctrl_loss_tmo": 0xffffffff,
           "connect_timeout": 5000 * SLOWDOWN}

# How a failure is told. But for the name of a disk: add_disk does not look whether it could be
# made, and device_add misses it.
CAUSE = re.compile("out of memory|no memory|disk:.*error -22")
LOSS = re.compile("the target disconnected|stopped by the RDMA device")
CANCELLED = re.compile("the discovery was cancelled")


class World:
    """What the tests work on."""

    def __init__(self, values):
        self.values = values
        self.spec = spec.Spec()
        self.symbols = faults.Symbols("rnvmf")
        self.client = None
        self.subsystem = TARGET / "subsystems" / values["NQN"]
        # What fails; none, while nothing does.
        self.fault = None
        self.undo = contextlib.ExitStack()
        for fault in (OBJECTS, PAGES):
            # In blk_mq_alloc_tag_set the kernel itself fails to clean up (a WARNING of
            # cleanup_srcu_struct).
            fault.but_for(self.symbols.function("blk_mq_alloc_tag_set"))
            # Wherever the kernel may sleep.
            fault.set(times=0, ignore_gfp_wait="N", probability=100,
                      verbose=os.environ.get("FAULT_VERBOSE", "0"))
            self.undo.callback(fault.set, probability=0)
        PAGES.set(min_order=0, ignore_gfp_highmem="N")
        faults.slabs_count(1)
        self.undo.callback(faults.slabs_count, 0)
        OBJECTS.set(cache_filter="Y")
        self.undo.callback(OBJECTS.set, cache_filter="N")
        # One disk is enough for most.
        self.enable(2, False)
        self.listen()

    def listen(self):
        """From now on."""
        self.client = client.Client(self.spec, SOON)
        self.client.refused = self.refused

    def enable(self, nsid, enabled):
        """Whether the target has that namespace."""
        (self.subsystem / f"namespaces/{nsid}/enable").write_text(str(int(enabled)))

    @contextlib.contextmanager
    def second_namespace(self):
        """It comes and goes, and is gone in the end."""
        try:
            yield
        finally:
            self.enable(2, False)

    def within(self, place):
        """On whose behalf allocations fail."""
        for fault in (OBJECTS, PAGES):
            fault.within(place)

    def refused(self, refusal):
        """A request was: only where there was no memory for it."""
        check(client.is_memory(refusal), f"refused: {refusal}")
        check(self.fault and self.fault.has_come(), f"refused without cause: {refusal}")

    def look_at_errors(self, expected=None):
        """Those that were told are of what has failed, or expected."""
        self.client.hear()
        for error in self.client.errors:
            if expected and expected.search(error):
                continue
            check(self.fault and self.fault.has_come(), f"failed without cause: {error}")
            check(CAUSE.search(error), f"failed for another reason: {error}")

    def connect(self):
        """Connect; return the controller's number, or None where there was no memory for it."""
        told = self.client
        told.forget()
        try:
            number = told.do("connect", traddr=self.values["TARGET4"], hostid=HOSTID,
                             subsysnqn=self.values["NQN"], hostnqn=self.values["HOSTNQN"],
                             **OPTIONS)["ctrl-id"]
        except genl.Refusal as refusal:
            self.refused(refusal)
            # One that nobody could be told of goes by itself.
            self.wait_until_gone()
            return None
        told.wait("connected, or not", lambda: self.state(number) in ("live", None))
        self.look_at_errors()
        if self.state(number) == "live":
            return number
        check(told.errors, "the connect failed without a cause")
        self.wait_until_gone()
        return None

    def state(self, number):
        """Of a controller that there is."""
        return self.client.controllers.get(number, {}).get("state")

    def disconnect(self, number):
        """Disconnect, and wait until it is gone."""
        self.client.insist(self.client.do, "disconnect", ctrl_id=number)
        self.wait_until_gone()

    def wait_until_gone(self):
        """Nothing is left, of controllers and disks."""
        self.client.wait("gone", lambda: not self.client.controllers)
        same("disks that are left", [], disks())
        same("disks that are told of", {}, self.client.namespaces)
        same("controllers", [], self.client.insist(self.client.dump, "ctrl-get"))

    @contextlib.contextmanager
    def connection(self):
        """While there is a controller; its number."""
        number = self.connect()
        yield number
        self.disconnect(number)

    def lives_again(self, number, expected=None):
        """A controller that was live is, after what it left that state for; and is useful."""
        told = self.client
        told.wait("live again", lambda: self.state(number) == "live" and
                  told.states & {"resetting", "connecting"})
        self.look_at_errors(expected)
        self.is_useful(number)

    def is_useful(self, number):
        """It has the disk that it should have, and that can be read."""
        name = self.client.namespaces[number, 1]["name"]
        disk = os.open(f"/dev/{name}", os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, mmap.PAGESIZE) as memory:
                same("bytes read", len(memory), os.preadv(disk, [memory], 0))
        finally:
            os.close(disk)

    def clean_up(self):
        """Take away what a test has left."""
        for fault in (OBJECTS, PAGES):
            fault.never()
        self.within(self.symbols.of_module())
        for number in self.client.controllers:
            with contextlib.suppress(genl.Refusal):
                self.client.do("disconnect", ctrl_id=number)
        self.wait_until_gone()
        # A discovery goes with the socket.
        self.client.close()
        self.listen()
        owned = subprocess.run(["rdma", "resource", "show", "qp"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        check("[rnvmf]" not in owned, f"queue pairs are left: {owned}")

    def close(self):
        """Undo what was set."""
        self.client.close()
        self.undo.close()


def disks():
    """Those that there are."""
    names = [path.name for path in BLOCK.iterdir()]
    return [name for name in names if re.fullmatch(r"rnvmf\d+n\d+", name)]


def load():
    """Load the module."""
    subprocess.run(["modprobe", "rnvmf"], check=True)


def unload():
    """Unload it, whatever there is."""
    subprocess.run(["rmmod", "rnvmf"], check=True)
    check(not LOADED.exists(), "the module is still there")


@contextlib.contextmanager
def connects(world):
    """A host connects, and disconnects."""
    def life():
        number = world.connect()
        if number is not None:
            world.is_useful(number)
            world.disconnect(number)
    yield life


@contextlib.contextmanager
def resets(world):
    """One that is connected is reset."""
    with world.connection() as number:
        def life():
            world.client.forget()
            world.client.insist(world.client.do, "ctrl-reset", ctrl_id=number)
            world.lives_again(number)
        yield life


@contextlib.contextmanager
def is_lost(world):
    """The target ends the connection, and the host connects again."""
    most = world.subsystem / "attr_qid_max"
    with world.connection() as number:
        def life():
            world.client.forget()
            # The target ends its controllers when this is written.
            most.write_text("2" if most.read_text().strip() == "3" else "3")
            world.lives_again(number, LOSS)
        yield life


@contextlib.contextmanager
def rescans(world):
    """A namespace comes, another one gets another size, and the first one goes, each of which is
    looked for. What the target tells of them is heard at times, as it tells so often."""
    told = world.client
    with world.second_namespace(), world.connection() as number, \
            sized_namespace(world, 3) as resize:
        told.wait("the namespace", lambda: (number, 3) in told.namespaces)

        def look():
            scan = told.insist(told.do, "ctrl-rescan", ctrl_id=number)["scan"]
            told.wait("looked", lambda: told.controllers[number]["scan"] >= scan)

        def life():
            told.forget()
            world.enable(2, True)
            look()
            told.wait("a new namespace", lambda: (number, 2) in told.namespaces)
            size = resize()
            look()
            told.wait("the size", lambda: told.namespaces[number, 3]["size"] == size)
            world.enable(2, False)
            look()
            told.wait("one less", lambda: (number, 2) not in told.namespaces)
            # It is told while the disk goes.
            look()
            same("disks", 2, len(disks()))
            world.look_at_errors()
            world.is_useful(number)
        yield life


@contextlib.contextmanager
def is_told(world):
    """The target tells of a namespace that comes, or goes."""
    told = world.client
    with world.second_namespace(), world.connection() as number:
        there = False

        def life():
            nonlocal there
            # A target that tells more often is listened to less often.
            time.sleep(QUIET)
            told.forget()
            there = not there
            world.enable(2, there)
            told.wait("a change", lambda: ((number, 2) in told.namespaces) == there)
            world.look_at_errors()
            world.is_useful(number)
        yield life


@contextlib.contextmanager
def sized_namespace(world, nsid):
    """The target has another namespace, of a size that can be changed, to what is returned."""
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
    """A host reads the log of a discovery controller."""
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
        # Should all that is told of it be missed, it is looked at.
        told.discoveries[number] = {}
        told.wait("the log, or not",
                  lambda: told.discoveries[number].keys() & {"generation", "error"})
        # One that nobody could be told of may be over only now.
        world.look_at_errors(CANCELLED)
        if "error" not in told.discoveries.pop(number):
            found = told.insist(told.dump, "discover-get", discovery_id=number)
            same("entries", 2, len(found))
    yield life


@contextlib.contextmanager
def asks_and_sets(world):
    """What can be asked of a controller that is live is asked, and what can be set is."""
    with world.connection() as number:
        ask, do, dump = world.client.insist, world.client.do, world.client.dump
        queues = [one["qid"] for one in dump("stats-get", ctrl_id=number)]

        def life():
            world.client.forget()
            for delay in (2, 1):
                ask(do, "ctrl-set", ctrl_id=number, reconnect_delay=delay)
                same("pause", delay, ask(do, "ctrl-get", ctrl_id=number)["reconnect-delay"])
            same("namespaces", [1], [one["nsid"] for one in ask(dump, "ns-get", ctrl_id=number)])
            same("namespace", 1, ask(do, "ns-get", ctrl_id=number, nsid=1)["nsid"])
            ask(do, "stats-set", ctrl_id=number, latency=1)
            same("measured", 1, ask(do, "stats-get", ctrl_id=number)["latency"])
            ask(do, "stats-set", ctrl_id=number, latency=0)
            same("queues", queues, [one["qid"] for one in ask(dump, "stats-get", ctrl_id=number)])
            world.look_at_errors()
        yield life


@contextlib.contextmanager
def without_the_module(world):
    """It is not there at first."""
    world.client.close()
    unload()
    try:
        yield
    finally:
        load()
        world.listen()


@contextlib.contextmanager
def is_loaded(world):
    """The module is loaded, and unloaded."""
    def life():
        done = subprocess.run(["modprobe", "rnvmf"], check=False, text=True, stderr=subprocess.PIPE)
        same("loaded", done.returncode == 0, LOADED.exists())
        if done.returncode == 0:
            unload()
        else:
            check(world.fault.has_come(), f"not loaded without cause: {done.stderr}")
            check("Cannot allocate memory" in done.stderr, f"not loaded: {done.stderr}")

    with without_the_module(world):
        # Where it is loaded is not known before.
        world.within(world.symbols.function("do_one_initcall"))
        yield life


@contextlib.contextmanager
def is_unloaded(world):
    """The module is unloaded while there is a controller, which goes."""
    def life():
        with world.fault.held_back():
            load()
            world.within(world.symbols.of_module())
            world.listen()
            world.connect()
        unload()
        world.client.close()
        same("disks that are left", [], disks())

    with without_the_module(world):
        yield life


def in_turn(world, case, fault, stride=STRIDE):
    """In one life after the other one allocation fails, by the stride, until one gets by with none;
    and then until the failure that is outstanding has come, so that it is known how many were
    counted. For the same reason the first one has to come."""
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
                check(lives < MANY, "no allocation fails")
            while not fault.has_come():
                life()
                lives += 1
        except Exception:
            ktap.note(f"when allocation {nth} failed, or was to:")
            raise
        finally:
            fault.never()
            world.fault = None
    took = time.monotonic() - began
    ktap.note(f"one of {stride} failed, of less than {nth} allocations; "
              f"{lives} times, {took / lives:.2f} s each")


def disconnects_without_memory(world):
    """Whoever has no memory left can still see what there is, and be rid of it."""
    number = world.connect()
    with OBJECTS.always(), PAGES.always():
        same("controllers", [(number, "live")],
             [(one["ctrl-id"], one["state"]) for one in world.client.dump("ctrl-get")])
        same("namespaces", [1], [one["nsid"] for one in world.client.dump("ns-get")])
        world.client.do("disconnect", ctrl_id=number)
        world.wait_until_gone()


def nobody_waits_in_vain(world):
    """Each event of a life fails to be told, and whoever waits for it is told that."""
    world.within(world.symbols.of_module("4Host4tell$"))
    in_turn(world, connects, OBJECTS, 1)


def test_of(case, fault):
    """The test in which allocations of this kind fail."""
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
    # No pages are allocated for that.
    test_of(is_loaded, OBJECTS),
]


def main():
    """Run all tests, or those that the arguments name."""
    if not (OBJECTS.is_there() and PAGES.is_there()):
        ktap.skip_all("the kernel cannot be made to fail allocations")
    base = fixture.Fixture()
    world = World(base.values)
    world.within(world.symbols.of_module())

    def leaves_nothing_behind(_):
        base.close()

    only = sys.argv[1:] and {*sys.argv[1:], "leaves_nothing_behind"}
    try:
        return ktap.run([*TESTS, leaves_nothing_behind], world, only)
    finally:
        world.close()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests the netlink interface with concurrent clients, and with clients in other namespaces."""

import collections
import contextlib
import errno
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

# pylint: disable=wrong-import-position
from pylib import genl, ktap, spec  # noqa: E402
from pylib.ktap import check, same  # noqa: E402
from test_netlink import HOSTID, SOON, Dumps, main  # noqa: E402

# The module's limit.
MOST_CONTROLLERS = 256
# Port ID of a netlink socket, different from all PIDs.
PORT = 0x70000001
# Seconds between two requests, so that other threads run.
PAUSE = 0.005
# Number of unloads during requests, and number of processes that send these.
UNLOADS = 5
SETTERS = 4


def body(request, **values):
    """Return the attributes of a request from numbers, strings, bytes, or True for a flag."""
    data = b""
    for name, value in values.items():
        attribute = request.attributes[name.replace("_", "-")]
        if value is True:
            payload = b""
        elif isinstance(value, str):
            payload = value.encode() + b"\0"
        else:
            payload = value if isinstance(value, bytes) else attribute.scalar(value)
        data += genl.attribute(attribute.number, payload)
    return data


def connect_to_nobody(world, socket, index):
    """Start a connect to an unused address; return the controller's ID."""
    request = world.spec.request("connect")
    wish = body(request, traddr=world.values["NOBODY4"], trsvcid=5000 + index,
                subsysnqn=world.values["NQN"], hostnqn=world.values["HOSTNQN"], hostid=HOSTID,
                connect_timeout=600000)
    made = socket.request(request.command, wish).messages[0]
    return ctrl_ids(world, "ctrl", [made])[0]


def ctrl_ids(world, attributes, messages):
    """Return the controller IDs in messages."""
    number = world.spec.sets[attributes]["ctrl-id"].number
    return [struct.unpack("=I", dict(genl.attributes(one))[number])[0] for one in messages]


def waiting(world, count):
    """Start `count` connects to an unused address; return the controllers' IDs."""
    with contextlib.closing(genl.Socket("rnvmf")) as socket:
        return [connect_to_nobody(world, socket, index) for index in range(count)]


def there_are(world):
    """Return the IDs of all controllers."""
    dump = world.spec.request("ctrl-get", "dump")
    return ctrl_ids(world, "ctrl", world.send(dump, b"").messages)


def remove_all(world, numbers):
    """Disconnect controllers, and wait until they are removed."""
    request = world.spec.request("disconnect")
    for number in numbers:
        world.send(request, body(request, ctrl_id=number))
    limit = time.monotonic() + SOON
    while set(there_are(world)) & set(numbers):
        check(time.monotonic() < limit, f"of {numbers} controllers remain: {there_are(world)}")
        time.sleep(0.05)


def elsewhere(flags, function):
    """Run a function in new namespaces, as root of a new user namespace; return its result."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.unshare(flags)
            if flags & os.CLONE_NEWUSER:
                pathlib.Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
                for kind in ("uid", "gid"):
                    pathlib.Path(f"/proc/self/{kind}_map").write_text("0 0 1", encoding="ascii")
            os.write(writing, json.dumps(function()).encode())
            status = 0
        except Exception:  # pylint: disable=broad-exception-caught
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        returned = pipe.read()
    same("status of the process in other namespaces", 0,
         os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return json.loads(returned)


def answers(world, number):
    """Send each request for this controller, and each dump of all objects.

    Returns the number of messages, or the error, by request.
    """
    found = {}
    with contextlib.closing(genl.Socket("rnvmf")) as socket:
        for request in world.spec.requests:
            bodies = {}
            if "ctrl-id" in request.attributes:
                rest = (data for name, data in world.required(request) if name != "ctrl-id")
                bodies[str(request)] = body(request, ctrl_id=number) + b"".join(rest)
            if request.mode == "dump" and not world.required(request):
                bodies[f"{request} of all"] = b""
            for what, data in bodies.items():
                found[what] = answer(socket, request, data)
    return found


def answer(socket, request, data):
    """Send a request; return the number of messages, or the error's name."""
    dump = genl.DUMP if request.mode == "dump" else 0
    try:
        return len(socket.request(request.command, data,
                                  genl.REQUEST | genl.ACK | dump).messages)
    except genl.Refusal as refusal:
        return errno.errorcode[refusal.errno]


# The requests of `answers`, and whether they need privilege.
OF_A_CONTROLLER = {"disconnect (do)": True, "ctrl-get (do)": False, "ns-get (do)": False,
                   "ns-get (dump)": False, "ctrl-reset (do)": True, "ctrl-set (do)": True,
                   "stats-get (do)": False, "stats-get (dump)": False, "stats-set (do)": True,
                   "ctrl-rescan (do)": True}
OF_ALL = ("ctrl-get (dump)", "ns-get (dump)", "stats-get (dump)")


def not_from_another_network_namespace(world):
    """Requests for a controller from another network namespace find none, and change nothing."""
    number = world.connected()
    before = world.ynl.do("ctrl-get", {"ctrl-id": number})
    wanted = {what: "ENOENT" for what in OF_A_CONTROLLER} | {f"{what} of all": 0 for what in OF_ALL}
    same("replies", wanted, elsewhere(os.CLONE_NEWNET, lambda: answers(world, number)))
    same("the controller", before, world.ynl.do("ctrl-get", {"ctrl-id": number}))
    same("state", "live", before["state"])
    world.remove(number)


def not_by_root_of_a_user_namespace(world):
    """Root of a user namespace may only read, also in a network namespace of its own."""
    if not pathlib.Path("/proc/self/ns/user").exists():
        raise ktap.Skip("the kernel has no user namespaces")
    number = world.connected(**{"nr-io-queues": 1})
    before = world.ynl.do("ctrl-get", {"ctrl-id": number})

    def ask():
        found = answers(world, number)
        with contextlib.closing(genl.Socket("rnvmf")) as socket:
            for name in ("connect", "discover"):
                request = world.spec.request(name)
                data = b"".join(data for _, data in world.required(request))
                found[name] = answer(socket, request, data)
        return found

    looks = {"ctrl-get (do)": 1, "ns-get (do)": 1, "ns-get (dump)": 2, "stats-get (do)": 1,
             "stats-get (dump)": 2}
    counts = {"ctrl-get (dump)": 1, "ns-get (dump)": 2, "stats-get (dump)": 2}
    wanted = {what: "EPERM" if admin else looks[what] for what, admin in OF_A_CONTROLLER.items()}
    wanted |= {f"{what} of all": counts[what] for what in OF_ALL}
    wanted |= {"connect": "EPERM", "discover": "EPERM"}
    same("replies in the same network namespace", wanted, elsewhere(os.CLONE_NEWUSER, ask))
    wanted |= {what: "ENOENT" for what in looks} | {f"{what} of all": 0 for what in OF_ALL}
    same("replies in another network namespace", wanted,
         elsewhere(os.CLONE_NEWUSER | os.CLONE_NEWNET, ask))
    same("the controller", before, world.ynl.do("ctrl-get", {"ctrl-id": number}))
    world.remove(number)


def a_discovery_is_not_that_of_the_same_port_elsewhere(world):
    """Sockets in two network namespaces may have the same port ID: a socket sees only its own
    discovery, and closing it ends only that one."""
    discover = world.spec.request("discover")
    wish = body(discover, traddr=world.values["TARGET4"], hostnqn=world.values["HOSTNQN"],
                hostid=HOSTID, persistent=True)
    get = [world.spec.request("discover-get", mode) for mode in ("do", "dump")]
    with contextlib.closing(genl.Socket("rnvmf", PORT)) as ours:
        made = ours.request(discover.command, wish).messages[0]
        number = world.spec.sets["ctrl"]["discovery-id"].number
        number = struct.unpack("=I", dict(genl.attributes(made))[number])[0]
        data = body(get[0], discovery_id=number)
        limit = time.monotonic() + SOON
        # The dump is refused until the log has been read.
        while answer(ours, get[1], data) != 2:
            check(time.monotonic() < limit, f"no log was read: {answer(ours, get[1], data)}")
            time.sleep(0.05)

        def ask():
            with contextlib.closing(genl.Socket("rnvmf", PORT)) as socket:
                return [answer(socket, request, data) for request in get]

        same("replies in another network namespace", ["ENOENT"] * 2,
             elsewhere(os.CLONE_NEWNET, ask))
        same("replies to the first socket", [1, 2],
             [answer(ours, request, data) for request in get])


def resumed_between_deletions(world, name, attributes, numbers):
    """Read a dump in parts, and remove controllers before each part.

    Controllers that remain must be in the dump once. Those removed before their part was made must
    not be in it. The dump must be marked as interrupted. Returns the remaining controllers.
    """
    request = world.spec.request(name, "dump")
    dumps, reply, left, parts = Dumps("rnvmf"), genl.Reply(), list(numbers), 0
    with contextlib.closing(dumps):
        dumps.begin(request, b"")
        while not dumps.part(reply):
            parts += 1
            found = ctrl_ids(world, attributes, reply.messages)
            # Remove the last controller of this part, and the last of all, which is in no part yet.
            # The kernel has already made the next part, but not the one after it.
            if parts == 1:
                last = left[-1]
                same(f"{name}: last controller in the first part", False, last in found)
            gone = {found[-1], left[-1]} & set(left)
            remove_all(world, gone)
            left = [number for number in left if number not in gone]
    check(parts > 2, f"{name}: only {parts} parts, so none was made after a removal")
    check(reply.interrupted,
          f"{name}: controllers were removed, but the dump is not marked as interrupted")
    found = ctrl_ids(world, attributes, reply.messages)
    same(f"{name}: set of remaining controllers not found", set(), set(left) - set(found))
    same(f"{name}: removed controller found", False, last in found)
    same(f"{name}: order", sorted(found), found)
    if attributes == "ctrl":
        same(f"{name}: number of messages", len(set(found)), len(found))
    # A dump without changes.
    with contextlib.closing(Dumps("rnvmf")) as dumps:
        whole = ctrl_ids(world, attributes, dumps.dump(request, b""))
    same(f"{name}: list of controllers", left, list(dict.fromkeys(whole)))
    return left


def dumps_are_resumed_between_deletions(world):
    """Dumps of controllers and of queue statistics."""
    left = resumed_between_deletions(world, "ctrl-get", "ctrl", waiting(world, 64))
    remove_all(world, left)
    queues = {"nr-io-queues": 2, "nr-write-queues": 2, "nr-poll-queues": 2}
    numbers = [world.connected(**queues, **{"duplicate-connect": True}) for _ in range(16)]
    remove_all(world, resumed_between_deletions(world, "stats-get", "stats", numbers))


def dumps_while_deleting(world):
    """Dumps during the removal of controllers, by another thread."""
    numbers = waiting(world, 48)
    stay, go = set(numbers[::2]), numbers[1::2]
    request = world.spec.request("ctrl-get", "dump")
    rounds = collections.Counter()

    def look(dumps):
        dumps.begin(request, b"")
        reply = dumps.replies()
        found = ctrl_ids(world, "ctrl", reply.messages)
        same("number of different controllers", len(found), len(set(found)))
        # An interrupted dump may lack controllers; it is repeated.
        check(reply.interrupted or stay <= set(found),
              f"the dump lacks {sorted(stay - set(found))}, but is not marked as interrupted")
        rounds[reply.interrupted] += 1

    with Crowd() as crowd:
        crowd.start("a dump", look, Dumps("rnvmf"))
        remove_all(world, go)
        # A dump without interruption follows.
        seen = rounds[False]
        crowd.wait(lambda: rounds[False] > seen, "no dump without interruption")
    same("set of remaining controllers", stay, set(there_are(world)))
    remove_all(world, stay)


class Crowd:
    """Context with threads that repeat some work until the context ends."""

    def __init__(self):
        self.over = threading.Event()
        self.problems = []
        self.threads = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(SOON)
        # An earlier exception takes precedence.
        if kind is None:
            check(not any(one.is_alive() for one in self.threads), "a request did not end")
            same("list of errors", [], self.problems)

    def start(self, what, work, own, pause=PAUSE):
        """Start a thread that calls `work(own)` until that returns False or the context ends."""
        def loop():
            try:
                with contextlib.closing(own):
                    while work(own) is not False and not self.over.wait(pause):
                        pass
            except Exception as problem:  # pylint: disable=broad-exception-caught
                self.problems.append(f"{what}: {problem!r}")

        self.threads.append(threading.Thread(target=loop, daemon=True))
        self.threads[-1].start()

    def wait(self, condition, otherwise):
        """Wait until `condition()` is true; fail if a thread fails, or after SOON seconds."""
        limit = time.monotonic() + SOON
        while not condition() and not self.problems:
            check(time.monotonic() < limit, otherwise() if callable(otherwise) else otherwise)
            time.sleep(0.05)
        same("list of errors", [], self.problems)


# Requests that may be refused with EBUSY during continuous resets, and their messages.
NOT_LIVE = re.compile("the controller is (connecting|resetting); "
                      "(only a live controller can be reset|"
                      "it scans its namespaces when it connects)")
BUSY = {"ctrl-reset (do)": NOT_LIVE, "ctrl-rescan (do)": NOT_LIVE,
        "discover (do)": re.compile("too many discoveries")}
# Seconds between two requests of these kinds, so that each can complete.
PAUSES = {"ctrl-reset (do)": 0.1, "discover (do)": 0.2}


class Client:
    """Repeats one kind of request, and checks how it is refused."""

    def __init__(self, request, data, taken, leaving):
        self.socket = genl.Socket("rnvmf")
        self.request = request
        self.data = data
        self.taken = taken
        self.leaving = leaving

    def close(self):
        """Close the socket."""
        self.socket.close()

    def ask(self):
        """Send the request once; return whether to continue."""
        try:
            dump = genl.DUMP if self.request.mode == "dump" else 0
            self.socket.request(self.request.command, next(self.data),
                                genl.REQUEST | genl.ACK | dump)
            self.taken[str(self.request)] += 1
            return True
        except genl.Refusal as refusal:
            busy = BUSY.get(str(self.request))
            if refusal.errno == errno.EBUSY and busy and busy.fullmatch(refusal.message):
                self.taken[f"{self.request} refused"] += 1
                return True
            if self.leaving.is_set() and is_of_one_that_leaves(refusal):
                return refusal.message != "no such controller"
            raise


def is_of_one_that_leaves(refusal):
    """Return whether a refusal means that the controller is being removed, or is removed."""
    if refusal.errno == errno.ENOENT:
        return refusal.message in ("no such controller", "no such namespace")
    return refusal.errno == errno.EBUSY and "the controller is deleting" in refusal.message


def cycle(request, *bodies):
    """Yield bodies of a request in endless rotation."""
    while True:
        for one in bodies:
            yield body(request, **one)


def ask_all(world, number, crowd, taken, leaving):
    """Start a client for each kind of request for a controller; return the kinds."""
    ours = {"ctrl_id": number}
    discovery = {"traddr": world.values["TARGET4"], "hostnqn": world.values["HOSTNQN"],
                 "hostid": HOSTID}
    wishes = {
        ("ctrl-reset", "do"): [ours],
        ("ctrl-set", "do"): [ours | {"reconnect_delay": delay, "fast_io_fail_tmo": 60 + delay}
                             for delay in range(1, 4)],
        ("ctrl-rescan", "do"): [ours],
        ("ctrl-get", "do"): [ours],
        ("ctrl-get", "dump"): [{}],
        ("ns-get", "do"): [ours | {"nsid": 1}, ours | {"nsid": 2}],
        ("ns-get", "dump"): [ours],
        ("stats-get", "do"): [ours],
        ("stats-get", "dump"): [ours],
        ("stats-set", "do"): [ours | {"latency": 1}, ours | {"latency": 0}],
        ("discover", "do"): [discovery, discovery | {"persistent": True}],
    }
    requests = {world.spec.request(*which): bodies for which, bodies in wishes.items()}
    for request, bodies in requests.items():
        client = Client(request, cycle(request, *bodies), taken, leaving)
        crowd.start(str(request), Client.ask, client, PAUSES.get(str(request), PAUSE))
    return [str(request) for request in requests]


def operations_on_a_live_controller_at_the_same_time(world):
    """All requests for a controller at the same time, with continuous resets.

    Finally the controller must be live, with its last settings and its disks. Then the same during
    a disconnect, which must remove it.
    """
    number = world.connected()
    taken, leaving = collections.Counter(), threading.Event()
    with Crowd() as crowd:
        asked = ask_all(world, number, crowd, taken, leaving)
        crowd.wait(lambda: all(taken[each] >= 5 for each in asked),
                   lambda: f"fewer than 5 requests of a kind: {taken}")
    ktap.note(dict(taken))
    ctrl = world.wait(number, lambda ctrl: ctrl and ctrl["state"] == "live")
    same("settings", 60, ctrl["fast-io-fail-tmo"] - ctrl["reconnect-delay"])
    disks = world.ynl.dump("ns-get", {"ctrl-id": number})
    same("namespaces", [1, 2], [one["nsid"] for one in disks])
    for one in disks:
        with open(f"/dev/{one['name']}", "rb", buffering=0) as disk:
            same(f"bytes read of {one['name']}", 4096, len(disk.read(4096)))
    leave_with_everything_at_once(world, number)


def leave_with_everything_at_once(world, number):
    """Disconnect a controller during all kinds of requests."""
    taken, leaving = collections.Counter(), threading.Event()
    with Crowd() as crowd:
        asked = ask_all(world, number, crowd, taken, leaving)
        crowd.wait(lambda: all(taken[each] for each in asked),
                   lambda: f"no request of a kind: {taken}")
        leaving.set()
        world.ynl.do("disconnect", {"ctrl-id": number})
        world.wait(number, lambda ctrl: ctrl is None)
        # All clients end with ENOENT, but for the two whose requests name no controller.
        crowd.wait(lambda: sum(one.is_alive() for one in crowd.threads) == 2,
                   "clients did not end after the removal of the controller")
    world.no_controllers()


def connects_at_the_same_time(world):
    """Several clients connect, read and disconnect at the same time."""
    rounds = dict.fromkeys(range(4), 0)

    def work(client):
        index = client.index
        made = client.do("connect", {
            "traddr": world.values["NOBODY4"], "trsvcid": 6000 + index,
            "subsysnqn": world.values["NQN"], "hostnqn": world.values["HOSTNQN"],
            "hostid": HOSTID.hex(), "connect-timeout": 600000,
            "duplicate-connect": True})
        client.dump("ctrl-get", {})
        found = client.do("ctrl-get", {"ctrl-id": made["ctrl-id"]})
        same("port", 6000 + index, found["trsvcid"])
        client.dump("ns-get", {})
        client.do("disconnect", {"ctrl-id": made["ctrl-id"]})
        rounds[index] += 1
        return rounds[index] < 10

    with Crowd() as crowd:
        for index in rounds:
            client = spec.ynl_family()
            client.index = index
            crowd.start(f"client {index}", work, client)
        crowd.wait(lambda: sum(rounds.values()) == 40, lambda: f"fewer than 10 rounds: {rounds}")


def controllers_are_limited(world):
    """The number of controllers is limited. A removed or a refused one does not count."""
    numbers = waiting(world, MOST_CONTROLLERS)
    with contextlib.closing(genl.Socket("rnvmf")) as socket:
        for _ in range(2):
            try:
                connect_to_nobody(world, socket, MOST_CONTROLLERS)
            except genl.Refusal as refusal:
                same("one more: error", errno.EBUSY, refusal.errno)
                same("one more: message", "too many controllers", refusal.message)
            else:
                raise ktap.Failure("one controller more than the limit was accepted")
        same("controllers", numbers, there_are(world))
        remove_all(world, numbers[100:101])
        numbers[100:101] = []
        numbers.append(connect_to_nobody(world, socket, MOST_CONTROLLERS))
    same("controllers", numbers, there_are(world))
    remove_all(world, numbers)


def sets_now_and_then(world, number):
    """Start a process that repeats ctrl-set until it is refused; return its PID.

    The process has the policy SCHED_IDLE, so that others can preempt it inside the module.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        with open(reading, "rb") as ready:
            same("start message", b"+", ready.read(1))
        return pid
    try:
        request = world.spec.request("ctrl-set")
        wish = body(request, ctrl_id=number, reconnect_delay=3)
        with contextlib.closing(genl.Socket("rnvmf")) as socket:
            socket.request(request.command, wish)
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            os.write(writing, b"+")
            while True:
                socket.request(request.command, wish)
    except (genl.Refusal, OSError):
        # The controller or the family was removed.
        os._exit(0)
    finally:
        os._exit(1)


def unloads_while_it_is_asked(world, hogs):
    """Unload the module during requests, and load it again."""
    with contextlib.ExitStack() as undo:
        undo.callback(subprocess.run, ["modprobe", "rnvmf"], check=True, timeout=SOON)
        ears = undo.enter_context(contextlib.closing(genl.Socket("rnvmf")))
        ears.subscribe("events")
        [number] = waiting(world, 1)
        setters = [sets_now_and_then(world, number) for _ in range(SETTERS)]
        for hog in hogs:
            hog.send_signal(signal.SIGCONT)
            undo.callback(hog.send_signal, signal.SIGSTOP)
        time.sleep(0.1)
        subprocess.run(["rmmod", "rnvmf"], check=True, timeout=SOON)
    for setter in setters:
        same("status of the process with ctrl-set", 0,
             os.waitstatus_to_exitcode(os.waitpid(setter, 0)[1]))


def is_unloaded_while_it_is_asked(world):
    """A request that is preempted while it sends its notification must not deadlock an unload."""
    with contextlib.ExitStack() as undo:
        undo.callback(world.open)
        hog = ["sh", "-c", "kill -STOP $$; while :; do :; done"]
        hogs = [undo.enter_context(subprocess.Popen(hog)) for _ in range(os.cpu_count())]
        for each in hogs:
            undo.callback(each.kill)
        for _ in range(UNLOADS):
            unloads_while_it_is_asked(world, hogs)


TESTS = [
    not_from_another_network_namespace,
    not_by_root_of_a_user_namespace,
    a_discovery_is_not_that_of_the_same_port_elsewhere,
    dumps_are_resumed_between_deletions,
    dumps_while_deleting,
    connects_at_the_same_time,
    operations_on_a_live_controller_at_the_same_time,
    controllers_are_limited,
    is_unloaded_while_it_is_asked,
]


if __name__ == "__main__":
    sys.exit(main(TESTS))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The netlink interface when there are others: in other namespaces, or at the same time."""

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

# On a kernel that checks itself everything takes so many times longer.
SLOWDOWN = int(os.environ.get("RNVMF_SLOWDOWN", "1"))
# As the kernel has it.
MOST_CONTROLLERS = 256
# The port of a socket, which is not the number of a process.
PORT = 0x70000001
# Between two requests, so that others get the processor.
PAUSE = 0.005
# Times that the module is unloaded while somebody is in it, and processes that are.
UNLOADS = 10
SETTERS = 4


def body(request, **values):
    """The attributes of a request, of numbers, texts, bytes, or True for a flag."""
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
    """Start a connect that no one answers; return its number."""
    request = world.spec.request("connect")
    wish = body(request, traddr=world.values["NOBODY4"], trsvcid=5000 + index,
                subsysnqn=world.values["NQN"], hostnqn=world.values["HOSTNQN"], hostid=HOSTID,
                connect_timeout=120000)
    made = socket.request(request.command, wish).messages[0]
    return ctrl_ids(world, "ctrl", [made])[0]


def ctrl_ids(world, attributes, messages):
    """The controllers that messages are of."""
    number = world.spec.sets[attributes]["ctrl-id"].number
    return [struct.unpack("=I", dict(genl.attributes(one))[number])[0] for one in messages]


def waiting(world, count):
    """Start so many connects that no one answers; return their numbers."""
    with contextlib.closing(genl.Socket("rnvmf")) as socket:
        return [connect_to_nobody(world, socket, index) for index in range(count)]


def there_are(world):
    """The numbers of all controllers."""
    dump = world.spec.request("ctrl-get", "dump")
    return ctrl_ids(world, "ctrl", world.send(dump, b"").messages)


def remove_all(world, numbers):
    """Disconnect, and wait until they are gone."""
    request = world.spec.request("disconnect")
    for number in numbers:
        world.send(request, body(request, ctrl_id=number))
    limit = time.monotonic() + SOON * SLOWDOWN
    while set(there_are(world)) & set(numbers):
        check(time.monotonic() < limit, f"of {numbers} there are still {there_are(world)}")
        time.sleep(0.05)


def elsewhere(flags, function):
    """What a function returns in namespaces of its own, where it is root."""
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
    same("status of who is elsewhere", 0, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return json.loads(returned)


def answers(world, number):
    """What each request that can name a controller, with the number of one, and each dump of all
    comes to: a count of messages, or an error."""
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
    """The count of messages, or the error, that a request comes to."""
    dump = genl.DUMP if request.mode == "dump" else 0
    try:
        return len(socket.request(request.command, data,
                                  genl.REQUEST | genl.ACK | dump).messages)
    except genl.Refusal as refusal:
        return errno.errorcode[refusal.errno]


# The requests of `answers`, and whether they change something.
OF_A_CONTROLLER = {"disconnect (do)": True, "ctrl-get (do)": False, "ns-get (do)": False,
                   "ns-get (dump)": False, "ctrl-reset (do)": True, "ctrl-set (do)": True,
                   "stats-get (do)": False, "stats-get (dump)": False, "stats-set (do)": True,
                   "ctrl-rescan (do)": True}
OF_ALL = ("ctrl-get (dump)", "ns-get (dump)", "stats-get (dump)")


def not_from_another_network_namespace(world):
    """What is asked of a controller elsewhere finds none, whatever it is; and it is as it was."""
    number = world.connected()
    before = world.ynl.do("ctrl-get", {"ctrl-id": number})
    wanted = {what: "ENOENT" for what in OF_A_CONTROLLER} | {f"{what} of all": 0 for what in OF_ALL}
    same("answers", wanted, elsewhere(os.CLONE_NEWNET, lambda: answers(world, number)))
    same("the controller", before, world.ynl.do("ctrl-get", {"ctrl-id": number}))
    same("state", "live", before["state"])
    world.remove(number)


def not_by_root_of_a_user_namespace(world):
    """Who is root among his own may look, and nothing else: not here, nor where he is at home."""
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
    same("answers here", wanted, elsewhere(os.CLONE_NEWUSER, ask))
    wanted |= {what: "ENOENT" for what in looks} | {f"{what} of all": 0 for what in OF_ALL}
    same("answers elsewhere", wanted, elsewhere(os.CLONE_NEWUSER | os.CLONE_NEWNET, ask))
    same("the controller", before, world.ynl.do("ctrl-get", {"ctrl-id": number}))
    world.remove(number)


def a_discovery_is_not_that_of_the_same_port_elsewhere(world):
    """Sockets of two network namespaces may have one port: neither has the other's discovery, nor
    ends it when it is closed."""
    discover = world.spec.request("discover")
    wish = body(discover, traddr=world.values["TARGET4"], hostnqn=world.values["HOSTNQN"],
                hostid=HOSTID, persistent=True)
    get = [world.spec.request("discover-get", mode) for mode in ("do", "dump")]
    with contextlib.closing(genl.Socket("rnvmf", PORT)) as ours:
        made = ours.request(discover.command, wish).messages[0]
        number = world.spec.sets["ctrl"]["discovery-id"].number
        number = struct.unpack("=I", dict(genl.attributes(made))[number])[0]
        data = body(get[0], discovery_id=number)
        limit = time.monotonic() + SOON * SLOWDOWN
        # Until then the dump is refused.
        while answer(ours, get[1], data) != 2:
            check(time.monotonic() < limit, f"no log: {answer(ours, get[1], data)}")
            time.sleep(0.05)

        def ask():
            with contextlib.closing(genl.Socket("rnvmf", PORT)) as socket:
                return [answer(socket, request, data) for request in get]

        same("answers elsewhere", ["ENOENT"] * 2, elsewhere(os.CLONE_NEWNET, ask))
        same("answers here", [1, 2], [answer(ours, request, data) for request in get])


def resumed_between_deletions(world, name, attributes, numbers):
    """A dump in parts, one of the controllers gone before each that is made: what stays is in it,
    once, what went before its part was made is not, and it says that it is not of one time."""
    request = world.spec.request(name, "dump")
    dumps, reply, left, parts = Dumps("rnvmf"), genl.Reply(), list(numbers), 0
    with contextlib.closing(dumps):
        dumps.begin(request, b"")
        while not dumps.part(reply):
            parts += 1
            found = ctrl_ids(world, attributes, reply.messages)
            # The last one that was told, and the last one of all, which is not yet: the part after
            # this is made already, but not the one after that.
            if parts == 1:
                last = left[-1]
                same(f"{name}: the last one is found", False, last in found)
            gone = {found[-1], left[-1]} & set(left)
            remove_all(world, gone)
            left = [number for number in left if number not in gone]
    check(parts > 2, f"{name}: all is in {parts} parts: none is made after a deletion")
    check(reply.interrupted, f"{name}: controllers went meanwhile, which is not told")
    found = ctrl_ids(world, attributes, reply.messages)
    same(f"{name}: what stays and is not found", set(), set(left) - set(found))
    same(f"{name}: the last one is found", False, last in found)
    same(f"{name}: order", sorted(found), found)
    if attributes == "ctrl":
        same(f"{name}: controllers found twice", len(set(found)), len(found))
    # Nothing changes any more.
    with contextlib.closing(Dumps("rnvmf")) as dumps:
        whole = ctrl_ids(world, attributes, dumps.dump(request, b""))
    same(f"{name}: what there is", left, list(dict.fromkeys(whole)))
    return left


def dumps_are_resumed_between_deletions(world):
    """The controllers, and what their queues have done."""
    left = resumed_between_deletions(world, "ctrl-get", "ctrl", waiting(world, 64))
    remove_all(world, left)
    queues = {"nr-io-queues": 2, "nr-write-queues": 2, "nr-poll-queues": 2}
    numbers = [world.connected(**queues, **{"duplicate-connect": True}) for _ in range(16)]
    remove_all(world, resumed_between_deletions(world, "stats-get", "stats", numbers))


def dumps_while_deleting(world):
    """Dumps and deletions that do not wait for each other."""
    numbers = waiting(world, 48)
    stay, go = set(numbers[::2]), numbers[1::2]
    request = world.spec.request("ctrl-get", "dump")
    rounds = collections.Counter()

    def look(dumps):
        dumps.begin(request, b"")
        reply = dumps.replies()
        found = ctrl_ids(world, "ctrl", reply.messages)
        same("controllers found twice", len(found), len(set(found)))
        # An interrupted dump says so, and is asked for again.
        check(reply.interrupted or stay <= set(found),
              f"the dump lost {sorted(stay - set(found))}, and does not say so")
        rounds[reply.interrupted] += 1

    with Crowd() as crowd:
        crowd.start("a dump", look, Dumps("rnvmf"))
        remove_all(world, go)
        # One more ends after all that.
        seen = rounds[False]
        crowd.wait(lambda: rounds[False] > seen, "no whole dump")
    same("what stayed", stay, set(there_are(world)))
    remove_all(world, stay)


class Crowd:
    """Threads that do something over and over, each with something of its own, until it is left."""

    def __init__(self):
        self.over = threading.Event()
        self.problems = []
        self.threads = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(SOON * SLOWDOWN)
        # What came first is told.
        if kind is None:
            check(not any(one.is_alive() for one in self.threads), "a request does not end")
            same("problems", [], self.problems)

    def start(self, what, work, own, pause=PAUSE):
        """Do `work(own)` until all is over, or it says that there is no more to do."""
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
        """Wait until it is so, or one of the threads has a problem."""
        limit = time.monotonic() + SOON * SLOWDOWN
        while not condition() and not self.problems:
            check(time.monotonic() < limit, otherwise() if callable(otherwise) else otherwise)
            time.sleep(0.05)
        same("problems", [], self.problems)


# What may be refused while a controller is reset all the time: requests and what the message says.
NOT_LIVE = re.compile("the controller is (connecting|resetting); "
                      "(only a live controller can be reset|"
                      "it scans its namespaces when it connects)")
BUSY = {"ctrl-reset (do)": NOT_LIVE, "ctrl-rescan (do)": NOT_LIVE,
        "discover (do)": re.compile("too many discoveries")}
# A reset is over some time, and so is a discovery, before the next.
PAUSES = {"ctrl-reset (do)": 0.1, "discover (do)": 0.2}


class Client:
    """Asks for one thing, and knows how it may be refused."""

    def __init__(self, request, data, taken, leaving):
        self.socket = genl.Socket("rnvmf")
        self.request = request
        self.data = data
        self.taken = taken
        self.leaving = leaving

    def close(self):
        """Ask no more."""
        self.socket.close()

    def ask(self):
        """Ask once; say whether to go on."""
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
    """Whether a refusal is one of a controller that is being disconnected, or is gone."""
    if refusal.errno == errno.ENOENT:
        return refusal.message in ("no such controller", "no such namespace")
    return refusal.errno == errno.EBUSY and "the controller is deleting" in refusal.message


def cycle(request, *bodies):
    """Bodies of a request, one after the other, without an end."""
    while True:
        for one in bodies:
            yield body(request, **one)


def ask_all(world, number, crowd, taken, leaving):
    """Start clients that ask for all there is to ask of a controller; return what they ask."""
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
    """All that can be asked of it, while it is reset over and over: it is live in the end, as it
    was set, with its disks; and then while it is disconnected: then there is none."""
    number = world.connected()
    taken, leaving = collections.Counter(), threading.Event()
    with Crowd() as crowd:
        asked = ask_all(world, number, crowd, taken, leaving)
        crowd.wait(lambda: all(taken[each] >= 5 for each in asked), lambda: f"too few: {taken}")
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
    """It is disconnected while all is asked of it."""
    taken, leaving = collections.Counter(), threading.Event()
    with Crowd() as crowd:
        asked = ask_all(world, number, crowd, taken, leaving)
        crowd.wait(lambda: all(taken[each] for each in asked), lambda: f"too few: {taken}")
        leaving.set()
        world.ynl.do("disconnect", {"ctrl-id": number})
        world.wait(number, lambda ctrl: ctrl is None)
        # All but the two that ask for no controller have heard that there is none.
        crowd.wait(lambda: sum(one.is_alive() for one in crowd.threads) == 2, "some still ask")
    world.no_controllers()


def connects_at_the_same_time(world):
    """Several clients connect, look and disconnect at once."""
    rounds = dict.fromkeys(range(4), 0)

    def work(client):
        index = client.index
        made = client.do("connect", {
            "traddr": world.values["NOBODY4"], "trsvcid": 6000 + index,
            "subsysnqn": world.values["NQN"], "hostnqn": world.values["HOSTNQN"],
            "hostid": HOSTID.hex(), "connect-timeout": 120000,
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
        crowd.wait(lambda: sum(rounds.values()) == 40, lambda: f"too few: {rounds}")


def controllers_are_limited(world):
    """One that is gone makes room for another, and one that is refused takes none."""
    numbers = waiting(world, MOST_CONTROLLERS)
    with contextlib.closing(genl.Socket("rnvmf")) as socket:
        for _ in range(2):
            try:
                connect_to_nobody(world, socket, MOST_CONTROLLERS)
            except genl.Refusal as refusal:
                same("one more: error", errno.EBUSY, refusal.errno)
                same("one more: message", "too many controllers", refusal.message)
            else:
                raise ktap.Failure("one more was taken")
        same("controllers", numbers, there_are(world))
        remove_all(world, numbers[100:101])
        numbers[100:101] = []
        numbers.append(connect_to_nobody(world, socket, MOST_CONTROLLERS))
    same("controllers", numbers, there_are(world))
    remove_all(world, numbers)


def sets_now_and_then(world, number):
    """Set something of a controller all the time, in a process of its own that hardly gets a
    processor where others want it, until it is refused; return its number."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        with open(reading, "rb") as ready:
            same("how it begins", b"+", ready.read(1))
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
        # The controller is gone, or the family.
        os._exit(0)
    finally:
        os._exit(1)


def unloads_while_it_is_asked(world, hogs):
    """Unload the module, and load it again."""
    limit = SOON * SLOWDOWN
    with contextlib.ExitStack() as undo:
        undo.callback(subprocess.run, ["modprobe", "rnvmf"], check=True, timeout=limit)
        ears = undo.enter_context(contextlib.closing(genl.Socket("rnvmf")))
        ears.subscribe("events")
        [number] = waiting(world, 1)
        setters = [sets_now_and_then(world, number) for _ in range(SETTERS)]
        for hog in hogs:
            hog.send_signal(signal.SIGCONT)
            undo.callback(hog.send_signal, signal.SIGSTOP)
        time.sleep(0.1)
        subprocess.run(["rmmod", "rnvmf"], check=True, timeout=limit)
    for setter in setters:
        same("status of who sets", 0, os.waitstatus_to_exitcode(os.waitpid(setter, 0)[1]))


def is_unloaded_while_it_is_asked(world):
    """Whoever tells of what was set, and is slow at that, does not end up to wait for himself."""
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

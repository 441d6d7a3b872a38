#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests the netlink interface: each operation with the kernel's ynl client, and invalid requests.

test_netlink_others.py tests concurrent clients, and clients in other namespaces.
"""

import contextlib
import errno
import os
import pathlib
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

# pylint: disable=wrong-import-position
from pylib import fixture, genl, ktap, spec  # noqa: E402
from pylib.ktap import check, same  # noqa: E402

# Required attributes of each request.
REQUIRED = {
    ("connect", "do"): ["traddr", "subsysnqn", "hostnqn", "hostid"],
    ("disconnect", "do"): ["ctrl-id"],
    ("ctrl-get", "do"): ["ctrl-id"],
    ("ctrl-reset", "do"): ["ctrl-id"],
    ("ctrl-rescan", "do"): ["ctrl-id"],
    ("ctrl-set", "do"): ["ctrl-id"],
    ("ns-get", "do"): ["ctrl-id", "nsid"],
    ("discover", "do"): ["traddr", "hostnqn", "hostid"],
    ("discover-get", "do"): ["discovery-id"],
    ("discover-get", "dump"): ["discovery-id"],
    ("stats-get", "do"): ["ctrl-id"],
    ("stats-set", "do"): ["ctrl-id"],
}
NO_CONTROLLER = 0xfffffff0
HOSTID = bytes(range(1, 17))
TARGET = pathlib.Path("/sys/kernel/config/nvmet")
# The module's limit.
MOST_DISCOVERIES = 64
# Factor for all time limits; more than 1 on a debug kernel, and on CPUs that run freely.
SLOWDOWN = int(os.environ.get("RNVMF_SLOWDOWN", "1"))
# Time limit of an operation, in seconds.
SOON = 20 * SLOWDOWN


class Dumps(genl.Socket):
    """A socket whose dumps come in parts, as small as possible."""

    ROOM = 4096

    def begin(self, request, body):
        """Begin a dump. The kernel makes its first part at once."""
        self.send(struct.pack("=BBH", request.command, 1, 0) + body,
                  genl.REQUEST | genl.ACK | genl.DUMP)

    def dump(self, request, body):
        """Return the messages of a dump, which must not be interrupted."""
        self.begin(request, body)
        reply = self.replies()
        check(not reply.interrupted, f"{request}: interrupted")
        return reply.messages


class World:
    """The set-up, the specification and the clients that the tests use."""

    def __init__(self, values):
        self.values = values
        self.spec = spec.Spec()
        self.socket = self.ynl = None
        self.open()

    def open(self):
        """Open the clients, also after the module was unloaded."""
        self.socket = genl.Socket("rnvmf")
        self.ynl = spec.ynl_family()

    def good(self, attribute):
        """Return a payload that satisfies the attribute's policy."""
        texts = {"traddr": self.values["NOBODY4"], "host-traddr": self.values["TARGET4"],
                 "subsysnqn": self.values["NQN"], "hostnqn": self.values["HOSTNQN"]}
        if attribute.type == "string":
            return texts[attribute.name].encode() + b"\0"
        if attribute.type == "binary":
            return HOSTID
        if attribute.type == "flag":
            return b""
        if attribute.name in ("ctrl-id", "discovery-id"):
            return attribute.scalar(NO_CONTROLLER)
        return attribute.scalar(attribute.limits()[0] or 1)

    def required(self, request):
        """Return the required attributes of a request with valid values, as (name, bytes)."""
        names = REQUIRED.get((request.operation["name"], request.mode), [])
        return [(name, genl.attribute(request.attributes[name].number,
                                      self.good(request.attributes[name]))) for name in names]

    def send(self, request, body):
        """Send a request."""
        dump = genl.DUMP if request.mode == "dump" else 0
        return self.socket.request(request.command, body, genl.REQUEST | genl.ACK | dump)

    def refused(self, request, body, what):
        """Return the refusal of a request, which must be refused; `what` is for the message."""
        try:
            self.send(request, body)
        except genl.Refusal as refusal:
            return refusal
        raise ktap.Failure(f"{request}: {what} was accepted")

    def refused_at(self, request, name, bad, what):
        """Check that a request with attribute `name` as `bad` is refused with its offset."""
        body = b"".join(data for each, data in self.required(request) if each != name)
        refusal = self.refused(request, body + bad, what)
        same(f"{request}: {what}: offset of the attribute in '{refusal}'",
             genl.HEADERS + len(body), refusal.offset)
        check(refusal.message, f"{request}: {what}: no extack message with {refusal}")

    def connected(self, **more):
        """Connect, and wait until the controller is live; return its ID."""
        wish = {"traddr": self.values["TARGET4"], "subsysnqn": self.values["NQN"],
                "hostnqn": self.values["HOSTNQN"], "hostid": HOSTID.hex()} | more
        made = self.ynl.do("connect", wish)
        self.wait(made["ctrl-id"], lambda ctrl: ctrl and ctrl["state"] == "live")
        return made["ctrl-id"]

    def wait(self, number, condition):
        """Wait until `condition` is true for the controller, or for None if it is removed."""
        limit = time.monotonic() + SOON
        while True:
            ctrl = next((one for one in self.ynl.dump("ctrl-get", {})
                         if one["ctrl-id"] == number), None)
            if condition(ctrl):
                return ctrl
            check(time.monotonic() < limit, f"timed out after {SOON} s; controller: {ctrl}")
            time.sleep(0.05)

    def remove(self, number):
        """Disconnect, and wait until the controller is removed."""
        self.ynl.do("disconnect", {"ctrl-id": number})
        self.wait(number, lambda ctrl: ctrl is None)

    def no_controllers(self):
        """Check that no controller remains."""
        same("list of controllers", [], self.ynl.dump("ctrl-get", {}))

    def clean_up(self):
        """Remove all controllers that a test left."""
        disconnect = self.spec.request("disconnect")
        ctrl_id = disconnect.attributes["ctrl-id"]
        for ctrl in self.ynl.dump("ctrl-get", {}):
            number = ctrl["ctrl-id"]
            try:
                self.send(disconnect, genl.attribute(ctrl_id.number, ctrl_id.scalar(number)))
            except genl.Refusal as refusal:
                # It may be being removed already.
                same(f"disconnect of {number}: error", errno.ENOENT, refusal.errno)
            self.wait(number, lambda ctrl: ctrl is None)


def ynl_drives_every_operation(world):
    """Connect, read by do and dump, disconnect."""
    number = world.connected()
    ctrl = world.ynl.do("ctrl-get", {"ctrl-id": number})
    same("state", "live", ctrl["state"])
    same("subsysnqn", world.values["NQN"], ctrl["subsysnqn"])
    same("hostid", HOSTID.hex(), ctrl["hostid"].replace(" ", ""))
    same("trsvcid", 4420, ctrl["trsvcid"])
    same("dump of controllers", [ctrl], world.ynl.dump("ctrl-get", {}))
    namespaces = world.ynl.dump("ns-get", {})
    same("namespaces", [1, 2], [one["nsid"] for one in namespaces])
    same("block sizes", [512, 4096], [one["block-size"] for one in namespaces])
    same("sizes", [16 << 20] * 2, [one["size"] for one in namespaces])
    same("dump of namespaces of the controller", namespaces,
         world.ynl.dump("ns-get", {"ctrl-id": number}))
    for one in namespaces:
        same("namespace", one, world.ynl.do("ns-get", {"ctrl-id": number, "nsid": one["nsid"]}))
        check(pathlib.Path(f"/sys/block/{one['name']}").exists(), f"no disk {one['name']}")
    world.remove(number)
    world.no_controllers()


def a_number_is_not_given_again(world):
    """The ID of a removed controller must not match a new one with the same name."""
    gone = world.connected()
    name = world.ynl.do("ctrl-get", {"ctrl-id": gone})["name"]
    world.remove(gone)
    number = world.connected()
    same("name", name, world.ynl.do("ctrl-get", {"ctrl-id": number})["name"])
    request = world.spec.request("disconnect")
    attribute = request.attributes["ctrl-id"]
    refusal = world.refused(request, genl.attribute(attribute.number, attribute.scalar(gone)),
                            "the ID of a removed controller")
    same("error", errno.ENOENT, refusal.errno)
    same("state", "live", world.ynl.do("ctrl-get", {"ctrl-id": number})["state"])
    world.remove(number)


def ynl_resets_and_sets(world):
    """Set options of a live controller, and reset and rescan it."""
    number = world.connected()
    world.ynl.do("ctrl-set", {"ctrl-id": number, "reconnect-delay": 3, "fast-io-fail-tmo": 7})
    world.ynl.do("ctrl-set", {"ctrl-id": number, "connect-timeout": 1500})
    ctrl = world.ynl.do("ctrl-get", {"ctrl-id": number})
    same("settings", (3, 600, 7, 1500), tuple(ctrl[name] for name in (
        "reconnect-delay", "ctrl-loss-tmo", "fast-io-fail-tmo", "connect-timeout")))
    request = world.spec.request("ctrl-set")
    ours = genl.attribute(request.attributes["ctrl-id"].number,
                          request.attributes["ctrl-id"].scalar(number))
    same("error", errno.EINVAL, world.refused(request, ours, "nothing to set").errno)
    # Values between the longest time and "off".
    wrong = {"ctrl-loss-tmo": (4294968, 0xfffffffe), "fast-io-fail-tmo": (4294968, 0xfffffffe),
             "cqt": (4294968, 0xfffffffe), "connect-timeout": (0, 600001)}
    for name, values in wrong.items():
        attribute = request.attributes[name]
        for value in values:
            data = genl.attribute(attribute.number, attribute.scalar(value))
            refusal = world.refused(request, ours + data, f"{name} = {value}")
            same(f"{name} = {value}: offset", genl.HEADERS + len(ours), refusal.offset)
    same("the controller after refused requests", ctrl,
         world.ynl.do("ctrl-get", {"ctrl-id": number}))
    world.ynl.do("ctrl-reset", {"ctrl-id": number})
    ctrl = world.wait(number, lambda ctrl: ctrl and ctrl["state"] == "live")
    same("resets and reconnects", (1, 0), (ctrl["nr-resets"], ctrl["nr-reconnects"]))
    scan = world.ynl.do("ctrl-rescan", {"ctrl-id": number})["scan"]
    world.wait(number, lambda ctrl: ctrl and ctrl["scan"] >= scan)
    world.remove(number)


def dumps_of_namespaces_are_whole(world):
    """A dump has all namespaces in order of NSID, or is marked as interrupted by a change."""
    namespaces = TARGET / "subsystems" / world.values["NQN"] / "namespaces"
    request = world.spec.request("ns-get", "dump")
    nsid = world.spec.sets[request.operation["attribute-set"]]["nsid"].number
    count, first = 60, namespaces / "1/enable"
    with contextlib.ExitStack() as undo:
        for number in range(3, count + 1):
            made = namespaces / str(number)
            made.mkdir()
            undo.callback(made.rmdir)
            (made / "device_path").write_text((namespaces / "1/device_path").read_text().strip())
            (made / "enable").write_text("1")
        undo.callback(first.write_text, "1")
        # The default time-out of a connect, 10 s, must be enough for the disks.
        number = world.connected(**{"connect-timeout": 10000 * SLOWDOWN})
        undo.callback(world.remove, number)
        def becomes(path, enabled, left):
            path.write_text(enabled)
            world.wait(number, lambda ctrl: ctrl and ctrl["nr-namespaces"] == left)
        dumps = Dumps("rnvmf")
        undo.callback(dumps.close)
        # The namespace with the lowest NSID is the one added last.
        becomes(first, "0", count - 1)
        becomes(first, "1", count)
        same("list of NSIDs", list(range(1, count + 1)),
             [struct.unpack("=I", dict(genl.attributes(one))[nsid])[0]
              for one in dumps.dump(request, b"")])
        dumps.begin(request, b"")
        becomes(first, "0", count - 1)
        check(dumps.replies().interrupted,
              "a namespace was removed during the dump, but the dump is not marked as interrupted")


def dumps_of_a_log_are_whole(world):
    """A dump has the entries of one log, or is marked as interrupted by a change."""
    discover, request = world.spec.request("discover"), world.spec.request("discover-get", "dump")
    links, count = TARGET / "ports/4420/subsystems", 40
    listener = spec.ynl_family()
    listener.ntf_subscribe("events")
    with contextlib.ExitStack() as undo:
        undo.callback(listener.close)
        for number in range(count):
            made = TARGET / "subsystems" / f"{world.values['NQN']}-{number}"
            made.mkdir()
            undo.callback(made.rmdir)
            (made / "attr_allow_any_host").write_text("1")
            link = links / made.name
            link.symlink_to(made)
            undo.callback(link.unlink, missing_ok=True)
        def await_log(entries):
            limit = time.monotonic() + SOON
            while not any(one["msg"].get("nr-entries") == entries
                          for one in listener.poll_ntf(duration=1)):
                check(time.monotonic() < limit, f"no notification of a log with {entries} entries")
        dumps = Dumps("rnvmf")
        undo.callback(dumps.close)
        wish = {"traddr": world.values["TARGET4"].encode() + b"\0", "persistent": b"",
                "hostnqn": world.values["HOSTNQN"].encode() + b"\0", "hostid": HOSTID}
        made = dumps.request(discover.command, b"".join(
            genl.attribute(discover.attributes[name].number, data)
            for name, data in wish.items())).messages[0]
        number = world.spec.sets[discover.operation["attribute-set"]]["discovery-id"].number
        ours = genl.attribute(request.attributes["discovery-id"].number,
                              dict(genl.attributes(made))[number])
        # Two more: the discovery subsystem itself, and the fixture's subsystem.
        await_log(count + 2)
        same("entries", count + 2, len(dumps.dump(request, ours)))
        dumps.begin(request, ours)
        link.unlink()
        await_log(count + 1)
        check(dumps.replies().interrupted,
              "the log changed during the dump, but the dump is not marked as interrupted")


def ynl_discovers(world):
    """A discovery belongs to the socket that started it, and ends when the socket is closed."""
    wish = {"traddr": world.values["TARGET4"], "hostnqn": world.values["HOSTNQN"],
            "hostid": HOSTID.hex()}
    client = spec.ynl_family()
    client.ntf_subscribe("events")
    ours = {"discovery-id": client.do("discover", wish)["discovery-id"]}
    seen, limit = [], time.monotonic() + SOON
    while not seen:
        check(time.monotonic() < limit, "no discover-ntf")
        seen = [one for one in client.poll_ntf(duration=1) if one["name"] == "discover-ntf"]
    found = client.do("discover-get", ours)
    same("event", found, seen[0]["msg"])
    entries = [bytes.fromhex(one["entry"]) for one in client.dump("discover-get", ours)]
    same("entries", found["nr-entries"], len(entries))
    same("sizes", {1024}, set(map(len, entries)))
    same("SUBTYPE", [3, 2], [one[2] for one in entries])
    same("SUBNQN", world.values["NQN"], entries[1][256:512].rstrip(b"\0").decode())
    request = world.spec.request("discover-get")
    number = request.attributes["discovery-id"]
    body = genl.attribute(number.number, number.scalar(ours["discovery-id"]))
    # Another socket does not see it. A new discovery of the same socket replaces it.
    for mode in ("do", "dump"):
        refusal = world.refused(world.spec.request("discover-get", mode), body,
                                "the discovery of another socket")
        same("discovery of another socket: error", errno.ENOENT, refusal.errno)
    again = client.do("discover", wish | {"traddr": world.values["NOBODY4"]})
    check(again["discovery-id"] != ours["discovery-id"], "the second discovery has the same ID")
    same("discovery in progress", again, client.do("discover-get", again))
    client.close()


def discoveries_are_limited(world):
    """The number of discoveries is limited; a cancelled one counts until its thread has ended."""
    request = world.spec.request("discover")
    body = b"".join(data for _, data in world.required(request))
    body += genl.attribute(request.attributes["persistent"].number)
    sockets = [genl.Socket("rnvmf") for _ in range(MOST_DISCOVERIES + 1)]
    def ask(one):
        one.request(request.command, body, genl.REQUEST | genl.ACK)
    def refused(one, what):
        try:
            ask(one)
        except genl.Refusal as refusal:
            same(f"{what}: error", errno.EBUSY, refusal.errno)
            same(f"{what}: message", "too many discoveries", refusal.message)
            return True
        return False
    for one in sockets[:MOST_DISCOVERIES]:
        ask(one)
    check(refused(sockets[-1], "one more"), "one discovery more than the limit was accepted")
    # It would replace the socket's discovery, whose thread is still running.
    check(refused(sockets[0], "another"), "the cancelled discovery does not count")
    limit = time.monotonic() + SOON
    while refused(sockets[0], "another"):
        check(time.monotonic() < limit, "the cancelled discovery did not end")
    for one in sockets:
        one.close()


def ynl_reads_statistics(world):
    """The counters of the queues add up to those of the controller."""
    # Without keep-alive, so that no command is sent meanwhile, apart from late reads of a partition
    # table.
    number = world.connected(**{"keep-alive-tmo": 0, "nr-io-queues": 2})
    whole, queues, everything = None, None, None
    limit = time.monotonic() + SOON
    while whole is None or whole != world.ynl.do("stats-get", {"ctrl-id": number}):
        check(time.monotonic() < limit, f"the statistics change without commands: {whole}")
        whole = world.ynl.do("stats-get", {"ctrl-id": number})
        queues = world.ynl.dump("stats-get", {"ctrl-id": number})
        everything = world.ynl.dump("stats-get", {})
    same("dump of all", queues, everything)
    same("queues", [0, 1, 2], [one["qid"] for one in queues])
    check("qid" not in whole, f"the controller's statistics have a qid: {whole}")
    same("latency", 0, whole["latency"])
    for name in set(whole) - {"ctrl-id", "name", "latency"}:
        same(name, whole[name], sum(one[name] for one in queues))
    check(whole["reads"] > 0 and whole["others"] > 3, f"counters are too small: {whole}")
    request = world.spec.request("stats-set")
    ours = genl.attribute(request.attributes["ctrl-id"].number,
                          request.attributes["ctrl-id"].scalar(number))
    same("error", errno.EINVAL, world.refused(request, ours, "nothing to set").errno)
    world.ynl.do("stats-set", {"ctrl-id": number, "latency": 1})
    same("latency", [1] * 3,
         [one["latency"] for one in world.ynl.dump("stats-get", {"ctrl-id": number})])
    world.remove(number)


def ynl_hears_every_event(world):
    """Connecting and disconnecting sends all kinds of notifications."""
    listener = spec.ynl_family()
    listener.ntf_subscribe("events")
    world.remove(world.connected())
    seen, limit = [], time.monotonic() + SOON
    while "ctrl-del-ntf" not in seen:
        check(time.monotonic() < limit, f"no ctrl-del-ntf after {seen}")
        seen += [event["name"] for event in listener.poll_ntf(duration=1)]
    same("kinds of events", {"ctrl-add-ntf", "ctrl-change-ntf", "ctrl-del-ntf", "ns-add-ntf",
                             "ns-del-ntf"}, set(seen))
    same("first", "ctrl-add-ntf", seen[0])
    listener.close()


def policy_agrees_with_the_specification(world):
    """The kernel's dumped policy matches the checks in the specification."""
    for request in world.spec.requests:
        policy = world.ynl.get_policy(request.operation["name"], request.mode)
        if not request.attributes:
            check(not policy, f"{request}: takes no attributes, but has {policy}")
            continue
        same(f"{request}: attributes", sorted(request.attributes), sorted(policy.keys()))
        for attribute in request.attributes.values():
            same(f"{request}: {attribute.name}", expected_policy(attribute),
                 policy[attribute.name].to_dict())


def expected_policy(attribute):
    """Return the policy of an attribute as the kernel dumps it."""
    if attribute.type == "string":
        return {"type": "nul-string", "max-length": attribute.checks["max-len"]}
    if attribute.type == "binary":
        length = attribute.checks["exact-len"]
        return {"type": "binary", "min-length": length, "max-length": length}
    if attribute.type == "flag":
        return {"type": "flag"}
    low, high = attribute.limits()
    return {"type": attribute.type, "min-value": low, "max-value": high}


def missing_attributes(world):
    """Requests that lack one required attribute."""
    for request in world.spec.requests:
        required = world.required(request)
        for name, _ in required:
            body = b"".join(data for each, data in required if each != name)
            refusal = world.refused(request, body, f"without {name}")
            same(f"{request} without {name}: missing attribute",
                 request.attributes[name].number, refusal.missing)


def unknown_attributes(world):
    """Requests with unknown attributes, or with attributes of other requests."""
    for request in world.spec.requests:
        highest = max(one.number for one in (request.attributes | request.others).values())
        numbers = [0, highest + 1, 0x3fff, *(one.number for one in request.others.values())]
        for number in numbers:
            world.refused_at(request, None, genl.attribute(number, b"\1\0\0\0"),
                             f"attribute {number}")


def wrong_sizes(world):
    """Attributes that are shorter or longer than their type."""
    for request in world.spec.requests:
        for name, attribute in request.attributes.items():
            good = world.good(attribute)
            bad = [good + b"\0"] if attribute.type != "string" else []
            bad += [good[:-1], b""] if attribute.type != "flag" else []
            for payload in bad:
                world.refused_at(request, name, genl.attribute(attribute.number, payload),
                                 f"{name} of {len(payload)} bytes")


def wrong_strings(world):
    """Strings that are too long."""
    for request in world.spec.requests:
        for name, attribute in request.attributes.items():
            if attribute.type == "string":
                payload = b"1" * (attribute.checks["max-len"] + 1) + b"\0"
                world.refused_at(request, name, genl.attribute(attribute.number, payload),
                                 f"{name} of {len(payload) - 1} characters")


def values_out_of_range(world):
    """Numbers below the minimum and above the maximum."""
    for request in world.spec.requests:
        for name, attribute in request.attributes.items():
            if attribute.type not in spec.SCALARS:
                continue
            low, high = attribute.limits()
            below = [low - 1] if "min" in attribute.checks else []
            above = [high + 1] if "max" in attribute.checks else []
            for value in below + above:
                data = genl.attribute(attribute.number, attribute.scalar(value))
                world.refused_at(request, name, data, f"{name} = {value}")


def values_without_meaning(world):
    """Values that satisfy the policy, but are invalid for the operation."""
    bad = {"traddr": [b"", b"target", b"300.1.1.1", b"192.0.2.1.", b"2001:db8::1::1",
                      b"192.0.2.1 ", b"fe80::1%nowhere"],
           "host-traddr": [b"", b"host", b"1.2.3.4.5"],
           "subsysnqn": [b"", b"nqn.2014-08.org\nx", b"nqn.\xff\xfe"],
           "hostnqn": [b"", b"nqn\n"],
           "hostid": [bytes(16)]}
    for request in (world.spec.request("connect"), world.spec.request("discover")):
        for name, values in bad.items():
            number = request.attributes[name].number
            for value in values:
                payload = value if name == "hostid" else value + b"\0"
                world.refused_at(request, name, genl.attribute(number, payload),
                                 f"{name} = {value!r}")


def malformed_messages(world):
    """Messages that do not consist of attributes."""
    request = world.spec.request("ctrl-get")
    number = request.attributes["ctrl-id"].number
    good = dict(world.required(request))["ctrl-id"]
    bodies = {"an attribute longer than the message": b"\xff\0" + number.to_bytes(2, "little"),
              "an attribute shorter than its header": b"\2\0" + number.to_bytes(2, "little"),
              "bytes after the last attribute": good + b"\1\2",
              "a nested attribute that is none": genl.attribute(number | 0x8000, bytes(4))}
    for what, body in bodies.items():
        refusal = world.refused(request, body, what)
        same(f"{what}: error", errno.EINVAL, refusal.errno)
    try:
        world.socket.message(b"\3")
    except genl.Refusal as refusal:
        same("a message without a generic header: error", errno.EINVAL, refusal.errno)
    else:
        raise ktap.Failure("a message without a generic header was accepted")


def unknown_commands(world):
    """Unknown commands, notifications as commands, and do instead of dump or the reverse."""
    modes = {(one.command, one.mode) for one in world.spec.requests}
    for command in (0, *range(1, world.spec.commands + 1), world.spec.commands + 1, 255):
        for mode, flags in (("do", 0), ("dump", genl.DUMP)):
            if (command, mode) in modes:
                continue
            try:
                world.socket.request(command, b"", genl.REQUEST | genl.ACK | flags)
            except genl.Refusal as refusal:
                same(f"command {command} ({mode}): error", errno.EOPNOTSUPP, refusal.errno)
            else:
                raise ktap.Failure(f"command {command} ({mode}) was accepted")


def objects_that_are_not(world):
    """Controllers and namespaces that do not exist."""
    for request in world.spec.requests:
        name = next((one for one in ("ctrl-id", "discovery-id") if one in request.attributes), None)
        if name:
            refusal = world.refused(
                request, b"".join(data for _, data in world.required(request))
                or genl.attribute(request.attributes[name].number,
                                  world.good(request.attributes[name])), f"no such {name}")
            same(f"{request}: error", errno.ENOENT, refusal.errno)
            same(f"{request}: offset", genl.HEADERS, refusal.offset)
    request = world.spec.request("ns-get")
    ctrl_id, nsid = request.attributes["ctrl-id"], request.attributes["nsid"]
    ours = genl.attribute(ctrl_id.number, ctrl_id.scalar(world.connected()))
    refusal = world.refused(request, ours + genl.attribute(nsid.number, nsid.scalar(77)), "no disk")
    same("namespace 77: error", errno.ENOENT, refusal.errno)
    same("namespace 77: offset", genl.HEADERS + len(ours), refusal.offset)


def privilege_is_needed(world):
    """Requests that change something need privilege; those that read do not."""
    for request in world.spec.requests:
        body = b"".join(data for _, data in world.required(request))
        def ask(request=request, body=body):
            flags = genl.DUMP if request.mode == "dump" else 0
            genl.Socket("rnvmf").request(request.command, body, genl.REQUEST | genl.ACK | flags)
        found = genl.unprivileged(ask)
        anything = request.mode == "dump" and not body
        wanted = errno.EPERM if request.admin else 0 if anything else errno.ENOENT
        same(f"{request} as nobody", wanted, found)


TESTS = [
    ynl_drives_every_operation,
    a_number_is_not_given_again,
    ynl_resets_and_sets,
    dumps_of_namespaces_are_whole,
    dumps_of_a_log_are_whole,
    ynl_discovers,
    discoveries_are_limited,
    ynl_reads_statistics,
    ynl_hears_every_event,
    policy_agrees_with_the_specification,
    missing_attributes,
    unknown_attributes,
    wrong_sizes,
    wrong_strings,
    values_out_of_range,
    values_without_meaning,
    malformed_messages,
    unknown_commands,
    objects_that_are_not,
    privilege_is_needed,
]


def main(tests):
    """Run the tests that the arguments choose."""
    base = fixture.Fixture()
    try:
        world = World(base.values)
    except FileNotFoundError as missing:
        base.close()
        ktap.skip_all(missing)

    def leaves_nothing_behind(world):
        world.no_controllers()
        base.close()

    return ktap.run(tests, leaves_nothing_behind, world)


if __name__ == "__main__":
    sys.exit(main(TESTS))

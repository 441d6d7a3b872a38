# SPDX-License-Identifier: GPL-2.0
"""A client of the family that waits for what it is told."""

import errno
import select
import time

from . import genl
from .ktap import Failure


class Client:
    """Asks, and knows what there is: what was told of it, and what it has read where it was told
    that it missed something. Whoever waits for something that nobody tells waits in vain."""

    def __init__(self, specification, patience):
        self.spec = specification
        self.patience = patience
        self.socket = genl.Socket("rnvmf")
        self.ears = genl.Socket("rnvmf")
        self.ears.subscribe("events")
        self.controllers, self.namespaces, self.discoveries = {}, {}, {}
        # Which errors were told, and which states, since somebody forgot them.
        self.errors, self.states = [], set()
        self._read()

    def __str__(self):
        states = {one["name"]: one["state"] for one in self.controllers.values()}
        names = [one["name"] for one in self.namespaces.values()]
        return f"{states}, {names}, {self.discoveries}, after {sorted(self.states)}, {self.errors}"

    def close(self):
        """Ask nothing any more: a discovery ends."""
        self.socket.close()
        self.ears.close()

    def _request(self, name, mode, flags, values):
        request = self.spec.request(name, mode)
        body = b"".join(
            genl.attribute(request.attributes[key].number, request.attributes[key].payload(value))
            for key, value in values.items())
        reply = self.socket.request(request.command, body, genl.REQUEST | genl.ACK | flags)
        of = request.operation["attribute-set"]
        return [self.spec.values(of, one) for one in reply.messages]

    def do(self, name, **values):
        """Do an operation; `_` stands for the `-` of an attribute. Return the reply."""
        replies = self._request(name, "do", 0, _named(values))
        return replies[0] if replies else {}

    def dump(self, name, **values):
        """All that a dump has."""
        return self._request(name, "dump", genl.DUMP, _named(values))

    def forget(self):
        """What was told so far is past."""
        self.hear()
        self.errors, self.states = [], set()

    def wait(self, what, condition):
        """Wait until it is so, by what is told."""
        limit = time.monotonic() + self.patience
        while True:
            self.hear()
            if condition():
                return
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self.ears.socket], [], [], left)[0]:
                raise Failure(f"not told in {self.patience} s: {what}; but {self}")

    def hear(self):
        """Take note of all that was told so far."""
        missed, more = False, True
        while more:
            try:
                event = self.ears.told()
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                missed = True
                continue
            more = event is not None
            if more:
                name, of = self.spec.events[event[0]]
                self._take(name, self.spec.values(of, event[1]))
        if missed:
            self._read()

    def _take(self, name, found):
        kind, _, what = name.removesuffix("-ntf").partition("-")
        if kind == "ctrl":
            self._note(found["ctrl-id"], None if what == "del" else found)
        elif kind == "ns":
            key = found["ctrl-id"], found["nsid"]
            self.namespaces.pop(key, None)
            if what != "del":
                self.namespaces[key] = found
        else:
            self._note_discovery(found)

    def _note(self, number, now):
        """Take note of how a controller is now, or that there is none."""
        before = self.controllers.pop(number, {})
        if now is None:
            return
        self.controllers[number] = now
        self.states.add(now["state"])
        if "error" in now and now["error"] != before.get("error"):
            self.errors.append(now["error"]["message"])

    def _note_discovery(self, found):
        self.discoveries[found["discovery-id"]] = found
        if "error" in found:
            self.errors.append(found["error"]["message"])

    def _read(self):
        """Something was missed: look."""
        there = {one["ctrl-id"]: one for one in self.insist(self.dump, "ctrl-get")}
        for number in {*self.controllers, *there}:
            self._note(number, there.get(number))
        self.namespaces = {(one["ctrl-id"], one["nsid"]): one
                           for one in self.insist(self.dump, "ns-get")}
        for number in list(self.discoveries):
            try:
                self._note_discovery(self.insist(self.do, "discover-get", discovery_id=number))
            except genl.Refusal as refusal:
                if refusal.errno != errno.ENOENT:
                    raise
                del self.discoveries[number]

    def insist(self, ask, *name, **values):
        """Ask once more if there is no memory for it."""
        try:
            return ask(*name, **values)
        except genl.Refusal as refusal:
            if not is_memory(refusal):
                raise
            self.refused(refusal)
        return ask(*name, **values)

    def refused(self, refusal):
        """Something was refused for want of memory."""


def _named(values):
    return {name.replace("_", "-"): value for name, value in values.items()}


def is_memory(refusal):
    """Whether that is the reason."""
    return refusal.errno in (errno.ENOMEM, errno.ENOBUFS)

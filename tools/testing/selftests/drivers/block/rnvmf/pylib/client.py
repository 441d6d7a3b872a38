# SPDX-License-Identifier: GPL-2.0
"""A netlink client that tracks the controllers by their notifications."""

import errno
import select
import time

from . import genl
from .ktap import Failure


class Client:
    """Sends requests, and keeps a copy of all objects from notifications.

    It dumps the objects only at the start and after lost notifications (ENOBUFS). So `wait` times
    out if a change is not notified.
    """

    def __init__(self, specification, patience):
        self.spec = specification
        self.patience = patience
        self.socket = genl.Socket("rnvmf")
        self.ears = genl.Socket("rnvmf")
        self.ears.subscribe("events")
        self.controllers, self.namespaces, self.discoveries = {}, {}, {}
        # The notified errors and states since the last `forget`.
        self.errors, self.states = [], set()
        self._read()

    def __str__(self):
        states = {one["name"]: one["state"] for one in self.controllers.values()}
        names = [one["name"] for one in self.namespaces.values()]
        return f"{states}, {names}, {self.discoveries}, after {sorted(self.states)}, {self.errors}"

    def close(self):
        """Close the sockets; that ends the client's discoveries."""
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
        """Do an operation and return its reply. A `_` in a keyword is the `-` of an attribute."""
        replies = self._request(name, "do", 0, _named(values))
        return replies[0] if replies else {}

    def dump(self, name, **values):
        """Return all messages of a dump."""
        return self._request(name, "dump", genl.DUMP, _named(values))

    def forget(self):
        """Discard the errors and states notified so far."""
        self.hear()
        self.errors, self.states = [], set()

    def wait(self, what, condition):
        """Process notifications until `condition()` is true; `what` describes it in the failure."""
        limit = time.monotonic() + self.patience
        while True:
            self.hear()
            if condition():
                return
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self.ears.socket], [], [], left)[0]:
                raise Failure(f"no notification in {self.patience} s of: {what}; state: {self}")

    def hear(self):
        """Process all notifications received so far."""
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
        """Record the state of a controller, or with None its removal."""
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
        """Read all objects by dumps."""
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
        """Send a request; repeat it once after an allocation failure."""
        try:
            return ask(*name, **values)
        except genl.Refusal as refusal:
            if not is_memory(refusal):
                raise
            self.refused(refusal)
        return ask(*name, **values)

    def refused(self, refusal):
        """Hook: a request failed for lack of memory."""


def _named(values):
    return {name.replace("_", "-"): value for name, value in values.items()}


def is_memory(refusal):
    """Return whether a request failed for lack of memory."""
    return refusal.errno in (errno.ENOMEM, errno.ENOBUFS)

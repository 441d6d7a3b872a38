# SPDX-License-Identifier: GPL-2.0
"""Generic netlink messages, byte by byte, so that they can also be wrong."""

import errno
import os
import socket
import struct

GENERIC = 16
SOL_NETLINK = 270
ADD_MEMBERSHIP, CAP_ACK, EXT_ACK, STRICT_CHECK = 1, 10, 11, 12

ERROR, DONE = 2, 3
REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
DUMP_INTERRUPTED = 0x10
ACK_TLVS = 0x200
EXTACK_MESSAGE, EXTACK_OFFSET, EXTACK_POLICY, EXTACK_MISSING = 1, 2, 4, 5

CONTROL, GET_FAMILY, FAMILY_NAME, FAMILY_ID, FAMILY_GROUPS = 16, 3, 2, 1, 7
GROUP_NAME, GROUP_ID = 1, 2

HEADERS = 20
TIMEOUT = 20


def attribute(number, payload=b""):
    """An attribute with its padding."""
    data = struct.pack("=HH", 4 + len(payload), number) + payload
    return data + bytes(-len(data) % 4)


def attributes(data):
    """The attributes in `data`: pairs of number and payload."""
    while len(data) >= 4:
        length, number = struct.unpack_from("=HH", data)
        yield number & 0x3fff, data[4:length]
        data = data[(length + 3) & ~3:]


class Refusal(Exception):
    """The kernel refused a request, and said why."""

    def __init__(self, number, extack):
        self.errno = -number
        found = dict(attributes(extack))
        self.message = found.get(EXTACK_MESSAGE, b"").rstrip(b"\0").decode()
        self.offset = self._number(found, EXTACK_OFFSET)
        self.missing = self._number(found, EXTACK_MISSING)
        super().__init__(f"{errno.errorcode.get(self.errno, self.errno)}: {self.message} "
                         f"(offset {self.offset}, missing {self.missing})")

    @staticmethod
    def _number(found, kind):
        return struct.unpack("=I", found[kind])[0] if kind in found else None


class Reply:
    """All that came back for a request."""

    def __init__(self):
        self.messages = []
        self.interrupted = False


class Socket:
    """A connection to a family, from a port of its own, or from one that is named."""

    # Most that is read at once: the kernel makes the parts of a dump no larger than what was asked
    # for so far.
    ROOM = 1 << 17

    def __init__(self, family, port=0):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC)
        self.socket.bind((port, 0))
        self.socket.settimeout(TIMEOUT)
        for option in (CAP_ACK, EXT_ACK, STRICT_CHECK):
            self.socket.setsockopt(SOL_NETLINK, option, 1)
        self.sequence = 0
        self.family = CONTROL
        name = attribute(FAMILY_NAME, family.encode() + b"\0")
        found = dict(attributes(self.request(GET_FAMILY, name).messages[0]))
        self.family = struct.unpack("=H", found[FAMILY_ID])[0]
        groups = [dict(attributes(one)) for _, one in attributes(found.get(FAMILY_GROUPS, b""))]
        self.groups = {one[GROUP_NAME].rstrip(b"\0").decode(): one[GROUP_ID] for one in groups}

    def close(self):
        """End the connection."""
        self.socket.close()

    def subscribe(self, group):
        """Hear what a group of the family is told, and ask nothing any more."""
        self.socket.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, self.groups[group])
        self.socket.setblocking(False)

    def told(self):
        """What is next of what a group was told: the command, and the attributes; None if that is
        all so far. ENOBUFS is raised where something was missed."""
        try:
            data = self.socket.recv(self.ROOM)
        except BlockingIOError:
            return None
        return data[16], data[HEADERS:]

    def message(self, body, flags=REQUEST | ACK):
        """Send a message; `body` is what follows the netlink header. Return the replies."""
        self.send(body, flags)
        return self.replies()

    def send(self, body, flags):
        """Send a message, the replies to which are yet to be read."""
        self.sequence += 1
        self.socket.send(struct.pack("=IHHII", 16 + len(body), self.family, flags,
                                     self.sequence, 0) + body)

    def request(self, command, body=b"", flags=REQUEST | ACK):
        """Send a request with its attributes in `body`; return the replies."""
        return self.message(struct.pack("=BBH", command, 1, 0) + body, flags)

    def replies(self):
        """The replies to the last message."""
        reply = Reply()
        while not self.part(reply):
            pass
        return reply

    def part(self, reply):
        """Add the next replies to those that came before; return whether they are all."""
        data = self.socket.recv(self.ROOM)
        while data:
            length, kind, flags, sequence, _ = struct.unpack_from("=IHHII", data)
            body, data = data[16:length], data[(length + 3) & ~3:]
            if sequence != self.sequence:
                continue
            reply.interrupted |= bool(flags & DUMP_INTERRUPTED)
            if kind in (ERROR, DONE):
                self._finish(body, flags, kind)
                return True
            reply.messages.append(body[4:])
        return False

    @staticmethod
    def _finish(body, flags, kind):
        number = struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
        if number < 0:
            # The header of the request stands before the explanation of an error.
            start = 20 if kind == ERROR else 4
            raise Refusal(number, body[start:] if flags & ACK_TLVS else b"")


def unprivileged(function):
    """Run a function as nobody in a process of its own; return the errno of its refusal."""
    pid = os.fork()
    if pid == 0:
        status = 255
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            function()
            status = 0
        except Refusal as refusal:
            status = refusal.errno
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

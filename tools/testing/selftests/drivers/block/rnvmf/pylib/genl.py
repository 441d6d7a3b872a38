# SPDX-License-Identifier: GPL-2.0
"""A generic netlink client that builds messages byte by byte, so that they can be invalid."""

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
# Time limit of a reply, in seconds.
TIMEOUT = 20 * int(os.environ.get("RNVMF_SLOWDOWN", "1"))


def attribute(number, payload=b""):
    """Return an attribute with its padding."""
    data = struct.pack("=HH", 4 + len(payload), number) + payload
    return data + bytes(-len(data) % 4)


def attributes(data):
    """Yield the attributes in `data` as pairs of number and payload."""
    while len(data) >= 4:
        length, number = struct.unpack_from("=HH", data)
        yield number & 0x3fff, data[4:length]
        data = data[(length + 3) & ~3:]


class Refusal(Exception):
    """The kernel refused a request: errno and extended ack."""

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
    """All replies to a request."""

    def __init__(self):
        self.messages = []
        self.interrupted = False


class Socket:
    """A socket for a generic netlink family. With `port` 0 the kernel chooses the port ID."""

    # Size of a read. The kernel makes the parts of a dump no larger than the largest read so far.
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
        """Close the socket."""
        self.socket.close()

    def subscribe(self, group):
        """Join a multicast group of the family. The socket then is for notifications only."""
        self.socket.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, self.groups[group])
        self.socket.setblocking(False)

    def told(self):
        """Return the next notification as (command, attributes), or None if there is none yet.

        Raises OSError with ENOBUFS if notifications were lost.
        """
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
        """Send a message without reading its replies."""
        self.sequence += 1
        self.socket.send(struct.pack("=IHHII", 16 + len(body), self.family, flags,
                                     self.sequence, 0) + body)

    def request(self, command, body=b"", flags=REQUEST | ACK):
        """Send a request with its attributes in `body`; return the replies."""
        return self.message(struct.pack("=BBH", command, 1, 0) + body, flags)

    def replies(self):
        """Return the replies to the last message."""
        reply = Reply()
        while not self.part(reply):
            pass
        return reply

    def part(self, reply):
        """Read once and add to the replies; return whether they are complete."""
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
            # In an error the header of the request precedes the extended ack.
            start = 20 if kind == ERROR else 4
            raise Refusal(number, body[start:] if flags & ACK_TLVS else b"")


def unprivileged(function):
    """Run a function as nobody in a child process; return the errno of its refusal, or 0."""
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

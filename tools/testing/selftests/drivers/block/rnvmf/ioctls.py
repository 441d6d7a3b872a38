#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests the ioctls of a disk or a controller with valid and invalid calls.

    ioctls.py refused DEVICE     make calls that must be refused, each with its own error
    ioctls.py random DEVICE N    make N calls with random arguments; each must return
    ioctls.py gone DEVICE        make a call, print its result, wait for a line; all further calls
                                 must fail with ENODEV
    ioctls.py held DISK          make a call whose command is in memory that is not populated, print
                                 "held", wait for a line, populate the memory; the call must fail
                                 with ENODEV
    ioctls.py late DISK WHAT     like held, with the data of a read or a write instead of the
                                 command; the read must succeed
    ioctls.py keeping FILE       read a file to memory that is not populated, print "keeping", wait
                                 for a line, populate the memory
    ioctls.py may DEVICE MODE    open the device for reading (r) or read-write (w); print for each
                                 command whether it is allowed or denied: I/O by both ioctls,
                                 Identify and other admin commands
    ioctls.py patient DISK       send a read with the largest time-out
    ioctls.py hasty DISK         send a read and an Identify with a time-out of 1 ms
    ioctls.py failed DEVICE      read the block 8192 of a disk, or the Changed Namespace List of a
                                 controller; print the status, and whether there is data
    ioctls.py compat DEVICE      send an Identify as a 32-bit process does
    ioctls.py call DEVICE NAME   make a call without argument: reset, rescan or subsystem-reset
    ioctls.py open DEVICE NAME   print "opened", wait for a line, then make that call
    ioctls.py signal DEVICE NAME make that call, or send an admin command without data with this
                                 opcode; SIGUSR1 interrupts it
    ioctls.py send DEVICE OPCODE,... MS
                                 send admin commands without data, each with a time-out of MS
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import signal
import stat
import struct
import sys
import threading

ID, ADMIN, IO = 0x4e40, 0xc0484e41, 0xc0484e43
ADMIN64, IO64 = 0xc0504e47, 0xc0504e48
RESET, SUBSYSTEM_RESET, RESCAN = 0x4e44, 0x4e45, 0x4e46
PLAIN = {"reset": RESET, "subsystem-reset": SUBSYSTEM_RESET, "rescan": RESCAN}

# Missing in the module mmap.
PROT_NONE = 0

# struct nvme_passthru_cmd up to the result.
LAYOUT = struct.Struct("=BBHIIIQQII6II")
FIELDS = ("opcode", "flags", "reserved", "nsid", "cdw2", "cdw3", "metadata", "addr", "metadata_len",
          "data_len", "cdw10", "cdw11", "cdw12", "cdw13", "cdw14", "cdw15", "timeout_ms")

IDENTIFY, GET_LOG, SET_FEATURES, READ, WRITE = 0x06, 0x02, 0x09, 0x02, 0x01


def call(fd, number, **fields):
    """Make a passthrough ioctl; return its result or -errno, and the command after the call."""
    known = {name: fields.get(name, 0) for name in FIELDS}
    command = bytearray(LAYOUT.pack(*known.values()) + bytes(12))
    try:
        return fcntl.ioctl(fd, number, command), command
    except OSError as error:
        return -error.errno, command


def memory(size, protection=mmap.PROT_READ | mmap.PROT_WRITE):
    """Return a memory area and its address."""
    area = mmap.mmap(-1, size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), size, protection) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    return area, address


def is_controller(fd):
    """Return whether the device is a controller, which accepts no I/O commands."""
    return stat.S_ISCHR(os.fstat(fd).st_mode)


def refused(fd, nsid):
    """Calls that must be refused."""
    _, good = memory(2 << 20)
    _, constant = memory(4096, mmap.PROT_READ)
    _, nothing = memory(4096, PROT_NONE)
    read = {"opcode": READ, "nsid": nsid, "addr": good, "data_len": 512}
    identify = {"opcode": IDENTIFY, "cdw10": 1, "addr": good, "data_len": 4096}
    cases = [
        ("flags", IO, read | {"flags": 1}, errno.EINVAL),
        ("metadata", IO, read | {"metadata": good, "metadata_len": 8}, errno.EINVAL),
        ("another namespace", IO, read | {"nsid": nsid + 1}, errno.EINVAL),
        ("all namespaces", IO, read | {"nsid": 0xffffffff}, errno.EINVAL),
        ("read into constants", IO, read | {"addr": constant}, errno.EFAULT),
        ("read into nothing", IO, read | {"addr": nothing}, errno.EFAULT),
        ("read into the kernel", IO, read | {"addr": 0xffff888000000000}, errno.EFAULT),
        ("read of 4 GiB", IO, read | {"data_len": 0xffffffff}, errno.EINVAL),
        ("read of 2 MiB", IO64, read | {"data_len": 2 << 20}, errno.EINVAL),
        ("write from nothing", IO, read | {"opcode": WRITE, "addr": nothing}, errno.EFAULT),
        ("fabrics on the disk", IO, read | {"opcode": 0x7f}, errno.EOPNOTSUPP),
        ("admin flags", ADMIN, identify | {"flags": 0x40}, errno.EINVAL),
        ("identify into constants", ADMIN, identify | {"addr": constant}, errno.EFAULT),
        ("identify into nothing", ADMIN64, identify | {"addr": nothing}, errno.EFAULT),
        ("identify of 1 MiB", ADMIN, identify | {"data_len": 1 << 20}, errno.EINVAL),
        ("identify of 4 GiB", ADMIN, identify | {"data_len": 0xffffffff}, errno.EINVAL),
        ("set from nothing", ADMIN, {"opcode": 0xc1, "addr": nothing, "data_len": 8}, errno.EFAULT),
    ]
    cases += [(f"admin opcode {opcode:#x}", ADMIN, {"opcode": opcode}, errno.EOPNOTSUPP)
              for opcode in (0x00, 0x01, 0x04, 0x05, 0x08, 0x0c, 0x7f)]
    cases += [(f"feature {feature:#x}", ADMIN, {"opcode": SET_FEATURES, "cdw10": feature},
               errno.EOPNOTSUPP) for feature in (0x07, 0x0b, 0x0f, 0x16)]
    # Property Set, Connect, and a type with more bits; Property Get (4) is allowed.
    cases += [(f"fabrics type {kind:#x}", ADMIN, {"opcode": 0x7f, "nsid": kind}, errno.EOPNOTSUPP)
              for kind in (0, 1, 0x104)]
    if is_controller(fd):
        cases = [case for case in cases if case[1] not in (IO, IO64)]
        unknown = (ID, IO, IO64, 0x4e47, 0xc0504e41)
    else:
        unknown = (RESET, SUBSYSTEM_RESET, RESCAN, 0x4e41, 0xc0504e41, 0x40304e42)
    for name, number, fields, wanted in cases:
        result, _ = call(fd, number, **fields)
        if result != -wanted:
            raise SystemExit(f"{name}: result {result}, expected -{errno.errorcode[wanted]}")
    for number in unknown:
        result, _ = call(fd, number)
        if result != -errno.ENOTTY:
            raise SystemExit(f"ioctl {number:#x}: result {result}, expected -ENOTTY")
    try:
        fcntl.ioctl(fd, ADMIN, 8)
        raise SystemExit("a command at address 8 is accepted, expected EFAULT")
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise
    print(len(cases), "refused")


# Numbers of userfaultfd, missing in the module fcntl.
SYS_USERFAULTFD = 323
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_ZEROPAGE = 0xc018aa3f, 0xc020aa00, 0xc020aa04
UFFD_API, UFFD_MISSING = 0xaa, 1


def late_memory():
    """Return memory whose page faults block (userfaultfd), and its address.

    Also returns a function that waits for a page fault, and one that populates the page.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    area = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    faults = libc.syscall(SYS_USERFAULTFD, os.O_CLOEXEC)
    if faults < 0:
        raise OSError(ctypes.get_errno(), "userfaultfd")
    fcntl.ioctl(faults, UFFDIO_API, struct.pack("=QQQ", UFFD_API, 0, 0))
    place = struct.pack("=QQQQ", address, mmap.PAGESIZE, UFFD_MISSING, 0)
    fcntl.ioctl(faults, UFFDIO_REGISTER, place)

    def come():
        fcntl.ioctl(faults, UFFDIO_ZEROPAGE,
                    struct.pack("=QQQQ", address, mmap.PAGESIZE, 0, 0))

    return area, address, lambda: os.read(faults, 32), come


def held(fd):
    """Make a call whose command is in memory that is populated only after a line is read."""
    libc = ctypes.CDLL(None, use_errno=True)
    _late, address, wanted, come = late_memory()
    results = []

    def ask():
        result = libc.ioctl(fd, ctypes.c_ulong(IO), ctypes.c_void_p(address))
        results.append(ctypes.get_errno() if result < 0 else 0)

    asking = threading.Thread(target=ask)
    asking.start()
    wanted()
    print("held", flush=True)
    sys.stdin.readline()
    come()
    asking.join()
    if results != [errno.ENODEV]:
        raise SystemExit(f"ioctl on a removed disk: error {results}, expected ENODEV")


def late(fd, nsid, what):
    """Make a call whose data is in memory that is populated only after a line is read."""
    _late, address, wanted, come = late_memory()
    fields = {"opcode": {"read": READ, "write": WRITE}[what], "nsid": nsid, "addr": address,
              "data_len": 512}
    results = []
    asking = threading.Thread(target=lambda: results.append(call(fd, IO, **fields)[0]))
    asking.start()
    wanted()
    print("held", flush=True)
    sys.stdin.readline()
    come()
    asking.join()
    expected = {"read": 0, "write": -errno.ENODEV}[what]
    if results != [expected]:
        raise SystemExit(f"{what} on a removed disk: result {results}, expected {expected}")


def keeping(path):
    """Read a file to memory that is populated only after a line is read.

    A file of debugfs cannot be removed meanwhile.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _late, address, wanted, come = late_memory()
    fd = os.open(path, os.O_RDONLY)
    reading = threading.Thread(target=libc.read, args=(fd, ctypes.c_void_p(address), 1))
    reading.start()
    wanted()
    print("keeping", flush=True)
    sys.stdin.readline()
    come()
    reading.join()


def may(fd, nsid):
    """Print for each command whether it is denied. Allowed commands are sent."""
    _, good = memory(4096)
    # The other commands have no data; the target fails most of them.
    data = {READ: {"addr": good, "data_len": 512}}
    asked = [(f"{name} {opcode:#x}", number,
              {"opcode": opcode, "nsid": nsid} | data.get(opcode, {}))
             for name, number in (("io", IO), ("io64", IO64)) for opcode in range(256)]
    asked += [(f"identify {cns:#x}", ADMIN, {"opcode": IDENTIFY, "nsid": nsid, "cdw10": cns,
                                             "addr": good, "data_len": 4096}) for cns in range(256)]
    asked += [(f"admin {opcode:#x}", ADMIN64, {"opcode": opcode, "nsid": nsid})
              for opcode in range(256) if opcode != IDENTIFY]
    asked += [("flags", IO, {"opcode": WRITE, "nsid": nsid, "flags": 1}),
              ("another namespace", IO, {"opcode": WRITE, "nsid": nsid + 1})]
    if is_controller(fd):
        asked = [each for each in asked if each[1] in (ADMIN, ADMIN64)]
    for name, number, fields in asked:
        result, _ = call(fd, number, **fields)
        print(name, "denied" if result == -errno.EACCES else "allowed")


# long ioctl(int fd, unsigned int number, unsigned int argument), by the system call of i386:
# push rbx; mov eax, 54; mov ebx, edi; mov ecx, esi; int 0x80; pop rbx; ret
IOCTL32 = bytes.fromhex("53 b836000000 89fb 89f1 cd80 5b c3")

# Missing in the module mmap: memory below 2 GiB.
MAP_32BIT = 0x40


def compat(fd):
    """Send an Identify by the compat ioctl."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(IOCTL32)
    low = mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_32BIT)
    base = ctypes.addressof(ctypes.c_char.from_buffer(low))
    fields = {name: 0 for name in FIELDS}
    fields |= {"opcode": IDENTIFY, "cdw10": 1, "addr": base + 4096, "data_len": 4096}
    low.write(LAYOUT.pack(*fields.values()))
    ioctl32 = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint, ctypes.c_uint)(
        ctypes.addressof(ctypes.c_char.from_buffer(code)))
    result = ioctl32(fd, ADMIN, base)
    if result < 0:
        raise SystemExit(f"identify: {errno.errorcode[-result]}")
    print("status", result, "model", low[4096 + 24:4096 + 64].decode().strip())


def anything(fd, nsid, count):
    """Make calls with random arguments, some of them valid."""
    chance = random.Random(5)
    _, good = memory(1 << 20)
    outcomes = {}
    for _ in range(count):
        number = chance.choice((ADMIN, IO, ADMIN64, IO64, RESCAN))
        fields = {name: chance.choice((0, 0, 1, chance.getrandbits(3), chance.getrandbits(32)))
                  for name in FIELDS}
        fields["opcode"] = chance.choice((0, 1, 2, 6, chance.getrandbits(8), chance.getrandbits(8)))
        fields["flags"] = chance.choice((0, 0, 0, 0, chance.getrandbits(8)))
        fields["reserved"] = chance.getrandbits(16)
        fields["nsid"] = chance.choice((nsid, nsid, nsid, chance.getrandbits(32)))
        fields["metadata"] = fields["metadata_len"] = 0
        fields["addr"] = chance.choice((0, good, good, good + chance.getrandbits(12),
                                        chance.getrandbits(64)))
        fields["data_len"] = chance.choice((0, 4, 16, 512, 4096, 4097, 65536,
                                            chance.getrandbits(18)))
        # The default time-out: if a shorter one expired, the host would drop the connection.
        fields["timeout_ms"] = 0
        result, _ = call(fd, number, **fields)
        kind = errno.errorcode[-result] if result < 0 else "status" if result else "success"
        outcomes[kind] = outcomes.get(kind, 0) + 1
    print(outcomes)


def told(result):
    """Return a result as text: an error name or an NVMe status."""
    return errno.errorcode[-result] if result < 0 else hex(result)


def opened(fd, name):
    """Make a call after a line was read, on a device opened before."""
    print("opened", flush=True)
    sys.stdin.readline()
    print(told(call(fd, PLAIN[name])[0]))


def patient(fd, nsid):
    """Send a read with a time-out of seven weeks."""
    _kept, good = memory(4096)
    print(told(call(fd, IO, opcode=READ, nsid=nsid, addr=good, data_len=512,
                    timeout_ms=0xffffffff)[0]))


def hasty(fd, nsid):
    """Send commands with a time-out of 1 ms."""
    _kept, good = memory(4096)
    print(told(call(fd, IO, opcode=READ, nsid=nsid, addr=good, data_len=512, timeout_ms=1)[0]),
          told(call(fd, ADMIN, opcode=IDENTIFY, cdw10=1, addr=good, data_len=4096,
                    timeout_ms=1)[0]))


def failed(fd, nsid):
    """Send a command that the target fails after it has sent the data."""
    area, good = memory(4096)
    if is_controller(fd):
        result, _ = call(fd, ADMIN, opcode=GET_LOG, addr=good, data_len=4096, cdw10=1023 << 16 | 4)
    else:
        result, _ = call(fd, IO, opcode=READ, nsid=nsid, addr=good, data_len=4096, cdw10=8192,
                         cdw12=7)
    print(told(result), "with data" if any(area) else "without data")


def signalled(fd, name):
    """Make a call that SIGUSR1 interrupts; by libc, because fcntl.ioctl() would restart it."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    libc = ctypes.CDLL(None, use_errno=True)
    number, command = PLAIN.get(name), None
    if number is None:
        fields = {each: 0 for each in FIELDS} | {"opcode": int(name, 0)}
        number = ADMIN
        command = ctypes.create_string_buffer(LAYOUT.pack(*fields.values()) + bytes(12))
    print("asks", flush=True)
    result = libc.ioctl(fd, ctypes.c_ulong(number), command)
    print(told(-ctypes.get_errno() if result < 0 else result))


def gone(fd):
    """Make calls on a device that is removed while it is open."""
    _, good = memory(4096)
    identify = {"opcode": IDENTIFY, "cdw10": 1, "addr": good, "data_len": 4096}
    print(call(fd, ADMIN, **identify)[0], flush=True)
    sys.stdin.readline()
    for number in (ID, ADMIN, IO, RESET, RESCAN, 0x1234):
        result, _ = call(fd, number, **identify)
        if result != -errno.ENODEV:
            raise SystemExit(f"ioctl {number:#x} on a removed device: result {result}, "
                             "expected -ENODEV")


def main():
    """Parse the arguments and run a function."""
    what, device = sys.argv[1:3]
    if what == "keeping":
        keeping(device)
        return
    fd = os.open(device, os.O_RDONLY if sys.argv[3:] == ["r"] else os.O_RDWR)
    nsid = 1 if is_controller(fd) else fcntl.ioctl(fd, ID)
    of_namespace = {"refused": refused, "may": may, "patient": patient, "hasty": hasty,
                    "failed": failed}
    if what in of_namespace:
        of_namespace[what](fd, nsid)
    elif what == "random":
        anything(fd, nsid, int(sys.argv[3]))
    elif what == "held":
        held(fd)
    elif what == "late":
        late(fd, nsid, sys.argv[3])
    elif what == "compat":
        compat(fd)
    elif what == "call":
        result, _ = call(fd, PLAIN[sys.argv[3]])
        print(errno.errorcode[-result] if result < 0 else result)
    elif what == "open":
        opened(fd, sys.argv[3])
    elif what == "signal":
        signalled(fd, sys.argv[3])
    elif what == "send":
        for opcode in sys.argv[3].split(","):
            fields = {"opcode": int(opcode, 0), "timeout_ms": int(sys.argv[4])}
            print(told(call(fd, ADMIN, **fields)[0]))
    else:
        gone(fd)


if __name__ == "__main__":
    main()

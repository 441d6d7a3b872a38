# SPDX-License-Identifier: GPL-2.0
"""The settings of a VM, and the command line of the emulator for them."""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import typing

from . import build, cpio, image, root, stage, tsc

HERE = pathlib.Path(__file__).resolve().parent
GUEST = HERE.parent / "guest"

KERNEL_ARGUMENTS = [
    "console=ttyS0,115200", "loglevel=7", "printk.time=1", "panic=-1", "oops=panic",
    # Room for what a test logs, in which it looks for faults. Debian's default is 128 KiB.
    "log_buf_len=1M",
    # The tests of the kernel's cryptography take longer than the rest of the boot.
    "cryptomgr.notests",
    # The emulator does not speculate, and the mitigations are slow in it.
    "mitigations=off", "nokaslr",
    # A test does not need these, and without them it takes a tenth less.
    "lsm=capability", "audit=0", "psi=0", "cgroup_disable=memory", "init_on_alloc=0",
    "randomize_kstack_offset=off",
    "tsc=reliable", "no_timer_check", "random.trust_cpu=on",
    # guest/main starts the other CPUs when the devices have started.
    "maxcpus=1",
]

# An emulated CPU that runs freely may not run for long, if other processes use the host's CPUs.
FREE_ARGUMENTS = ["watchdog_thresh=60", "rcupdate.rcu_cpu_stall_timeout=100"]

# Factor for the time limits of selftests on emulated CPUs that run freely: the limits are meant for
# counted time.
FREE_SLOWDOWN = 4

# The shift of counted time for selftests: Documentation/build-and-test.rst has the measurements.
SELFTEST_SHIFT = 1


# CPU features with which the kernel copies and clears memory by string instructions of bytes. The
# emulator executes these byte by byte. Without the features the kernel uses eight bytes at a time.
BYTEWISE = ["erms", "fsrm", "fzrm", "fsrs", "fsrc"]


@dataclasses.dataclass
class Wire:
    """A network link between two VMs.

    The directory, which both VMs use, has a socket for each end, and the disk of the neighbour.
    """

    directory: pathlib.Path
    end: str

    ENDS = ("test", "neighbour")
    # Size of the disk in bytes.
    SIZE = 64 << 20

    @property
    def number(self):
        """The number of this end; it is the last byte of its MAC address."""
        return self.ENDS.index(self.end)

    @property
    def other_end(self):
        """The name of the other end."""
        return self.ENDS[1 - self.number]

    def disk(self):
        """Return the file of the disk; it is created once, and kept when the VM is killed."""
        path = self.directory / "disk"
        if not path.exists():
            with open(path, "wb") as file:
                file.truncate(self.SIZE)
        return path


@dataclasses.dataclass
class Settings:
    """The settings of a run."""

    command: list[str]
    cpus: int = 2
    memory: int = 2048
    # Counted time: an instruction takes 2 ** icount nanoseconds, and a wait takes nothing of the
    # host's time. None: the host's clock.
    icount: typing.Optional[int] = None
    # Number of CPUs that the kernel does not use. With counted time, the CPUs take turns: a turn is
    # the time until the next timer expires, divided by the number of CPUs.
    unused_cpus: int = 0
    share: typing.Optional[pathlib.Path] = None
    out: typing.Optional[pathlib.Path] = None
    timeout: int = 600
    # Factor for the time limits of selftests. Those that repeat something do so more often if > 1.
    times: int = 1
    console: typing.Optional[pathlib.Path] = None
    interactive: bool = False
    wire: typing.Optional[Wire] = None
    # File descriptor whose data COMMAND reads from the port "input".
    input: typing.Optional[int] = None
    # Whether the CPU has the features BYTEWISE.
    bytewise: bool = False
    # Plugin of the emulator; its argument `out` is the directory `out`.
    plugin: typing.Optional[pathlib.Path] = None


def hardware_virtualisation():
    """Return whether KVM works: /dev/kvm may exist although the CPU has no virtualisation."""
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return bool(re.search(r"^flags\s*:.*\b(vmx|svm)\b", flags, re.MULTILINE)
                and os.access("/dev/kvm", os.R_OK | os.W_OK))


def _free(settings):
    """Return whether emulated CPUs run freely, each in a thread of the host."""
    return settings.icount is None and not hardware_virtualisation()


def slowdown(tree, settings):
    """Return the factor for time limits that are meant for a stock kernel and counted time."""
    return tree.slowdown * (FREE_SLOWDOWN if _free(settings) else 1)


def _payload(tree, settings):
    """Return the part of the initramfs that is made for each run."""
    archive = cpio.Archive()
    stage.sources(archive, tree)
    archive.file("init", (GUEST / "init").read_bytes(), 0o755)
    contents = {"rnvmf/main": ((GUEST / "main").read_bytes(), 0o755),
                "rnvmf/command": (_script(settings.command), 0o755),
                "rnvmf/settings": (_settings(tree, settings), 0o644)}
    if build.PROGRAM.exists():
        contents[stage.PROGRAM] = (build.PROGRAM.read_bytes(), 0o755)
    for path, source in stage.files(tree).items():
        contents[path] = (source.read_bytes(), 0o644)
    for path, (data, mode) in contents.items():
        archive.parents(f"upper/{path}")
        archive.file(f"upper/{path}", data, mode)
    return archive.finish()


def _script(command):
    return f"exec {shlex.join(command)}\n".encode()


def _settings(tree, settings):
    """Return the shell variables for guest/main; an empty value means no."""
    values = {"share": "yes" if settings.share else "", "out": "yes" if settings.out else "",
              "wire": "yes" if settings.wire else "", "slowdown": slowdown(tree, settings),
              "times": settings.times, "interactive": ""}
    if settings.interactive:
        columns, rows = shutil.get_terminal_size()
        values.update(interactive="yes", columns=columns, rows=rows,
                      TERM=os.environ.get("TERM", "linux"))
    return "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in values.items()).encode()


def _kernel_arguments(settings):
    arguments = [*KERNEL_ARGUMENTS, f"nr_cpus={settings.cpus}"]
    if _free(settings):
        # Otherwise the kernel measures the frequency of the TSC by a timer. The result is wrong if
        # the host is busy meanwhile: the clock of one VM ran 38 times too fast.
        arguments += [*FREE_ARGUMENTS, f"tsc_early_khz={tsc.khz()}"]
    return " ".join(arguments)


def _folder(tag, path, readonly=True):
    options = f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap"
    return ["-virtfs", options + (",readonly=on" if readonly else "")]


def _processor(settings):
    if hardware_virtualisation() and settings.icount is None:
        return ["-accel", "kvm", "-smp", str(settings.cpus), "-cpu", "host"]
    features = [] if settings.bytewise else [f"{name}=off" for name in BYTEWISE]
    threads = ["thread=multi"] if settings.icount is None else \
        ["thread=single", "-icount", f"shift={settings.icount},sleep=off"]
    return ["-accel", f"tcg,{threads[0]}", *threads[1:],
            "-smp", str(settings.cpus + settings.unused_cpus),
            "-cpu", ",".join(["max,la57=off", *features])]


def _memory(settings, images):
    """Return the options for the memory, and for images as persistent memory: /dev/pmem0 first."""
    sizes = [path.stat().st_size for path in images]
    # The emulator rounds the address of each image up.
    most = settings.memory + sum(sizes) // (1 << 20) + 1024 * len(images)
    line = ["-m", f"{settings.memory}M,slots={len(images)},maxmem={most}M"]
    for number, (path, size) in enumerate(zip(images, sizes)):
        line += ["-object", f"memory-backend-file,id=image{number},mem-path={path},size={size},"
                            "share=off,readonly=on,rom=off",
                 "-device", f"virtio-pmem-pci,memdev=image{number}"]
    return line


def _port(name, file):
    return ["-chardev", f"file,id={name},path=/dev/fd/{file}"]


def _ports(settings, ports):
    line = [*_port("console", ports["console"]), "-serial", "chardev:console",
            # The CPU that writes waits for the port, instead of a thread of the host.
            "-device", "virtio-serial-pci,ioeventfd=off"]
    for name in ("stdout", "stderr", "status"):
        line += [*_port(name, ports[name]),
                 "-device", f"virtserialport,chardev={name},name={name}"]
    if settings.input is not None:
        line += ["-chardev", f"file,id=input,path=/dev/null,input-path=/dev/fd/{settings.input}",
                 "-device", "virtserialport,chardev=input,name=input"]
    if settings.interactive:
        line += ["-chardev", "stdio,id=terminal,signal=off",
                 "-device", "virtconsole,chardev=terminal"]
    return line


def _wire(wire):
    line = ["-netdev", f"dgram,id=wire,local.type=unix,local.path=/wire/{wire.end},"
                       f"remote.type=unix,remote.path=/wire/{wire.other_end}",
            "-device", f"virtio-net-pci,netdev=wire,romfile=,mac=52:54:00:00:00:0{wire.number}"]
    if wire.end == "neighbour":
        line += ["-drive", f"if=none,id=kept,file=/wire/{wire.disk().name},format=raw",
                 "-device", "virtio-blk-pci,drive=kept,serial=kept"]
    return line


def initramfs(tree, settings):
    """Return the contents of the initramfs: the kernel's part, then that of this run."""
    return tree.initramfs.read_bytes() + _payload(tree, settings)


def command(tree, settings, initramfs_file, ports):
    """Return the command line of the VM; `ports` has writable file descriptors, by port name."""
    line = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
            "-display", "none", "-machine", "q35", *_processor(settings),
            *_memory(settings, [image.ensure(), tree.modules_image]), "-kernel", tree.bootable,
            "-initrd", f"/dev/fd/{initramfs_file}", "-append", _kernel_arguments(settings)]
    binds = []
    for tag, path in (("share", settings.share), ("out", settings.out)):
        if path:
            line += _folder(tag, f"/{tag}", readonly=tag == "share")
            binds.append((path, f"/{tag}"))
    if settings.wire:
        line += _wire(settings.wire)
        binds.append((settings.wire.directory, "/wire"))
    if settings.plugin:
        line += ["-plugin", f"file={settings.plugin},out=/out"]
    return root.command([*line, *_ports(settings, ports)], binds=binds)

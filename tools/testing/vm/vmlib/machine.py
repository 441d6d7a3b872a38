# SPDX-License-Identifier: GPL-2.0
"""The VM: what it is made of, and the emulator's command line for it."""

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
    # The emulator has no speculation to guard against, and the guards cost it much.
    "mitigations=off", "nokaslr",
    # An emulated processor that shares the host's may be away for long.
    "watchdog_thresh=60", "rcupdate.rcu_cpu_stall_timeout=100",
    "tsc=reliable", "no_timer_check", "random.trust_cpu=on",
    # The others start when the devices have: see guest/main.
    "maxcpus=1",
]


# Features of the processor for which the kernel copies and clears memory by an instruction that the
# emulator carries out byte by byte. Without them the kernel does eight at a time.
BYTEWISE = ["erms", "fsrm", "fzrm", "fsrs", "fsrc"]


@dataclasses.dataclass
class Wire:
    """A cable to another VM, in a directory that both have: the sockets of its ends, which have the
    names of these, and the disk of the neighbour's."""

    directory: pathlib.Path
    end: str

    ENDS = ("test", "neighbour")
    # The disk's, in bytes.
    SIZE = 64 << 20

    @property
    def number(self):
        """The number of the end, by which it is told from the other one on the wire."""
        return self.ENDS.index(self.end)

    @property
    def other_end(self):
        """The name of the other VM's end."""
        return self.ENDS[1 - self.number]

    def disk(self):
        """The file of the disk, which is made at first and outlives a VM."""
        path = self.directory / "disk"
        if not path.exists():
            with open(path, "wb") as file:
                file.truncate(self.SIZE)
        return path


@dataclasses.dataclass
class Settings:
    """What the user asked for."""

    command: list[str]
    cpus: int = 2
    memory: int = 2048
    icount: bool = False
    share: typing.Optional[pathlib.Path] = None
    out: typing.Optional[pathlib.Path] = None
    timeout: int = 600
    # How many times longer selftests may take, of which those that repeat something make use.
    times: int = 1
    console: typing.Optional[pathlib.Path] = None
    interactive: bool = False
    wire: typing.Optional[Wire] = None
    # A file descriptor, from which COMMAND reads what comes through the port "input".
    input: typing.Optional[int] = None
    # Whether the processor has BYTEWISE.
    bytewise: bool = False
    # A plugin of the emulator, which is told where `out` is.
    plugin: typing.Optional[pathlib.Path] = None


def hardware_virtualisation():
    """Whether the processor offers it and we may use it; /dev/kvm alone proves nothing."""
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return bool(re.search(r"^flags\s*:.*\b(vmx|svm)\b", flags, re.MULTILINE)
                and os.access("/dev/kvm", os.R_OK | os.W_OK))


def _payload(tree, settings):
    """The part of the initramfs that belongs to this run."""
    archive = cpio.Archive()
    archive.file("init", (GUEST / "init").read_bytes(), 0o755)
    contents = {"rnvmf/main": ((GUEST / "main").read_bytes(), 0o755),
                "rnvmf/command": (_script(settings.command), 0o755),
                "rnvmf/settings": (_settings(tree, settings), 0o644)}
    if build.PROGRAM.exists():
        contents["usr/local/bin/rnvmf"] = (build.PROGRAM.read_bytes(), 0o755)
    for path, source in stage.files(tree).items():
        contents[path] = (source.read_bytes(), 0o644)
    for path, (data, mode) in contents.items():
        archive.parents(f"upper/{path}")
        archive.file(f"upper/{path}", data, mode)
    return archive.finish()


def _script(command):
    return f"exec {shlex.join(command)}\n".encode()


def _settings(tree, settings):
    """Variables for the guest's script; empty means no."""
    values = {"share": "yes" if settings.share else "", "out": "yes" if settings.out else "",
              "wire": "yes" if settings.wire else "", "slowdown": tree.slowdown,
              "times": settings.times, "interactive": ""}
    if settings.interactive:
        columns, rows = shutil.get_terminal_size()
        values.update(interactive="yes", columns=columns, rows=rows,
                      TERM=os.environ.get("TERM", "linux"))
    return "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in values.items()).encode()


def _kernel_arguments(settings):
    arguments = list(KERNEL_ARGUMENTS)
    if not settings.icount and not hardware_virtualisation():
        # The kernel would measure it by a timer, and believe what it measured while the host was
        # busy elsewhere: the clock of one VM ran 38 times as fast as it should.
        arguments.append(f"tsc_early_khz={tsc.khz()}")
    return " ".join(arguments)


def _folder(tag, path, readonly=True):
    options = f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap"
    return ["-virtfs", options + (",readonly=on" if readonly else "")]


def _processor(settings):
    if settings.icount:
        return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-smp", "1",
                "-cpu", "max,la57=off"]
    if hardware_virtualisation():
        return ["-accel", "kvm", "-smp", str(settings.cpus), "-cpu", "host"]
    features = [] if settings.bytewise else [f"{name}=off" for name in BYTEWISE]
    return ["-accel", "tcg,thread=multi", "-smp", str(settings.cpus),
            "-cpu", ",".join(["max,la57=off", *features])]


def _disk(name, path):
    return ["-drive", f"if=none,id={name},file={path},format=raw,readonly=on",
            "-device", f"virtio-blk-pci,drive={name}"]


def _port(name, file):
    return ["-chardev", f"file,id={name},path=/dev/fd/{file}"]


def _ports(settings, ports):
    line = [*_port("console", ports["console"]), "-serial", "chardev:console",
            "-device", "virtio-serial-pci"]
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
    """The contents of the initramfs: the kernel's part, then that of this run."""
    return tree.initramfs.read_bytes() + _payload(tree, settings)


def command(tree, settings, initramfs_file, ports):
    """The command line of the VM; `ports` are file descriptors by name, opened for writing."""
    line = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
            "-display", "none", "-machine", "q35", *_processor(settings),
            "-m", f"{settings.memory}M", "-kernel", tree.bootable,
            "-initrd", f"/dev/fd/{initramfs_file}", "-append", _kernel_arguments(settings)]
    line += _disk("root", image.ensure()) + _disk("modules", tree.modules_image)
    line += _folder("src", build.CHECKOUT) + _folder("kernel", tree.build)
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

# SPDX-License-Identifier: GPL-2.0
"""Describes the machine: kernel, modules, RDMA devices, controllers. Reads only."""

import os
import pathlib
import platform
import shutil
import subprocess

SYS = pathlib.Path("/sys")
MODULES = ("rrdma", "rnvmf", "nvme_rdma_rust", "nvme_rdma", "nvme_core", "nvme_fabrics", "rdma_cm",
           "ib_core")
PROGRAMS = ("rnvmf", "nvme", "fio", "rdma", "wipefs")
# Attributes in sysfs.
DEVICE = ("node_type", "fw_ver", "hca_type", "board_id", "node_guid")
PORT = ("link_layer", "state", "phys_state", "rate", "lid")
CONTROLLER = ("transport", "address", "state", "subsysnqn", "model", "serial", "firmware_rev",
              "cntrltype", "queue_count", "sqsize", "kato")


def read(path):
    """Return the text of a file without white space around it; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def output(command):
    """Return the output of a command; None if it fails or does not exist."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def attributes(directory, names):
    """Return the attributes that exist."""
    found = {name: read(directory / name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def target(link):
    """Return the last part of a symbolic link's target; None if there is no link."""
    return pathlib.Path(os.readlink(link)).name if link.is_symlink() else None


def children(directory):
    """Return the entries of a directory, sorted; none if it does not exist."""
    return sorted(directory.iterdir()) if directory.is_dir() else []


def _kernel():
    release = platform.release()
    return {"release": release, "version": platform.version(), "machine": platform.machine(),
            "distribution": (platform.freedesktop_os_release().get("PRETTY_NAME")
                             if pathlib.Path("/etc/os-release").exists() else None),
            "taint": read(pathlib.Path("/proc/sys/kernel/tainted")),
            "lockdown": read(SYS / "kernel/security/lockdown"),
            "btf": (SYS / "kernel/btf/vmlinux").exists(), "cpus": os.cpu_count(),
            "numa_nodes": len(list((SYS / "devices/system/node").glob("node[0-9]*"))),
            "iommu_groups": len(children(SYS / "kernel/iommu_groups"))}


def _modules():
    found = {}
    for name in MODULES:
        directory = SYS / "module" / name
        if directory.is_dir():
            parameters = children(directory / "parameters")
            found[name] = {"file": output(["modinfo", "-n", name]),
                           "signer": output(["modinfo", "-F", "signer", name]),
                           "taint": read(directory / "taint"),
                           "parameters": {each.name: read(each) for each in parameters}}
    return found


def _port(port):
    kinds = children(port / "gid_attrs/types")
    return {"number": port.name, **attributes(port, PORT),
            "gid_types": sorted({text for text in map(read, kinds) if text})}


def _devices():
    found = []
    for device in children(SYS / "class/infiniband"):
        parent = device / "device"
        found.append({"name": device.name, **attributes(device, DEVICE),
                      "driver": target(parent / "driver"),
                      "pci": attributes(parent, ("vendor", "device", "subsystem_vendor",
                                                 "subsystem_device", "numa_node")),
                      "netdevs": [each.name for each in children(parent / "net")],
                      "ports": [_port(port) for port in children(device / "ports")]})
    return found


def _controllers():
    return [{"name": each.name, **attributes(each, CONTROLLER)}
            for kind in ("nvme", "rnvmf") for each in children(SYS / "class" / kind)
            if kind == "rnvmf" or (read(each / "transport") or "").startswith("rdma")]


def describe():
    """Return the description."""
    programs = {name: output([name, "--version"]) for name in PROGRAMS if shutil.which(name)}
    return {"kernel": _kernel(), "modules": _modules(), "devices": _devices(),
            "controllers": _controllers(), "programs": programs,
            # Names the module of each connection.
            "connections": output(["rdma", "resource", "show", "cm_id"])}

# SPDX-License-Identifier: GPL-2.0
"""The Debian mirror that apt on this machine is configured to use."""

import dataclasses
import pathlib
import re
import shutil
import tempfile

from .log import ToolError
from .process import run

APT_HELPER = "/usr/lib/apt/apt-helper"
FORMAT = "$(REPO_URI)|$(ORIGIN)|$(LABEL)|$(COMPONENT)"


@dataclasses.dataclass(frozen=True)
class Release:
    """A suite as its Release file describes it."""

    codename: str
    version: str


def _targets(options=()):
    return run(["apt-get", *options, "indextargets", "--format", FORMAT,
                "Created-By: Packages"]).splitlines()


def _debian(lines):
    for line in lines:
        uri, origin, label, component = line.split("|")
        # The security archive has Origin: Debian, too, but a different label.
        if (origin, label, component) == ("Debian", "Debian", "main"):
            return uri
    return None


def _fresh_targets():
    """Return the output of indextargets after an update: a new machine has no package lists."""
    with tempfile.TemporaryDirectory() as state:
        options = private_state(pathlib.Path(state))
        run(["apt-get", *options, "-qq", "update"])
        return _targets(options)


def private_state(path):
    """Return apt options that keep apt's state below `path`, so that apt does not need root."""
    for sub in ("lists/partial", "archives/partial"):
        (path / sub).mkdir(parents=True, exist_ok=True)
    (path / "status").touch()
    return ["-o", f"Dir::State={path}", "-o", f"Dir::State::lists={path}/lists",
            "-o", f"Dir::State::status={path}/status", "-o", f"Dir::Cache={path}",
            "-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none"]


def uri():
    """Return the URI of the mirror: of the first Debian main archive in apt's sources."""
    if not shutil.which("apt-get"):
        raise ToolError("apt-get not found: a Debian machine is required")
    found = _debian(_targets()) or _debian(_fresh_targets())
    if not found:
        raise ToolError("no Debian archive in the sources of apt: add one")
    return found


def release(suite, mirror):
    """Return the release of a suite, from its Release file: `stable` is an alias of a codename."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "Release"
        run([APT_HELPER, "download-file", f"{mirror}dists/{suite}/Release", path])
        text = path.read_text(encoding="utf-8")
    fields = dict(re.findall(r"^(\w+): (.*)$", text, re.MULTILINE))
    return Release(fields["Codename"], fields.get("Version", "rolling"))


def proxies():
    """Return the proxy settings of apt, as `name "value"` lines."""
    dump = run(["apt-config", "dump"]).splitlines()
    return [line for line in dump if re.match(r"Acquire::https?::Proxy\b.* \"..*\";", line)]

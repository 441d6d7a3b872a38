# SPDX-License-Identifier: GPL-2.0
"""The index of the mirror: the release of Debian stable, and the kernels of its backports.

It is kept for a day. Until then a run whose objects are in the cache needs no network.
"""

import collections
import dataclasses
import json
import re
import time

from . import cache, mirror
from .log import ToolError, note, step
from .process import run

KEPT_SECONDS = 24 * 3600
# Before a download, an older index is fetched again.
JUST_NOW_SECONDS = 600
OLDEST = (7, 2)
_HEADERS = re.compile(r"linux-headers-(\d+\.\d+\.\d+\S*)-amd64$")
_FLAVOUR = re.compile(r"-(cloud|rt)$")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A stock kernel; the mirror has all its packages in one version."""

    release: str
    version: str
    packages: tuple

    @property
    def number(self):
        """The version as a tuple of integers, for ordering."""
        return tuple(int(part) for part in re.match(r"[\d.]+", self.release)[0].split("."))


@dataclasses.dataclass(frozen=True)
class Index:
    """Debian stable's codename and point release, and the kernels on offer, newest first."""

    codename: str
    version: str
    kernels: tuple


def _needed(base, short):
    """Return the packages of a kernel, each as a list of alternative names."""
    release = f"{base}-amd64"
    return [[f"linux-base-{release}"], [f"linux-modules-{release}"],
            [f"linux-binary-{release}", f"linux-binary-unsigned-{release}"],
            [f"linux-headers-{release}"], [f"linux-source-{short}"]]


def _complete(versions):
    """Return the kernels with all packages in the version of the headers, newest first."""
    found = []
    for name in versions:
        match = _HEADERS.match(name)
        if not match or _FLAVOUR.search(match[1]):
            continue
        short = ".".join(match[1].split(".")[:2])
        if tuple(int(part) for part in short.split(".")) < OLDEST:
            continue
        for version in versions[name]:
            chosen = [next((name for name in names if version in versions.get(name, ())), None)
                      for names in _needed(match[1], short)]
            if all(chosen):
                found.append(Kernel(f"{match[1]}-amd64", version, tuple(chosen)))
    return tuple(sorted(found, key=lambda kernel: kernel.number, reverse=True))


def _versions(text):
    versions = collections.defaultdict(set)
    for stanza in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version): (.*)$", stanza, re.MULTILINE))
        if fields.get("Package", "").startswith("linux-"):
            versions[fields["Package"]].add(fields["Version"])
    return dict(versions)


def apt(codename, uri):
    """Return apt options for a private state with one source: the backports of `codename`."""
    state = cache.directory() / f"apt-{cache.key(codename, uri)}"
    options = mirror.private_state(state)
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (state / "sources.list").write_text(
        f"deb [signed-by={keyring} arch=amd64] {uri} {codename}-backports main\n",
        encoding="utf-8")
    return [*options, "-o", f"Dir::Etc::sourcelist={state}/sources.list",
            "-o", "Dir::Etc::sourceparts=/dev/null",
            "-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]


def _fetch():
    with step("package index of the Debian mirror"):
        uri = mirror.uri()
        stable = mirror.release("stable", uri)
        options = apt(stable.codename, uri)
        run(["apt-get", *options, "-qq", "update"])
        files = run(["apt-get", *options, "indextargets", "--format", "$(FILENAME)",
                     "Created-By: Packages"]).split()
        text = run([mirror.APT_HELPER, "cat-file", *files])
    return Index(stable.codename, stable.version, _complete(_versions(text)))


def _read(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    kernels = tuple(Kernel(item["release"], item["version"], tuple(item["packages"]))
                    for item in data["kernels"])
    return Index(data["codename"], data["version"], kernels)


def _path():
    return cache.directory() / "index.json"


def _young(seconds):
    return _path().exists() and time.time() - _path().stat().st_mtime < seconds


def refresh():
    """Fetch the index again if it is older than JUST_NOW_SECONDS; for use before a download."""
    with cache.lock("index"):
        if _young(JUST_NOW_SECONDS):
            return
        index = _fetch()
        if not index.kernels:
            raise ToolError(f"{index.codename}-backports has no kernel {OLDEST[0]}.{OLDEST[1]} or "
                            "newer with all its packages")
        temporary = _path().with_suffix(".tmp")
        temporary.write_text(json.dumps(dataclasses.asdict(index), indent=1), encoding="utf-8")
        temporary.rename(_path())


def load():
    """Return the index; fetch it again after KEPT_SECONDS. Without network, use the old one."""
    if not _young(KEPT_SECONDS):
        try:
            refresh()
        except ToolError as error:
            if not _path().exists():
                raise
            note(f"  using the old package index: {error}")
    return _read(_path())

# SPDX-License-Identifier: GPL-2.0
"""The root: a Debian stable system with the compilers, the checkers and the emulator.

`command()` runs a program in it. The root is mounted read-only, so that no run affects another.
"""

import os
import pathlib
import subprocess

from . import cache, host, index, mirror
from .log import step
from .process import pipe, run

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parents[3]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"

# Filters for large parts of packages that nothing here reads. The last matching pattern decides.
DPKG_PATHS = [
    *(f"path-exclude=/usr/share/{name}/*"
      for name in ("doc", "info", "man", "locale", "doc-base", "lintian", "icons")),
    "path-exclude=/usr/lib/llvm-*/lib/*.a",
    "path-exclude=/usr/lib/gcc/*san.a",
    "path-exclude=/usr/src/rustc-*",
    "path-include=/usr/src/rustc-*/library/*",
]

OPTIONS = ["--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io",
           "--aptopt=APT::Install-Recommends false"]


def packages():
    """Return the packages of the root."""
    lines = (HERE / "packages").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def name():
    """Return the name of the root in the cache."""
    found = index.load()
    return f"root-{found.codename}-" + cache.key(found.codename, found.version, packages(),
                                                 DPKG_PATHS, OPTIONS)


def ensure():
    """Return the directory of the root; make it if missing."""
    return cache.ensure(name(), _make)


def _make(directory):
    host.ensure()
    found = index.load()
    uri = mirror.uri()
    sources = [f"deb {uri} {found.codename} main"]
    bootstrap = ["mmdebstrap", *OPTIONS, f"--include={','.join(packages())}",
                 *(f"--dpkgopt={pattern}" for pattern in DPKG_PATHS),
                 *(f"--aptopt={line}" for line in mirror.proxies()), found.codename]
    with step(f"root of Debian {found.codename} {found.version}"):
        if os.geteuid() == 0:
            # A new mount namespace, so that nothing stays mounted after an interruption.
            run(["unshare", "--mount", *bootstrap, directory, *sources])
        else:
            # Only root can make device nodes and set owners. Nothing in the root needs either.
            pipe([*bootstrap, "-", *sources],
                 ["tar", "-C", directory, "-x", "--no-same-owner", "--exclude=./dev/*"])
    (directory / "etc/resolv.conf").unlink(missing_ok=True)
    (directory / "etc/resolv.conf").touch()
    directory.chmod(0o755)


def _environment():
    passed = ("TERM", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
             "NO_PROXY", "MAKEFLAGS")
    kept = {variable: os.environ[variable] for variable in passed if variable in os.environ}
    return {**kept, "PATH": PATH, "LANG": "C.UTF-8", "HOME": "/tmp",
            "CARGO_HOME": str(cache.directory() / "cargo"), "CARGO_HTTP_CAINFO": CERTIFICATES,
            "SSL_CERT_FILE": CERTIFICATES, "PIP_CERT": CERTIFICATES}


def command(argv, *, cwd=None, binds=(), environment=None, root=None):
    """Return the command line that runs `argv` in the root.

    The checkout and the cache are mounted writable at their own paths. `binds` are other writable
    mounts: pairs of a path outside and a path inside.
    """
    root = root or ensure()
    (cache.directory() / "cargo").mkdir(exist_ok=True)
    line = ["bwrap", "--die-with-parent", "--unshare-pid", "--clearenv"]
    for entry in sorted(root.iterdir()):
        if entry.is_symlink():
            line += ["--symlink", os.readlink(entry), f"/{entry.name}"]
        elif entry.name in ("usr", "etc", "var", "opt"):
            line += ["--ro-bind", entry, f"/{entry.name}"]
    line += ["--dev", "/dev", "--dev-bind-try", "/dev/kvm", "/dev/kvm", "--proc", "/proc",
             "--tmpfs", "/tmp", "--tmpfs", "/run",
             "--ro-bind-try", "/etc/ssl", "/etc/ssl",
             "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
    for path in (CHECKOUT, cache.directory()):
        line += ["--bind", path, path]
    for outside, inside in binds:
        line += ["--bind", outside, inside]
    for variable, value in {**_environment(), **(environment or {})}.items():
        line += ["--setenv", variable, value]
    line += ["--chdir", cwd or CHECKOUT, "--", *argv]
    return [str(arg) for arg in line]


def call(argv, **options):
    """Run a program in the root, with our terminal, and return its exit status."""
    return subprocess.run(command(argv, **options), check=False).returncode


def quietly(argv, **options):
    """Run a program in the root and return its output; raise an error if it fails."""
    return run(command(argv, **options))

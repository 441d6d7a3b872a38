# SPDX-License-Identifier: GPL-2.0
"""Stand-ins for the libraries of the I/O engines of fio that nothing in the VM uses.

fio links to a library for each of its engines, and these to fifty more. At each start of fio, the
loader takes 180 ms of counted time for them. A stand-in has the functions that fio needs at its
start, and each of them aborts.
"""

import collections
import re

from . import root

LIBRARIES = ["libgfapi.so.0", "libnbd.so.0", "libnfs.so.14", "libpmem.so.1", "librados.so.2",
             "librbd.so.1"]
DIRECTORY = "usr/lib/x86_64-linux-gnu"

_NEEDED = re.compile(r"^ +U (\w+)(?:@([\w.]+))?", re.MULTILINE)
_DEFINED = re.compile(r"^[0-9a-f]+ [TW] (\w+)", re.MULTILINE)


def stand_ins(directory):
    """Make the stand-ins; return pairs of each file and the path that it takes in the image."""
    needed = dict(_NEEDED.findall(_symbols("usr/bin/fio")))
    return [(_stand_in(directory, library, needed), f"{DIRECTORY}/{library}")
            for library in LIBRARIES]


def _symbols(file):
    return root.quietly(["nm", "-D", "--with-symbol-versions", f"/{file}"])


def _stand_in(directory, library, needed):
    """Make one stand-in; `needed` has the symbol version of each function that fio calls."""
    functions = set(_DEFINED.findall(_symbols(f"{DIRECTORY}/{library}"))) & needed.keys()
    nodes = "".join(f"{version} {{ {'; '.join(sorted(names))}; }};\n"
                    for version, names in _by_version(functions, needed).items())
    source, script = directory / f"{library}.c", directory / f"{library}.map"
    source.write_text("#include <stdlib.h>\n" + "".join(
        f"void {name}(void) {{ abort(); }}\n" for name in sorted(functions)), encoding="utf-8")
    script.write_text(nodes, encoding="utf-8")
    root.quietly(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{library}",
                  *([f"-Wl,--version-script={script}"] if nodes else []),
                  "-o", directory / library, source])
    return directory / library


def _by_version(functions, needed):
    versions = collections.defaultdict(list)
    for name in functions:
        if needed[name]:
            versions[needed[name]].append(name)
    return versions

# SPDX-License-Identifier: GPL-2.0
"""The modules of a crate, and the imports between its files."""

from typing import NamedTuple

from . import rust


class Import(NamedTuple):
    """An import: `file` names an item of the file `target`. `test` if only test code does."""

    file: str
    line: int
    target: str
    name: str
    test: bool


class Split(NamedTuple):
    """An inherent `impl` in `file` of the type `name`, which the file `target` defines."""

    file: str
    line: int
    target: str
    name: str


class _Item(NamedTuple):
    """An item to which a path resolves: its module and its name."""

    scope: rust.Scope
    name: str


class _Crate(NamedTuple):
    """Another crate, to which a path resolves."""

    name: str


class Crate:
    """A crate. `root` is the path of its root file from the top of the checkout."""

    def __init__(self, top, root):
        self.top = top
        self.files = {}
        self.root = self._load(root, None, "crate", False, root.rpartition("/")[0])
        self.macros = {}
        for scope in self.scopes():
            for name in scope.macros:
                self.macros[name] = scope

    def _load(self, file, parent, name, test, directory):
        """Read a file and the files of its modules, which are in `directory`."""
        scope = rust.Scope(file, parent, name, test)
        rust.parse((self.top / file).read_text(encoding="utf-8"), scope)
        self.files[file] = scope
        self._load_declared(scope, directory, file.rpartition("/")[0])
        return scope

    def _load_declared(self, scope, directory, beside):
        for child in scope.declared:
            if child.path:
                path = f"{beside}/{child.path}"
                inside = path.rpartition("/")[0]
            else:
                path, inside = self._find(directory, child.name)
            if path:
                scope.children[child.name] = self._load(
                    path, scope, child.name, child.test or scope.test, inside)
        for name, child in scope.children.items():
            if child.file == scope.file:
                self._load_declared(child, f"{directory}/{name}", beside)

    def _find(self, directory, name):
        """Return the file of a module and the directory of its child modules, or None twice."""
        for path in (f"{directory}/{name}.rs", f"{directory}/{name}/mod.rs"):
            if (self.top / path).is_file():
                return path, f"{directory}/{name}"
        return None, None

    def scopes(self):
        """Yield all modules."""
        for scope in self.files.values():
            yield from scope.inner()

    def tests(self):
        """Return the files with test code only."""
        return {file for file, scope in self.files.items() if scope.test}

    def resolve(self, scope, segments, seen=frozenset()):
        """Resolve a path in a module to a module, an item or a crate; return None if that fails."""
        first, rest = segments[0], segments[1:]
        if first == "crate":
            found = self.root
        elif first == "self":
            found = scope
        elif first == "super":
            found = scope.parent
        else:
            found = self._lookup(scope, first, bool(rest), seen, True) or _Crate(first)
        for index, segment in enumerate(rest):
            if not isinstance(found, rust.Scope):
                return found
            if segment == "super":
                found = found.parent
                continue
            found = self._lookup(found, segment, index + 1 < len(rest), seen, False) or \
                _Item(found, segment)
        return found

    def _lookup(self, scope, name, leads_on, seen, inside):
        """Resolve a name in a module. If a module and an item have it, `leads_on` decides."""
        if (id(scope), name) in seen:
            return None
        seen = seen | {(id(scope), name)}
        use = scope.imports.get(name) or (scope.local.get(name) if inside else None)
        if name in scope.children and (leads_on or name not in scope.items):
            found = scope.children[name]
        elif name in scope.items:
            found = _Item(scope, name)
        elif use:
            found = self.resolve(scope, use.segments, seen)
        elif scope is self.root and name in self.macros:
            found = _Item(self.macros[name], name)
        else:
            found = self._from_globs(scope, name, leads_on, seen)
        return found

    def _from_globs(self, scope, name, leads_on, seen):
        for use in scope.globs:
            module = self.resolve(scope, use.segments, seen)
            if isinstance(module, rust.Scope):
                found = self._lookup(module, name, leads_on, seen, False)
                if found:
                    return found
        return None

    def _target(self, scope, segments):
        """Return the file and the name of the item of this crate that a path names, or None."""
        found = self.resolve(scope, segments)
        if isinstance(found, _Item):
            return found.scope.file, found.name
        return None

    def imports(self):
        """Return the imports between files, one for each line and imported file."""
        found = {}
        for scope in self.scopes():
            for use in self._uses(scope):
                target = self._target(scope, use.segments)
                if target and target[0] != scope.file and not self._reexports(use, scope, target):
                    one = Import(scope.file, use.line, *target, use.test)
                    found.setdefault((one.file, one.line, one.target), one)
        return sorted(found.values())

    def _uses(self, scope):
        yield from scope.imports.values()
        yield from scope.local.values()
        yield from scope.paths
        # A glob of an enum is an import. For globs of modules, the words in the code are resolved.
        yield from scope.globs
        if scope.globs:
            for (word, test), line in scope.words.items():
                if word not in scope.items and word not in scope.imports:
                    yield rust.Use((word,), line, test)

    @staticmethod
    def _reexports(use, scope, target):
        """Return whether a module re-exports an item of one of its child modules."""
        room = scope.file.removesuffix(".rs").removesuffix("/mod")
        if not scope.parent:
            room = scope.file.rpartition("/")[0]
        return use.public and target[0].startswith(f"{room}/")

    def splits(self):
        """Return the `impl` blocks that are not in the file of their type."""
        found = []
        for scope in self.scopes():
            for one in scope.impls:
                target = self._target(scope, one.segments)
                if target and target[0] != scope.file and not one.test:
                    found.append(Split(scope.file, one.line, *target))
        return sorted(found)

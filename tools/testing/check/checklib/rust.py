# SPDX-License-Identifier: GPL-2.0
"""Parse Rust sources into tokens, modules, items and paths, without a compiler."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

IDENT, STRING, MARK = "ident", "string", "mark"

_TOKEN = re.compile(r"""
    (?P<blank>\s+|//[^\n]*)
  | (?P<comment>/\*)
  | (?P<raw>[bc]?r(?P<hashes>\#*)"(?:.*?)"(?P=hashes))
  | (?P<string>[bc]?"(?:\\.|[^"\\])*")
  | (?P<char>b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\])')
  | (?P<lifetime>'\w+)
  | (?P<ident>(?:r\#)?[A-Za-z_]\w*)
  | (?P<number>\d\w*)
  | (?P<mark>::|\.\.=|\.\.\.|\.\.|->|=>|.)
""", re.VERBOSE | re.DOTALL)
_COMMENT_MARK = re.compile(r"/\*|\*/")

DEFINING = {"struct", "enum", "union", "trait", "type", "const", "static", "fn", "mod"}
_OPENING, _CLOSING = "([", ")]"


class Token(NamedTuple):
    """An identifier, a string or a punctuation mark."""

    kind: str
    text: str
    line: int


def _after_comment(text, at):
    """Return the end of a block comment, which may have nested ones."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def tokens(text):
    """Return the tokens of a source, without comments, numbers, characters and lifetimes."""
    found, at, line = [], 0, 1
    while at < len(text):
        matched = _TOKEN.match(text, at)
        kind, end = matched.lastgroup, matched.end()
        if kind == "comment":
            end = _after_comment(text, at)
        elif kind in ("raw", "hashes", "string"):
            found.append(Token(STRING, matched[0].partition('"')[2].rstrip("#")[:-1], line))
        elif kind == "ident":
            found.append(Token(IDENT, matched[0].removeprefix("r#"), line))
        elif kind == "mark":
            found.append(Token(MARK, matched[0], line))
        line += text.count("\n", at, end)
        at = end
    return found


class Item(NamedTuple):
    """A definition; `kind` is its keyword."""

    kind: str
    name: str
    line: int
    test: bool


class Use(NamedTuple):
    """A path, in a `use` or elsewhere in the code."""

    segments: tuple
    line: int
    test: bool
    public: bool = False


class Impl(NamedTuple):
    """An inherent `impl` of a type."""

    segments: tuple
    line: int
    test: bool


class Declared(NamedTuple):
    """A module in a file of its own: its name, its `#[path]` or None, whether it is for tests."""

    name: str
    path: str
    test: bool


@dataclass
class Scope:
    """A module: a file, or a `mod` block in a file."""

    file: str
    parent: "Scope"
    name: str
    test: bool
    first: int = 1
    last: int = 0
    children: dict = field(default_factory=dict)
    declared: list = field(default_factory=list)
    # All definitions; those outside of functions and other items, by name.
    definitions: list = field(default_factory=list)
    items: dict = field(default_factory=dict)
    # `use` declarations: of the module, by name; inside of functions, by name; globs.
    imports: dict = field(default_factory=dict)
    local: dict = field(default_factory=dict)
    globs: list = field(default_factory=list)
    paths: list = field(default_factory=list)
    impls: list = field(default_factory=list)
    # Macros with #[macro_export].
    macros: dict = field(default_factory=dict)
    # Identifiers that are not in a path: (identifier, whether in a test) -> its first line.
    words: dict = field(default_factory=dict)

    def inner(self):
        """Yield the module, and its `mod` blocks in the same file."""
        yield self
        for child in self.children.values():
            if child.file == self.file:
                yield from child.inner()


class _Block(NamedTuple):
    """The state of the parser before a brace. `module`: the brace opens a module."""

    scope: Scope
    depth: int
    test: bool
    module: bool


class _Parser:
    """Parses the tokens of a file in one pass."""

    def __init__(self, source, scope):
        self.tokens = source
        self.at = 0
        self.scope = scope
        self.test = scope.test
        # Attributes of the next item: #[test] or #[cfg(test)], #[path], #[macro_export].
        self.marked, self.path, self.exported = False, None, False
        self.public = False
        self.depth = self.nesting = 0
        self.blocks = []

    def peek(self, ahead=0):
        """Return the text of a token ahead; an empty string after the end."""
        at = self.at + ahead
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def is_ident(self, ahead=0):
        """Return whether a token ahead is an identifier."""
        at = self.at + ahead
        return at < len(self.tokens) and self.tokens[at].kind == IDENT

    @property
    def in_test(self):
        """Whether the current token is in test code."""
        return self.test or self.marked

    def run(self):
        """Parse all tokens."""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind == IDENT:
                self._word(token)
            elif token.text == "#" and self.peek(1) in ("[", "!"):
                self._attribute()
            else:
                self._mark(token)
        self.scope.last = self.tokens[-1].line if self.tokens else 1

    def _mark(self, token):
        if token.kind != MARK:
            pass
        elif token.text == "{":
            self._open(self.scope, False)
        elif token.text == "}" and self.blocks:
            block = self.blocks.pop()
            if block.module:
                self.scope.last = token.line
            self.scope, self.depth, self.test = block.scope, block.depth, block.test
            self._end_item()
        elif token.text in _OPENING:
            self.nesting += 1
        elif token.text in _CLOSING:
            self.nesting -= 1
        elif token.text in (";", ",") and self.nesting == 0:
            self._end_item()
        self.at += 1

    def _open(self, scope, module):
        self.blocks.append(_Block(self.scope, self.depth, self.test, module))
        self.test = self.in_test
        self.scope, self.depth = scope, 0 if module else self.depth + 1
        self._end_item()

    def _end_item(self):
        self.marked, self.path, self.exported, self.public = False, None, False, False

    def _balanced(self, opening, closing):
        """Skip a group that begins here; return the tokens between its brackets."""
        depth, start = 0, self.at
        while self.at < len(self.tokens):
            depth += {opening: 1, closing: -1}.get(self.peek(), 0)
            self.at += 1
            if depth == 0:
                break
        return self.tokens[start + 1:self.at - 1]

    def _attribute(self):
        inner = self.peek(1) == "!"
        self.at += 2 if inner else 1
        if self.peek() != "[":
            return
        texts = [token.text for token in self._balanced("[", "]")]
        if inner or not texts:
            return
        if texts == ["test"] or texts[:4] == ["cfg", "(", "test", ")"] or \
                texts[:5] == ["cfg", "(", "all", "(", "test"]:
            self.marked = True
        elif texts[:2] == ["path", "="]:
            self.path = texts[2]
        elif texts[0] == "macro_export":
            self.exported = True

    def _word(self, token):
        text, before = token.text, self.peek(-1)
        if text == "pub":
            self.public = True
            self.at += 1
            if self.peek() == "(" and self.peek(1) in ("crate", "super", "self", "in"):
                self._balanced("(", ")")
        elif text == "use" and before not in ("::", "."):
            self._use()
        elif text == "macro_rules" and self.peek(1) == "!":
            self.at += 2
            self._define("macro")
        elif text == "impl" and self.depth == 0 and before != ":":
            self._impl()
        elif text in DEFINING and self._names_something(text):
            self.at += 1
            self._mod() if text == "mod" else self._define(text)
        else:
            self._path(token, before)

    def _names_something(self, keyword):
        """Return whether a keyword begins a definition, unlike `*const T`, `fn(T)` and `@type`."""
        follows = self.peek(1)
        return self.is_ident(1) and self.peek(-1) not in ("*", "@") and \
            follows not in ("fn", "unsafe", "extern", "mut", "move", "async") and \
            not (keyword == "union" and self.peek(2) not in ("{", "<"))

    def _define(self, kind):
        token = self.tokens[self.at]
        item = Item(kind, token.text, token.line, self.in_test)
        self.at += 1
        self.scope.definitions.append(item)
        if self.depth == 0:
            self.scope.items.setdefault(item.name, item)
        if kind == "macro" and self.exported:
            self.scope.macros[item.name] = item

    def _mod(self):
        name, line = self.peek(), self.tokens[self.at].line
        self.scope.definitions.append(Item("mod", name, line, self.in_test))
        self.at += 1
        if self.peek() == ";":
            self.scope.declared.append(Declared(name, self.path, self.in_test))
        elif self.peek() == "{":
            inner = Scope(self.scope.file, self.scope, name, self.in_test, first=line)
            self.scope.children[name] = inner
            self._open(inner, True)
            self.at += 1

    def _impl(self):
        start = self.at
        self.at += 1
        if self.peek() == "<":
            self._angles()
        if self.is_ident():
            line, path = self.tokens[self.at].line, self._segments()
            if self.peek() == "<":
                self._angles()
            if self.peek() in ("{", "where"):
                self.scope.impls.append(Impl(path, line, self.in_test))
        # Parse the generics and the type again, as any other code.
        self.at = start + 1

    def _angles(self):
        depth = 0
        while self.at < len(self.tokens):
            depth += {"<": 1, ">": -1}.get(self.peek(), 0)
            self.at += 1
            if depth == 0:
                break

    def _segments(self):
        """Skip a path that begins here; return its segments."""
        found = [self.peek()]
        self.at += 1
        while self.peek() == "::" and self.is_ident(1):
            found.append(self.peek(1))
            self.at += 2
        return tuple(found)

    def _path(self, token, before):
        if before in ("::", "."):
            self.at += 1
            return
        segments = self._segments()
        if len(segments) > 1:
            self.scope.paths.append(Use(segments, token.line, self.in_test))
        else:
            self.scope.words.setdefault((segments[0], self.in_test), token.line)

    def _use(self):
        public = self.public
        self.at += 1
        if self.peek() == "::":
            self.at += 1
        elif self.peek() == "<":
            # Captures, as in `impl Trait + use<'a>`.
            return
        self._tree((), public)
        while self.at < len(self.tokens) and self.peek() != ";":
            self.at += 1

    def _tree(self, prefix, public):
        while self.is_ident():
            prefix, line = (*prefix, self.peek()), self.tokens[self.at].line
            self.at += 1
            if self.peek() != "::":
                self._leaf(Use(prefix, line, self.in_test, public))
                return
            self.at += 1
        if self.peek() == "*":
            line = self.tokens[self.at].line
            self.at += 1
            self.scope.globs.append(Use(prefix, line, self.in_test, public))
        elif self.peek() == "{":
            self.at += 1
            while self.at < len(self.tokens) and self.peek() != "}":
                self._tree(prefix, public)
                if self.peek() == ",":
                    self.at += 1
            self.at += 1

    def _leaf(self, use):
        segments = use.segments
        if segments[-1] == "self":
            segments = segments[:-1]
        name = segments[-1]
        if self.peek() == "as":
            name = self.peek(1)
            self.at += 2
        names = self.scope.imports if self.depth == 0 else self.scope.local
        names.setdefault(name if name != "_" else f"_ {use.line} {segments}",
                         use._replace(segments=segments))


def parse_tokens(source, scope):
    """Parse tokens into a module; return the module."""
    _Parser(source, scope).run()
    return scope


def parse(text, scope):
    """Parse a source into a module; return the module."""
    return parse_tokens(tokens(text), scope)

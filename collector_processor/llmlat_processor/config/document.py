"""YAML as it is read here: mappings, sequences and text, each with its line; nothing is built.

Scalars stay text, since what is meant by `on`, `0123` or `12:30` is for the schema to say. The
parser is asked for events, one by one: however deep a file goes, and however often it repeats
itself by aliases, what is made of it is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import yaml

from llmlat_processor.config.problems import Keys, Problem, dotted
from llmlat_processor.config.variables import quoted, substituted

MOST_BYTES: Final = 256 << 10
MOST_VALUES: Final = 10_000
DEEPEST: Final = 20
LONGEST_KEY: Final = 200

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_MERGE: Final = "<<"

_Opening = yaml.MappingStartEvent | yaml.SequenceStartEvent

Value = object
"""A mapping of text to values, a list of values, a `Text`, or None."""


class Node:
    """A value of the file, and where it stands (plain slots: filled as the file is read)."""

    __slots__ = ("children", "count", "given", "key", "line", "lines", "value")

    def __init__(self, value: Value, line: int) -> None:
        """Begin with nothing below it."""
        self.value = value
        self.line = line
        self.key: str | None = None  # that waits for its value, while the file is read
        self.children: dict[str | int, Node] = {}
        self.lines: dict[str | int, int] = {}  # of the keys
        self.given: set[str] = set()  # keys that stand here, and are not merged in
        self.count = 1  # values in it, itself included

    def add(self, key: str | int, child: Node, line: int) -> None:
        """Put a value below it, or in place of the one that is there."""
        self.children[key] = child
        self.lines[key] = line
        if isinstance(self.value, dict):
            self.value[key] = child.value
        elif isinstance(self.value, list):
            self.value.append(child.value)


class Document:
    """A file that has been read.

    Attributes:
        top: its mapping.
        problems: what is wrong with it as YAML, and with its variables.
        broken: where values are missing because of that.
    """

    __slots__ = ("_node", "broken", "problems")

    def __init__(self, node: Node, problems: list[Problem], broken: set[Keys]) -> None:
        """Keep what `read` has made."""
        self._node = node
        self.problems = problems
        self.broken = broken

    @property
    def top(self) -> dict[str, object]:
        """The mapping of the file; a new one each time, as far as its first level goes."""
        value = self._node.value
        return dict(value) if isinstance(value, dict) else {}

    def line_of(self, path: Keys) -> int:
        """Line of a key; of the nearest one around it where the file does not have it."""
        node, line = self._node, self._node.line
        for step in path:
            if step not in node.children:
                break
            node, line = node.children[step], node.lines[step]
        return line


class _FaultError(Exception):
    """Reading ends here."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.line = line


def read(content: bytes, environ: Mapping[str, str]) -> Document:
    """Read a file, as far as it can be read.

    Args:
        content: of the file.
        environ: the variables that it may refer to.
    """
    reading = _Reading(environ)
    try:
        node = reading.read(_decoded(content))
    except _FaultError as fault:
        reading.problems.append(Problem(fault.line, "", str(fault)))
        reading.broken.add(())
        node = Node({}, 0)
    return Document(node, reading.problems, reading.broken)


def _decoded(content: bytes) -> str:
    if len(content) > MOST_BYTES:
        raise _FaultError(
            0, f"{len(content):,} bytes are no config file; at most {MOST_BYTES:,} are"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _FaultError(line, "not UTF-8; save the file in that encoding") from None


def _events(content: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(content, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        words = ", ".join(filter(None, (error.context, error.problem)))
        raise _FaultError(line, f"not YAML: {words}{_hint(content, line)}") from None
    except yaml.reader.ReaderError as error:
        line = content.count("\n", 0, error.position) + 1
        raise _FaultError(line, "not YAML: there is a character that no text has") from None


def _hint(content: str, line: int) -> str:
    """Braces around a reference are read as those of a mapping where one is written in braces."""
    at = content.splitlines()[line - 1 : line]
    found = re.search(r"(?<!\")\$\{[^}]*\}", at[0]) if at else None
    return f"; write quotes around {found[0]}" if found else ""


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


class _Reading:
    """What is open while a file is read."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.problems: list[Problem] = []
        self.broken: set[Keys] = set()
        self.open: list[Node] = []
        self.anchors: dict[str, Node | None] = {}  # None: not closed yet
        self.names: list[str | None] = []  # anchors of what is open
        self.count = 0
        self.documents = 0

    def read(self, content: str) -> Node:
        """The mapping at the top."""
        top = None
        for event in _events(content):
            node = self._take(event)
            if node is not None and not self.open:
                top = node
        if top is None or top.value is None:
            raise _FaultError(0, "empty; `llmlat config schema` says what may stand in it")
        if not isinstance(top.value, dict):
            raise _FaultError(top.line, "not a mapping; it begins with keys, like `mode: inline`")
        return top

    def _take(self, event: yaml.Event) -> Node | None:
        """What has been closed by an event, put where it belongs."""
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise _FaultError(_line(event), "a second document; a config file has one")
        if isinstance(event, (_Opening, yaml.ScalarEvent)) and event.tag is not None:
            raise _FaultError(_line(event), f"a tag, {event.tag!r}; tags are not read here")
        if isinstance(event, _Opening):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            node, name = self.open.pop(), self.names.pop()
            return self._close(node, name)
        elif isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        return None

    def _begin(self, event: _Opening) -> None:
        line = _line(event)
        if len(self.open) >= DEEPEST:
            raise _FaultError(line, f"more than {DEEPEST} levels deep; no key is")
        if self._awaits_key():
            raise _FaultError(line, "a key that is no text")
        self._count(1, line)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.open.append(Node({} if is_mapping else [], line))
        self.names.append(event.anchor)
        if event.anchor is not None:
            self.anchors[event.anchor] = None

    def _scalar(self, event: yaml.ScalarEvent) -> Node | None:
        line = _line(event)
        self._count(1, line)
        if self._awaits_key():
            self._key(self.open[-1], event.value, line)
            return None
        is_plain = event.style is None
        value: object = None
        if not (is_plain and event.value in _NULLS):
            try:
                value = substituted(event.value, self.environ)
            except ValueError as error:
                self.broken.add(self._path())
                self.problems.append(Problem(line, dotted(self._path()), str(error)))
        return self._close(Node(value, line), event.anchor)

    def _key(self, parent: Node, key: str, line: int) -> None:
        if not key.isprintable() or len(key) > LONGEST_KEY:
            raise _FaultError(line, f"a key that cannot be told of, {quoted(key)}")
        parent.key = key
        if key in parent.given:
            words = f"given twice, first in line {parent.lines[key]}; leave one of them"
            self.problems.append(Problem(line, dotted(self._path()), words))
        parent.given.add(key)
        parent.lines[key] = line

    def _close(self, node: Node, anchor: str | None) -> Node:
        if anchor is not None:
            self.anchors[anchor] = node
        return self._put(node, node.line)

    def _alias(self, event: yaml.AliasEvent) -> Node:
        line = _line(event)
        if event.anchor not in self.anchors:
            raise _FaultError(
                line, f"*{event.anchor} stands for nothing; there is no &{event.anchor}"
            )
        node = self.anchors[event.anchor]
        if node is None:
            raise _FaultError(line, f"*{event.anchor} stands inside of what it stands for")
        if self._awaits_key():
            raise _FaultError(line, "a key that is an alias")
        self._count(node.count, line)
        return self._put(node, line)

    def _count(self, more: int, line: int) -> None:
        """Keep the file in its bounds; what an alias stands for counts as often as it is used."""
        self.count += more
        if self.count > MOST_VALUES:
            raise _FaultError(
                line, f"more than {MOST_VALUES:,} values, with all that aliases stand for"
            )

    def _awaits_key(self) -> bool:
        """Whether what comes next is the key of a mapping."""
        if not self.open:
            return False
        innermost = self.open[-1]
        return isinstance(innermost.value, dict) and innermost.key is None

    def _put(self, node: Node, line: int) -> Node:
        """Put a value below what is open."""
        if not self.open:
            return node
        parent = self.open[-1]
        parent.count += node.count
        if parent.key is None:
            parent.add(len(parent.children), node, line)
            return node
        key, parent.key = parent.key, None
        if key == _MERGE:
            self._merge(parent, node, line)
        else:
            parent.add(key, node, parent.lines[key])
        return node

    def _merge(self, parent: Node, node: Node, line: int) -> None:
        """`<<: *other`: what the other mapping has, unless it is given here."""
        if not isinstance(node.value, dict):
            raise _FaultError(line, "<< takes in a mapping, and this is none")
        for key, child in node.children.items():
            if key not in parent.children:
                parent.add(key, child, node.lines[key])

    def _path(self) -> Keys:
        """The keys that lead to what is read now."""
        return tuple(
            len(node.children) if node.key is None else node.key
            for node in self.open
            if node.key is not None or isinstance(node.value, list)
        )

"""The names of other producers as Python source: one generated module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from alias_rules import SURFACES
from aliases import NO_PHASE, Alias, Pattern, Producer
from registry import Registry, constant

_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}

_CLASSES = '''
class Alias(NamedTuple):
    """What one producer calls something, and between which edges.

    Attributes:
        surface: Where the name stands.
        key: The name: of response fields a path with dots, of headers in lower case.
        phase: The phase with these very edges; None where there is none.
        unit_ns: Nanoseconds in one unit of the value; 0 of what is no duration.
        start: The instant from which it counts, in the producer's terms.
        end: The instant up to which it counts.
        minus: The name beside it of which the value is taken away first; empty for none.
        reason: Why it is no phase, where it is neither that nor anything below.
        attribute: The attribute that counts the same; empty where there is none.
        less: How many to take away from the value for that attribute.
        instant: `first_output`: up to that, counted from the operation's start; else empty.
        edge: Of an event: `start` or `end` of its phase; else empty.
        until: Names of spans of which the next one ends a phase that such an event starts.
        operation: It holds in operations whose name begins so; empty for all.
        evidence: `bounded` where the value is only an upper bound.
    """

    surface: Surface
    key: str
    phase: Phase | None
    unit_ns: int
    start: str
    end: str
    minus: str = ""
    reason: str = ""
    attribute: str = ""
    less: int = 0
    instant: str = ""
    edge: str = ""
    until: tuple[str, ...] = ()
    operation: str = ""
    evidence: Evidence = Evidence.REPORTED


class Scope(NamedTuple):
    """An instrumentation scope, and the resource attribute without which it is somebody else's."""

    name: str
    resource: str = ""


class Mark(NamedTuple):
    """A response field or header without which the others are somebody else's."""

    surface: Surface
    key: str


class Pattern(NamedTuple):
    """Which spans are meant: all that is given has to hold.

    Attributes:
        name: The span's whole name.
        name_starts: How it begins.
        has: An attribute that it has.
    """

    name: str = ""
    name_starts: str = ""
    has: str = ""


class Producer(NamedTuple):
    """One product in a range of versions.

    Attributes:
        name: Of the entry.
        title: Of the product.
        versions: In which the entry was seen to hold.
        scopes: Of its spans; empty where it has none that are read.
        marks: What of a response has to be there before the rest means anything.
        operations: Which of its spans the aliases tell about.
        containers: Which of its spans only group others.
        aliases: Its names.
    """

    name: str
    title: str
    versions: str
    scopes: tuple[Scope, ...]
    marks: tuple[Mark, ...]
    operations: tuple[Pattern, ...]
    containers: tuple[Pattern, ...]
    aliases: tuple[Alias, ...]

    def on(self, surface: Surface) -> tuple[Alias, ...]:
        """Its names on one surface, in the order in which they were written down."""
        return tuple(alias for alias in self.aliases if alias.surface is surface)


'''


def lines(registry: Registry, head: Iterable[str]) -> Iterator[str]:
    """The unformatted lines of the module, after those of its head."""
    yield from head
    yield from ("class Surface(Value):", '    """Where a name stands."""', "")
    yield from (f'    {surface.upper()} = "{surface}"' for surface in SURFACES)
    yield from ("", *_CLASSES.splitlines())
    for producer in registry.producers:
        yield from _producer(producer)
    names = "".join(f"{constant(producer.name)}," for producer in registry.producers)
    yield f"PRODUCERS: Final[tuple[Producer, ...]] = ({names})"


def _producer(producer: Producer) -> Iterator[str]:
    yield f"{constant(producer.name)}: Final = Producer("
    for field in ("name", "title", "versions"):
        yield f"    {field}={_text(getattr(producer, field))},"
    scopes = [f"Scope({_all(name, resource)})" for name, resource in producer.scopes]
    marks = [f"Mark({_surface(surface)}, {_text(key)})" for surface, key in producer.marks]
    yield f"    scopes={_tuple(scopes)},"
    yield f"    marks={_tuple(marks)},"
    yield f"    operations={_tuple(map(_pattern, producer.operations))},"
    yield f"    containers={_tuple(map(_pattern, producer.containers))},"
    yield f"    aliases={_tuple(map(_alias, producer.aliases))},"
    yield ")"


def _pattern(pattern: Pattern) -> str:
    fields = ("name", "name_starts", "has")
    said = {field: getattr(pattern, field) for field in fields if getattr(pattern, field)}
    return f"Pattern({', '.join(f'{field}={_text(value)}' for field, value in said.items())})"


def _alias(alias: Alias) -> str:
    has_phase = alias.phase not in ("", NO_PHASE)
    said = [
        _surface(alias.surface),
        _text(alias.key),
        f"Phase.{alias.phase.upper()}" if has_phase else "None",
        str(_NS.get(alias.unit, 0)),
        _text(alias.start),
        _text(alias.end),
    ]
    for field in ("minus", "reason", "attribute", "instant", "edge", "operation"):
        if getattr(alias, field):
            said.append(f"{field}={_text(getattr(alias, field))}")
    if alias.less:
        said.append(f"less={alias.less}")
    if alias.until:
        said.append(f"until={_tuple(map(_text, alias.until))}")
    if alias.evidence != "reported":
        said.append(f"evidence=Evidence.{alias.evidence.upper()}")
    return f"Alias({', '.join(said)},)"


def _surface(surface: str) -> str:
    return f"Surface.{surface.upper()}"


def _all(*texts: str) -> str:
    return ", ".join(_text(text) for text in texts if text)


def _tuple(items: Iterable[str]) -> str:
    return "(" + "".join(f"{item}, " for item in items) + ")"


def _text(text: str) -> str:
    """A literal; a long one in pieces, which the formatter leaves as they are."""
    words, pieces = text.split(" "), [""]
    for word in words:
        if len(pieces[-1]) + len(word) > 70:
            pieces.append("")
        pieces[-1] += word + " "
    pieces[-1] = pieces[-1][:-1]
    return " ".join(_quoted(piece) for piece in pieces)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

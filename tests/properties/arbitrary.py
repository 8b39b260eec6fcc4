"""Spans that no program would emit: every known attribute with every type of value."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from llmlat_processor.model import (
    CLIENT,
    SERVER,
    Attributes,
    AttributeValue,
    Event,
    Link,
    Resource,
    Span,
)
from llmlat_semconv import attributes, events
from llmlat_semconv.phases import (
    Phase,
    duration_attribute,
    reported_duration_attribute,
    reported_evidence_attribute,
)
from llmlat_semconv.values import AttemptOutcome, Boundary, LinkRelationship, OperationName
from tests.cases.case_format import EPOCH_NS

NAMES: Final = sorted(
    {value for name, value in vars(attributes).items() if name.isupper()}
    | {duration_attribute(phase) for phase in Phase}
    | {reported_duration_attribute(phase) for phase in Phase}
    | {reported_evidence_attribute(phase) for phase in Phase}
)
WORDS: Final = sorted(
    member.value
    for enum in (Phase, OperationName, Boundary, AttemptOutcome, LinkRelationship)
    for member in enum
)
EVENTS: Final = sorted(value for name, value in vars(events).items() if name.isupper())
IDS: Final = (b"", b"a", b"b", b"c", b"d", b"\xff" * 8)
STAMPS: Final = (0, -1, 1, 2**63, 2**64 - 1, EPOCH_NS)

STRANGE_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 2**70, 1e300, -1e300, float("inf"), float("nan")),
    *("", "?", b"", b"\xff", [], [None], [[1], "a"], ["6363"]),
)

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=3),
    st.binary(max_size=3),
)
_values: SearchStrategy[AttributeValue] = st.one_of(_scalars, st.lists(_scalars, max_size=2))
_likely = st.one_of(st.floats(0, 1), st.sampled_from(WORDS), st.booleans(), st.integers(0, 3))
_attributes = st.dictionaries(st.sampled_from(NAMES), st.one_of(_likely, _values), max_size=5)
_stamps = st.one_of(
    st.integers(EPOCH_NS, EPOCH_NS + 20),
    st.sampled_from(STAMPS),
    st.integers(0, 2**64 - 1),
)
_resources = st.builds(
    Resource,
    _attributes,
    service=st.sampled_from(("a", "b")),
    process=st.sampled_from(("p", "q")),
    domain=st.sampled_from(("p", "q")),
    weak=st.booleans(),
)
_links = st.builds(
    Link, st.sampled_from((b"trace", b"other", b"")), st.sampled_from(IDS), _attributes
)
_events = st.builds(Event, st.sampled_from(EVENTS), _stamps, _attributes)


@st.composite
def _span(draw: DrawFn) -> Span:
    start_ns = draw(_stamps)
    lengths: Any = st.one_of(st.integers(0, 20), st.integers(-(2**63), 2**63))
    return Span(
        b"trace",
        draw(st.sampled_from(IDS)),
        draw(st.sampled_from(IDS)),
        draw(st.text(max_size=3)),
        draw(st.integers(0, 6)),
        start_ns,
        start_ns + draw(lengths),
        draw(_resources),
        flags=draw(st.sampled_from((0, 0x100, 0x300))),
        is_error=draw(st.booleans()),
        scope=draw(st.sampled_from(("", "llmlat_processor"))),
        attributes=draw(_attributes),
        attribute_count=draw(st.integers(0, 9)),
        events=draw(st.lists(_events, max_size=2)),
        links=draw(st.lists(_links, max_size=2)),
        raw=draw(st.binary(max_size=2)),
    )


def spans_that_hold(name: str, value: AttributeValue) -> list[Span]:
    """A caller, its callee and its attempt, all of whose attributes of one name hold one value."""
    held = {name: value}
    place = Resource(held, service="a", process="p", domain="p", weak=False)
    happened = [Event(event, EPOCH_NS + 2, held) for event in EVENTS]
    linked = [Link(b"trace", b"c", held), Link(b"other", b"c", held)]
    call = {attributes.GEN_AI_OPERATION_NAME: OperationName.CHAT.value, **held}

    def span(name: bytes, parent: bytes, kind: int, attributes: Attributes) -> Span:
        start_ns = EPOCH_NS + len(parent)
        return Span(
            b"trace",
            name,
            parent,
            "",
            kind,
            start_ns,
            start_ns + 10 - 2 * len(parent),
            place,
            attributes=attributes,
            events=happened,
            links=linked,
        )

    return [
        span(b"r", b"", CLIENT, call),
        span(b"c", b"r", SERVER, held),
        span(b"d", b"r", CLIENT, call),
    ]


def arbitrary_spans(max_size: int = 8) -> SearchStrategy[list[Span]]:
    """Spans of one trace with ids that collide, stamps of any size and values of any type."""
    return st.lists(_span(), max_size=max_size)

"""What is written by hand are the bytes that protobuf's own classes write, whatever it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from llmlat_processor.model import AttributeValue, Event, Link
from llmlat_processor.model import Resource as ModelResource
from llmlat_processor.model import Span as ModelSpan
from llmlat_processor.wire import as_sent
from llmlat_processor.wire.fields import instant, varint
from llmlat_processor.wire.key_values import attribute, attributes
from llmlat_processor.wire.slim import join_envelope, split_envelope
from tests.llmlat_processor.otlp import pairs
from tests.properties.test_wire_properties import ATTRIBUTES, IDS, KEYS, STAMPS, TRACE_IDS, VALUES

TEXTS = st.lists(st.text(max_size=40), max_size=20).map(tuple) | st.lists(st.text(max_size=3))
LONG = st.text(min_size=120, max_size=140) | st.just("x" * 20_000)
ATTRIBUTES_NUMBER = Span.ATTRIBUTES_FIELD_NUMBER

# Fields as in a ResourceSpans or a ScopeSpans; of a wrong type, and of no known number, too.
PIECES = st.sampled_from(
    [
        b"\x0a\x03\x0a\x01a",
        b"\x0a\x00",
        b"\x1a\x03url",
        b"\xc2\x3e\x03abc",
        b"\x22\x01x",
        b"\x28\x07",
        b"\x10\x07",
    ]
)


@given(KEYS, VALUES | TEXTS | LONG)
def test_an_attribute(key: str, value: AttributeValue) -> None:
    expected = Span(attributes=pairs({key: value})).SerializeToString()

    assert attribute(ATTRIBUTES_NUMBER, key, value) == expected


@given(ATTRIBUTES)
def test_attributes(said: dict[str, AttributeValue]) -> None:
    expected = Span(attributes=pairs(said)).SerializeToString()

    assert attributes(ATTRIBUTES_NUMBER, said) == expected


@given(STAMPS)
def test_an_instant_and_an_integer(number: int) -> None:
    span = Span(start_time_unix_nano=number)

    assert instant(Span.START_TIME_UNIX_NANO_FIELD_NUMBER, number) == span.SerializeToString()
    if number:
        dropped = Span(dropped_attributes_count=number >> 32 or 1)
        assert dropped.SerializeToString()[1:] == varint(number >> 32 or 1)


@given(
    trace_id=TRACE_IDS,
    ids=st.tuples(IDS, IDS | st.just(b"")),
    name=st.text() | LONG,
    kind=st.integers(0, 5),
    stamps=st.tuples(STAMPS, STAMPS),
    flags=st.integers(0, 2**32 - 1),
    links=st.lists(st.tuples(TRACE_IDS, IDS, ATTRIBUTES), max_size=2),
)
def test_a_span_of_ours(
    trace_id: bytes,
    ids: tuple[bytes, bytes],
    name: str,
    kind: int,
    stamps: tuple[int, int],
    flags: int,
    links: list[tuple[bytes, bytes, dict[str, AttributeValue]]],
) -> None:
    own = [Link(*link) for link in links]
    resource = ModelResource({}, service="", process="", domain="", weak=False)
    span = ModelSpan(trace_id, *ids, name, kind, *stamps, resource, flags=flags, links=own)
    expected = Span(
        trace_id=trace_id,
        span_id=ids[0],
        parent_span_id=ids[1],
        name=name,
        kind=kind,  # type: ignore[arg-type]  # OTLP's numbers
        start_time_unix_nano=stamps[0],
        end_time_unix_nano=stamps[1],
        flags=flags,
    )
    for other, span_id, said in links:
        expected.links.add(trace_id=other, span_id=span_id, attributes=pairs(said))

    assert as_sent(span).raw == expected.SerializeToString()


@given(st.text(max_size=3), STAMPS, ATTRIBUTES)
def test_an_event_of_ours(name: str, at_ns: int, said: dict[str, AttributeValue]) -> None:
    resource = ModelResource({}, service="", process="", domain="", weak=False)
    span = ModelSpan(b"", b"", b"", "", 0, 0, 0, resource, events=[Event(name, at_ns, said)])
    expected = Span()
    expected.events.add(name=name, time_unix_nano=at_ns, attributes=pairs(said))

    assert as_sent(span).raw == expected.SerializeToString()


@given(st.lists(PIECES, max_size=6).map(b"".join), st.lists(st.binary(max_size=200), max_size=3))
def test_an_envelope_with_parts_put_back(envelope: bytes, parts: list[bytes]) -> None:
    emptied, _ = split_envelope(envelope)
    whole = join_envelope(emptied, parts)

    assert split_envelope(whole) == (emptied, parts)


@given(st.text(), st.lists(st.text(max_size=200), max_size=3))
def test_an_envelope_is_what_protobuf_makes_of_it(schema_url: str, names: list[str]) -> None:
    message = ScopeSpans(schema_url=schema_url)
    message.scope.name = "a"
    emptied = message.SerializeToString()
    message.spans.extend([Span(name=name) for name in names])
    parts = [span.SerializeToString() for span in message.spans]

    assert join_envelope(emptied, parts) == message.SerializeToString()

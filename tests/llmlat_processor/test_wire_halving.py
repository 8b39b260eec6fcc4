"""A request in two: every span in one of them, once, where it was, as it was."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.wire import Request, halves
from llmlat_semconv import attributes as names
from tests.llmlat_processor.otlp import PYTHON_SERVICE, request, span

Flat = list[tuple[bytes, bytes, bytes]]


def flat(content: bytes) -> Flat:
    """Each span with its two envelopes, these without any span."""
    found = []
    for resource in ExportTraceServiceRequest.FromString(content).resource_spans:
        for scope in resource.scope_spans:
            spans = [each.SerializeToString() for each in scope.spans]
            del scope.spans[:]
            of_scope = scope.SerializeToString()
            bare = type(resource).FromString(resource.SerializeToString())
            del bare.scope_spans[:]
            found += [(bare.SerializeToString(), of_scope, each) for each in spans]
    return found


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Envelopes with and without spans; joined ones repeat."""
    message = ExportTraceServiceRequest()
    numbers = iter(range(1, 10_000))
    for resource in draw(st.lists(st.integers(0, 2), max_size=4)):
        of_resource = message.resource_spans.add(schema_url=f"resource {resource}")
        of_resource.resource.attributes.add(key=names.SERVICE_NAME).value.int_value = resource
        for size in draw(st.lists(st.integers(0, 5), max_size=3)):
            of_scope = of_resource.scope_spans.add(schema_url=f"scope {size}")
            of_scope.scope.name = f"{size}"
            of_scope.spans.extend(span(next(numbers)) for _ in range(size))
    content = message.SerializeToString()
    return Request(content, len(flat(content)), unit=object())


@given(requests())
def test_every_span_is_in_one_half_once_in_its_order_under_its_envelopes(whole: Request) -> None:
    parts = halves(whole)

    if parts is None:
        assert whole.spans < 2
        return
    assert [*chain(*(flat(part.content) for part in parts))] == flat(whole.content)
    assert [part.spans for part in parts] == [len(flat(part.content)) for part in parts]
    assert abs(parts[0].spans - parts[1].spans) <= 1
    assert all(part.unit is whole.unit for part in parts)


def test_halves_of_halves_come_down_to_single_spans() -> None:
    content = request([span(number) for number in range(1, 12)]).SerializeToString()
    left, alone = [Request(content, 11)], []
    while left:
        first = left.pop(0)
        parts = halves(first)
        left[:0] = parts or ()
        alone += [] if parts else [flat(first.content)]

    assert [*chain(*alone)] == flat(content)
    assert len(alone) == 11


def test_what_nobody_knows_of_is_kept() -> None:
    whole = request([span(1), span(2)], PYTHON_SERVICE)
    unknown = b"\xa2\x06\x01?"  # field 100
    content = whole.resource_spans[0].SerializeToString() + unknown
    content = b"\x0a" + bytes([len(content) & 0x7F | 0x80, len(content) >> 7]) + content

    parts = halves(Request(content, 2))

    assert parts is not None
    assert all(unknown in part.content for part in parts)


@pytest.mark.parametrize("content", [b"", b"\xff\xff", b"\x0a\x01\xff"])
def test_what_holds_no_two_spans_is_not_halved(content: bytes) -> None:
    assert halves(Request(content, 2)) is None

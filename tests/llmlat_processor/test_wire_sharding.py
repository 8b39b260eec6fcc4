"""Splitting a request by trace: nothing is lost, nothing changed, and a trace stays together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.wire import UndecodableError, decode
from llmlat_processor.wire.sharding import shard_of, shards
from tests.llmlat_processor.otlp import request, span

TRACES = st.lists(st.binary(min_size=16, max_size=16).filter(any), max_size=30)


@given(TRACES, st.integers(1, 5))
def test_every_span_is_in_the_shard_of_its_trace_as_it_was(traces: list[bytes], count: int) -> None:
    sent = request(span(number, trace_id=trace) for number, trace in enumerate(traces, start=1))

    parts = shards(sent.SerializeToString(), count)

    assert len(parts) == count
    found = {}
    for shard, part in enumerate(parts):
        for one in decode(part).spans:
            assert shard_of(one.trace_id, count) == shard
            found[one.span_id] = one.raw
    assert found == {one.span_id: one.raw for one in decode(sent.SerializeToString()).spans}


def test_headers_go_with_each_part() -> None:
    sent = request([span(1, trace_id=bytes(15) + b"\0"), span(2, trace_id=bytes(15) + b"\1")])
    sent.resource_spans[0].schema_url = "https://example.org/schema"

    for part in shards(sent.SerializeToString(), 2):
        parsed = ExportTraceServiceRequest.FromString(part)
        parsed.resource_spans[0].scope_spans[0].ClearField("spans")
        expected = ExportTraceServiceRequest.FromString(sent.SerializeToString())
        expected.resource_spans[0].scope_spans[0].ClearField("spans")
        assert parsed == expected


def test_what_cannot_be_read_goes_to_the_first_whole() -> None:
    damaged = b"\x0a\x03\xff\xff\xff"  # a ResourceSpans that is none
    sound = request([span(1, trace_id=bytes(15) + b"\1")]).SerializeToString()

    first, second = shards(damaged + sound, 2)

    assert first == damaged
    assert second == sound


def test_a_span_that_cannot_be_read_is_refused_by_who_gets_it() -> None:
    sent = request([span(1, trace_id=b"short"), span(2, trace_id=bytes(15) + b"\1")])

    parts = [decode(part) for part in shards(sent.SerializeToString(), 2) if part]

    assert sum(len(part.spans) for part in parts) == 1
    assert sum(part.refused for part in parts) == 1


def test_one_shard_gets_the_very_bytes() -> None:
    sent = request([span(1)]).SerializeToString() + b"\x9a\x06\x01x"  # an unknown field at the end

    assert shards(sent, 1) == [sent]


def test_no_request_at_all() -> None:
    with pytest.raises(UndecodableError, match="not an export of spans"):
        shards(b"\xff\xff", 2)

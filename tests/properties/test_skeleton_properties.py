"""A skeleton explains exactly what its span does, whatever the span holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.model import Attributes, Span
from llmlat_processor.pipeline import process
from llmlat_processor.views.lane import lane
from llmlat_processor.wire import WireSpan, decode
from llmlat_processor.wire.skeletons import Skeleton, pack, skeleton_of, unpack
from llmlat_semconv import attributes as names
from tests.cases.case_spans import spans_of
from tests.llmlat_processor.otlp import pairs
from tests.properties.canonical import canonical
from tests.properties.test_bytes_out import on_the_wire
from tests.properties.traces import call_traces, damaged_traces, linked_traces, plain_traces

TALK: Attributes = {names.GEN_AI_USAGE_INPUT_TOKENS: 7, "app.prompt": "a prompt " * 300}
BURDEN: tuple[Attributes, ...] = ({}, {"http.method": "GET"}, TALK, {**TALK, "user.id": "somebody"})


@st.composite
def _received(draw: st.DrawFn) -> list[WireSpan]:
    case = draw(plain_traces() | linked_traces() | call_traces() | damaged_traces())
    spans = []
    for span in spans_of(case):
        span.start_ns, span.end_ns = max(0, span.start_ns), max(0, span.end_ns)
        request = ExportTraceServiceRequest.FromString(on_the_wire(span))
        (message,) = request.resource_spans[0].scope_spans[0].spans
        message.attributes.extend(pairs(draw(st.sampled_from(BURDEN))))
        message.events.add(name="exception", time_unix_nano=message.start_time_unix_nano)
        message.status.message = draw(st.sampled_from(("", "why it failed")))
        spans += decode(request.SerializeToString()).spans
    return spans


def _said(spans: list[Any]) -> Any:
    explained = process(spans)
    drawn = [(s.name, s.start_ns, s.end_ns, dict(s.attributes)) for s in lane(explained)]
    raws = [span.raw for span in explained.trace.spans]
    for span in explained.trace.spans:
        span.raw = b""  # which is all that may differ
    said = canonical(explained), drawn
    for span, raw in zip(explained.trace.spans, raws, strict=True):
        span.raw = raw
    return said


@given(_received())
def test_a_trace_of_skeletons_is_explained_as_the_trace_itself(spans: list[WireSpan]) -> None:
    accounts = Counter((span.span_id, span.kind) for span in spans)
    skeletons: list[Span] = [
        skeleton_of(span) if accounts[span.span_id, span.kind] == 1 else span for span in spans
    ]
    packed = unpack(pack(spans)), unpack(pack(skeletons, tight=True))

    expected = _said(spans)
    assert _said(skeletons) == expected
    for several in packed:
        assert all(isinstance(span, Skeleton) for span in several)
        assert _said(several) == expected


@given(_received())
def test_a_skeleton_has_nothing_of_what_was_said_in_a_prompt(spans: list[WireSpan]) -> None:
    for span in spans:
        skeleton = skeleton_of(span)
        assert b"a prompt" not in skeleton.raw
        assert skeleton.attribute_count == span.attribute_count
        assert skeleton_of(skeleton).raw == skeleton.raw

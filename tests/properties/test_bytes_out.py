"""What leaves the processor does not depend on how its spans came: order, repeats, requests."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from llmlat_processor.model import Span
from llmlat_processor.pipeline import process
from llmlat_processor.wire import decode, encode
from llmlat_semconv import attributes as names
from tests.cases.case_format import Case
from tests.cases.case_spans import spans_of
from tests.llmlat_processor.otlp import pairs, request
from tests.properties.traces import call_traces, linked_traces


def on_the_wire(span: Span) -> bytes:
    """A span as a request of its own."""
    message = WireSpan(
        trace_id=span.trace_id.rjust(16, b"\1"),
        span_id=span.span_id.rjust(8, b"\1"),
        parent_span_id=span.parent_id and span.parent_id.rjust(8, b"\1"),
        name=span.name,
        kind=span.kind,  # type: ignore[arg-type]  # OTLP's numbers
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        attributes=pairs(span.attributes),
        status=Status(code=Status.STATUS_CODE_ERROR) if span.is_error else None,
        events=[
            WireSpan.Event(name=e.name, time_unix_nano=e.at_ns, attributes=pairs(e.attributes))
            for e in span.events
        ],
        links=[
            WireSpan.Link(
                trace_id=link.trace_id.rjust(16, b"\1"),
                span_id=link.span_id.rjust(8, b"\1"),
                attributes=pairs(link.attributes),
            )
            for link in span.links
        ],
    )
    return request([message], span.resource.attributes).SerializeToString()


def bytes_out(requests: list[bytes]) -> bytes:
    received = [span for each in requests for span in decode(each).spans]
    explained = process(received)
    return encode(explained.trace.spans, explained.annotations)


@given(call_traces() | linked_traces(), st.randoms(use_true_random=False))
def test_the_same_bytes_come_out_for_any_order_and_repetition(case: Case, random: Random) -> None:
    requests = [on_the_wire(span) for span in spans_of(case)]
    repeated = [*requests, *random.sample(requests, random.randint(0, len(requests)))]
    random.shuffle(repeated)
    expected = bytes_out(requests)
    assert names.LLMLAT_CRITICAL_PATH_DURATION.encode() in expected
    assert bytes_out(repeated) == expected

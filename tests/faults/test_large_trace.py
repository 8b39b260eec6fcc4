"""A trace of 50,000 spans beside small ones: they do not wait for it, and it is told as well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from llmlat_semconv import attributes as names
from llmlat_semconv.values import OperationName
from tests.faults.destinations import timed
from tests.faults.ledger import check_each_came_once, check_each_has_its_lane
from tests.faults.load import Batch, batch, ids_of, load, whole_traces
from tests.faults.processor_run import Site

pytestmark = pytest.mark.faults

SMALL: Final = 1_000
LARGE: Final = 50_000
PART: Final = 2_000
"""Spans of one request."""

EVERY_S: Final = 0.01
GROWS: Final = 0.2
"""How much longer the small ones may take beside the large one, of what they take alone."""

_MS: Final = 1_000_000


def large_trace() -> Sequence[Batch]:
    """An agent that has looped: steps in sequence, each with model calls that differ in length."""
    random = Random(7)
    trace_id, root = random.randbytes(16), random.randbytes(8)
    start_ns = 1_700_000_000 * 10**9
    spans: list[Span] = []
    at_ns = start_ns
    while len(spans) < LARGE - 1:
        step, step_ns = random.randbytes(8), at_ns
        for _ in range(24):
            length_ns = random.randrange(_MS, 9 * _MS)
            spans.append(span(trace_id, random.randbytes(8), step, at_ns, length_ns))
            at_ns += length_ns
        spans.append(span(trace_id, step, root, step_ns, at_ns - step_ns))
    spans = spans[: LARGE - 1]
    spans.append(span(trace_id, root, b"", start_ns, at_ns + _MS - start_ns))
    return [request(spans[at : at + PART]) for at in range(0, len(spans), PART)]


def span(trace_id: bytes, span_id: bytes, parent: bytes, start_ns: int, length_ns: int) -> Span:
    one = Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent,
        name="step",
        start_time_unix_nano=start_ns,
        end_time_unix_nano=start_ns + length_ns,
    )
    operation = one.attributes.add(key=names.GEN_AI_OPERATION_NAME)
    operation.value.string_value = OperationName.CHAT.value
    return one


def request(spans: Sequence[Span]) -> Batch:
    message = ExportTraceServiceRequest()
    scope_spans = message.resource_spans.add().scope_spans.add()
    scope_spans.spans.extend(spans)
    return batch(message)


def delay_s(folder: Path, large: Sequence[Batch]) -> float:
    """The 95th percentile of how long a small trace takes, beside this one."""
    folder.mkdir()
    small = whole_traces(SMALL)
    with timed() as destination:
        site = Site(folder, destination.address, window={"idle": "2s", "grace": "2s"})
        with site.running() as processor:
            with (
                load(site.grpc, small, every_s=2 * EVERY_S) as senders,
                load(site.grpc, large, senders=1, every_s=EVERY_S) as beside,
            ):
                beside.join()
                senders.join()
            processor.wait_until_empty()
            peak_bytes = processor.peak_bytes
            assert processor.end().code == 0

        check_each_came_once(ids_of([*small, *large]), destination)
        check_each_has_its_lane(ids_of([*small, *large]), destination)
        delays_s = destination.delays_s(senders.last_s)
    print(
        f"p50 {delays_s[SMALL // 2]:.2f} s, p95 {delays_s[SMALL * 95 // 100]:.2f} s,"
        f" longest {delays_s[-1]:.2f} s, peak {peak_bytes >> 20} MiB,"
        f" large {[*map('{:.1f} s'.format, destination.delays_s(beside.last_s))]}"
    )
    return delays_s[SMALL * 95 // 100]


def test_small_traces_do_not_wait_for_a_large_one(tmp_path: Path) -> None:
    alone_s = delay_s(tmp_path / "alone", [])
    beside_s = delay_s(tmp_path / "beside", large_trace())
    assert beside_s < (1 + GROWS) * alone_s

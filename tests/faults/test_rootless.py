"""Traces whose root does not end: their spans go on, little is kept, and the root finds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.service.releasing import NO_ROOT
from llmlat_processor.written import OWN_SCOPE
from tests.faults.ledger import check_each_came_once, check_each_has_its_lane
from tests.faults.load import Batch, batch, ids_of, load, whole_traces
from tests.faults.processor_run import Site
from tests.llmlat_processor.sink import Arrivals, sink

pytestmark = pytest.mark.faults

TRACES: Final = 300
PARTS: Final = 3
SKELETON_BYTES: Final = 400
"""Of one span, with all that is around it; the span itself takes twice that."""

GROWS_BYTES: Final = 64 << 20


def parts_of(traces: Sequence[Batch]) -> tuple[Sequence[Sequence[Batch]], Sequence[Batch]]:
    """All but their roots, in several parts of each trace; and the roots."""
    parts: list[list[Batch]] = [[] for _ in range(PARTS)]
    roots = []
    for one in traces:
        whole = ExportTraceServiceRequest.FromString(one.request)
        for number, part in enumerate(parts):
            part.append(batch(some_of(whole, number)))
        roots.append(batch(some_of(whole, None)))
    return parts, roots


def some_of(whole: ExportTraceServiceRequest, number: int | None) -> ExportTraceServiceRequest:
    """Every so manyth span that is no root; or the root."""
    message = ExportTraceServiceRequest()
    message.CopyFrom(whole)
    for resource_spans in message.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            kept = [
                span
                for at, span in enumerate(scope_spans.spans)
                if (not span.parent_span_id if number is None else at % PARTS == number)
                and (number is None or span.parent_span_id)
            ]
            del scope_spans.spans[:]
            scope_spans.spans.extend(kept)
    return message


def lane_of(destination: Arrivals) -> set[tuple[bytes, str, int, int]]:
    return {
        (span.trace_id, span.name, span.start_time_unix_nano, span.end_time_unix_nano)
        for _, scope, span in destination.spans
        if scope.scope.name == OWN_SCOPE
    }


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_root_that_comes_late_finds_the_skeletons_of_its_trace(
    *, is_killed: bool, tmp_path: Path
) -> None:
    traces = whole_traces(TRACES)
    parts, roots = parts_of(traces)
    window = {"idle": "200ms", "grace": "400ms", "hold_max": "500ms"}
    with sink() as destination, sink() as at_once:
        site = Site(tmp_path, destination.address, window=window)
        with site.running() as processor:
            begin_bytes = processor.peak_bytes
            for part in parts:
                with load(site.grpc, part) as senders:
                    senders.join()
                processor.wait_until_empty(keeps_skeletons=True)
            told = processor.status()
            grown_bytes = processor.peak_bytes - begin_bytes
            if is_killed:
                processor.kill()
            else:
                say_roots(site, roots)
                processor.wait_until_empty()
                assert processor.end().code == 0
        if is_killed:
            with site.running() as processor:
                say_roots(site, roots)
                processor.wait_until_empty()
                assert processor.end().code == 0

        spans = ids_of(part for each in parts for part in each)
        assert told.books.as_they_came == {NO_ROOT: len(spans)}
        assert told.books.sent == len(spans)
        assert 0 < told.skeleton_bytes < SKELETON_BYTES * len(spans)
        assert grown_bytes < GROWS_BYTES
        check_each_came_once(ids_of(traces), destination)
        check_each_has_its_lane(ids_of(traces), destination)

        (tmp_path / "other").mkdir()
        site = Site(tmp_path / "other", at_once.address, window=window)
        with site.running() as processor:
            with load(site.grpc, traces) as senders:
                senders.join()
            processor.wait_until_empty()
            processor.end()
        assert lane_of(destination) == lane_of(at_once)
    print(f"skeletons {told.skeleton_bytes / len(spans):.0f} bytes, grown {grown_bytes >> 20} MiB")


def say_roots(site: Site, roots: Sequence[Batch]) -> None:
    with load(site.grpc, roots) as senders:
        senders.join()

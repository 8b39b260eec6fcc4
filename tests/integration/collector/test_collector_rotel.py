"""Rotel as the collector in front: another OTLP implementation, written by others in Rust."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends import Addresses, processor
from children import Children
from tests.integration.collector.arrivals import distinct, lanes, traces, until
from tests.integration.collector.collectors import send, start_rotel
from tests.integration.jaeger.lanes import check_lane, check_only_appended_to, originals
from tests.integration.jaeger.sending import Sent, sent_as
from tests.integration.jaeger.storage import Stored, unpack
from tests.llmlat_processor.sink import Sink, sink

pytestmark = pytest.mark.peers

CASES = ("call_worked_adviser", "call_parallel_tools_explicit", "call_client_gateway_engine")


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_what_rotel_sends_arrives_complete_and_with_its_lane(
    compression: str, tmp_path: Path
) -> None:
    addresses = Addresses.free()
    sent = [sent_as(name) for name in CASES for _ in range(5)]
    with sink() as end, Children(tmp_path) as children:
        between = Addresses(processor=addresses.processor, back=end.address)
        command = processor(between, tmp_path / "state", "--idle=1")
        children.start("processor", command).listening(addresses.processor)
        start_rotel(
            children,
            addresses.otlp_grpc,
            addresses.otlp_http,
            addresses.processor,
            f"--otlp-exporter-compression={compression}",
        )
        send(addresses.otlp_grpc, [each.request.SerializeToString() for each in sent])
        until(lambda: all_have_lanes(end, sent), lambda: distinct(end))
    for each in sent:
        _check(each, traces(end)[each.trace_id])


def all_have_lanes(end: Sink, sent: list[Sent]) -> bool:
    """A lane is sent with the last of its trace."""
    arrived = traces(end)
    return all(lanes(arrived[each.trace_id]) for each in sent)


def _check(sent: Sent, spans: list[Stored]) -> None:
    """Every span once, only appended to; beside them a lane."""
    known = {each.span.span_id: each for each in unpack(sent.request)}
    theirs = originals(spans)
    assert sorted(each.span.span_id for each in theirs) == sorted(known)
    for each in theirs:
        check_only_appended_to(each, known[each.span.span_id])
    check_lane(spans)

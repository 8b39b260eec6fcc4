"""The inline configs that are shipped, in a real Collector around the processor."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends import Addresses
from children import Children
from tests.integration.collector.arrivals import distinct, lanes, traces, until
from tests.integration.collector.collectors import (
    send,
    shipped,
    start_collector,
    start_processor,
)
from tests.integration.jaeger.lanes import check_lane, originals
from tests.integration.jaeger.sending import sent_as
from tests.llmlat_processor.sink import sink

pytestmark = pytest.mark.peers


def test_what_an_app_sends_comes_back_and_goes_on_with_its_lane(tmp_path: Path) -> None:
    """The queue makes the batches: nothing that was acknowledged is in memory alone."""
    addresses, sent = Addresses.free(), [sent_as("call_worked_adviser") for _ in range(20)]
    config = shipped("inline").config
    assert "batch" not in str(config["service"]["pipelines"])
    with sink() as backend, Children(tmp_path) as children:
        middle = start_processor(children, "inline", addresses, tmp_path)
        middle.listening(addresses.processor)
        end = {"BACKEND_OTLP_GRPC": backend.address}
        start_collector(children, config, addresses, tmp_path, **end)
        send(addresses.otlp_grpc, [each.request.SerializeToString() for each in sent])
        until(
            lambda: all(lanes(traces(backend)[each.trace_id]) for each in sent),
            lambda: distinct(backend),
        )
    arrived = traces(backend)
    for each in sent:
        spans = arrived[each.trace_id]
        assert sorted(one.span.span_id for one in originals(spans)) == sorted(each.names)
        check_lane(spans)

"""A tap puts nobody at risk: spans take their own way, whatever the processor does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest

from backends import Addresses
from bench.traces import batches, llm_trace
from children import Children
from tests.integration.collector.arrivals import distinct, lanes, traces, until
from tests.integration.collector.collectors import (
    Config,
    send,
    shipped,
    start_collector,
    start_processor,
)
from tests.integration.jaeger.lanes import lane_of, originals
from tests.integration.jaeger.sending import Sent, sent_as
from tests.integration.jaeger.storage import Stored, unpack
from tests.llmlat_processor.sink import Sink, sink

pytestmark = pytest.mark.peers

BATCHES = batches(llm_trace, 60, seed=1, size=100)
REQUESTS = [each.request for each in BATCHES]
SPANS = sum(each.spans for each in BATCHES)


@pytest.fixture
def addresses() -> Addresses:
    return Addresses.free()


def copies(end: Sink) -> Counter[bytes]:
    """How often each span is there."""
    return Counter(span.span_id for _, _, span in end.spans)


@pytest.fixture
def config() -> Config:
    return shipped("tap").config


def test_the_processor_gets_a_copy_of_all(
    config: Config, addresses: Addresses, tmp_path: Path
) -> None:
    with sink() as backend, sink() as tap, Children(tmp_path) as children:
        ends = {"BACKEND_OTLP_GRPC": backend.address, "PROCESSOR_OTLP_GRPC": tap.address}
        start_collector(children, config, addresses, tmp_path, **ends)
        send(addresses.otlp_grpc, REQUESTS)
        for end in (backend, tap):
            end.wait_for_spans(SPANS)
            assert set(copies(end).values()) == {1}


def test_the_lanes_come_back_and_the_spans_have_gone_their_own_way(
    config: Config, addresses: Addresses, tmp_path: Path
) -> None:
    """Nothing was added to any span, and none was sent by the processor."""
    sent = [sent_as("call_worked_adviser") for _ in range(10)]
    known = {of: each for one in sent for of, each in _spans(one).items()}
    with sink() as backend, Children(tmp_path) as children:
        middle = start_processor(children, "tap", addresses, tmp_path)
        middle.listening(addresses.processor)
        end = {"BACKEND_OTLP_GRPC": backend.address}
        start_collector(children, config, addresses, tmp_path, **end)
        send(addresses.otlp_grpc, [each.request.SerializeToString() for each in sent])
        until(
            lambda: all(lanes(traces(backend)[each.trace_id]) for each in sent),
            lambda: distinct(backend),
        )
    arrived = [each for spans in traces(backend).values() for each in spans]
    theirs = originals(arrived)
    assert len(theirs) == len(known)
    for each in theirs:
        # The sampler says in front of the state how likely it was to keep this.
        assert each.span.trace_state.endswith(known[each.span.span_id].span.trace_state)
        each.span.trace_state = known[each.span.span_id].span.trace_state
        assert each.span == known[each.span.span_id].span
    for one in sent:
        check_lane_alone(traces(backend)[one.trace_id])


def test_a_lane_shares_the_fate_of_its_trace(
    config: Config, addresses: Addresses, tmp_path: Path
) -> None:
    """Half of the traces are kept, and their lanes, which come seconds later."""
    config["processors"]["probabilistic_sampler"]["sampling_percentage"] = 50
    sent = [sent_as("call_worked_adviser") for _ in range(40)]
    with sink() as backend, Children(tmp_path) as children:
        middle = start_processor(children, "tap", addresses, tmp_path)
        middle.listening(addresses.processor)
        end = {"BACKEND_OTLP_GRPC": backend.address}
        start_collector(children, config, addresses, tmp_path, **end)
        send(addresses.otlp_grpc, [each.request.SerializeToString() for each in sent])

        def with_lanes() -> bool:
            arrived = traces(backend)
            return bool(arrived) and all(map(lanes, arrived.values()))

        until(with_lanes, lambda: distinct(backend))
    arrived = traces(backend)
    assert 0 < len(arrived) < len(sent)
    for spans in arrived.values():
        assert lanes(spans)
        assert originals(spans)


def _spans(sent: Sent) -> dict[bytes, Stored]:
    return {each.span.span_id: each for each in unpack(sent.request)}


def check_lane_alone(spans: list[Stored]) -> None:
    """One lane, whose sections are all there and hang below it."""
    drawn = lane_of(spans)
    assert drawn.sections
    assert {each.span.parent_span_id for each in drawn.sections} == {drawn.root.span.span_id}


def with_a_queue_that_is_soon_full(config: Config) -> Config:
    config["exporters"]["otlp_grpc/llmlat"]["sending_queue"]["queue_size"] = 1
    return config


def test_a_processor_that_is_away_is_noticed_by_nobody(
    config: Config, addresses: Addresses, tmp_path: Path
) -> None:
    with sink() as backend, Children(tmp_path) as children:
        few_places = with_a_queue_that_is_soon_full(config)
        end = {"BACKEND_OTLP_GRPC": backend.address}
        start_collector(children, few_places, addresses, tmp_path, **end)
        send(addresses.otlp_grpc, REQUESTS)
        backend.wait_for_spans(SPANS)
        assert set(copies(backend).values()) == {1}


def test_without_a_batch_of_its_own_the_app_would_be_told_to_send_again(
    config: Config, addresses: Addresses, tmp_path: Path
) -> None:
    """Why `batch/tap` stands in the config: what the app sends again is stored twice."""
    config["service"]["pipelines"]["traces/tap"]["processors"] = []
    with sink() as backend, Children(tmp_path) as children:
        few_places = with_a_queue_that_is_soon_full(config)
        end = {"BACKEND_OTLP_GRPC": backend.address}
        start_collector(children, few_places, addresses, tmp_path, **end)
        with pytest.raises(grpc.RpcError):
            send(addresses.otlp_grpc, REQUESTS)

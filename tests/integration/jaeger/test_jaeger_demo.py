"""The demo's request in a real Jaeger: adviser, gateway and an emulated engine in one trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from llmlat_semconv import attributes as names
from llmlat_semconv.spans import agent_span_name, gateway_span_name
from llmlat_semconv.values import Evidence, SectionLabel
from tests.integration.jaeger.demo_trace import DemoTrace, arrived, run_demo, tapped_loop
from tests.integration.jaeger.lanes import (
    SERVICE,
    check_lane,
    check_only_appended_to,
    lane_of,
    originals,
    said,
)
from tests.integration.jaeger.loop import Loop
from tests.integration.jaeger.sending import sent_as
from tests.integration.jaeger.storage import Stored
from tests.llmlat_processor.sink import Sink

pytestmark = pytest.mark.peers

DOMINANT = names.LLMLAT_CRITICAL_PATH_DOMINANT_PHASE


@pytest.fixture(scope="module")
def tapped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Loop, Sink]]:
    with tapped_loop(tmp_path_factory.mktemp("tapped")) as both:
        yield both


@pytest.fixture(scope="module")
def shared_loop(tapped: tuple[Loop, Sink]) -> Loop:
    """Here one of our own, for what is known of all that went in."""
    return tapped[0]


@pytest.fixture(scope="module")
def demo(tapped: tuple[Loop, Sink]) -> DemoTrace:
    loop, tap = tapped
    run_demo(loop)
    return arrived(loop, tap)


@pytest.fixture(scope="module")
def upstream(demo: DemoTrace) -> set[bytes]:
    """The gateway's calls of the engine."""
    return {
        span_id
        for span_id, each in demo.sent.items()
        if each.service == "gateway" and each.span.kind == Span.SPAN_KIND_CLIENT
    }


def root_of(demo: DemoTrace) -> Stored:
    (root,) = [each for each in originals(demo.stored) if not each.span.parent_span_id]
    return root


def test_adviser_and_gateway_are_in_one_trace(demo: DemoTrace, upstream: set[bytes]) -> None:
    assert {each.span.trace_id for each in demo.sent.values()} == {demo.trace_id}
    assert {each.service for each in demo.sent.values()} == {"adviser", "gateway"}
    assert (root_of(demo).service, root_of(demo).span.name) == (
        "adviser",
        agent_span_name("adviser"),
    )
    received = {
        span_id: demo.sent[each.span.parent_span_id].service
        for span_id, each in demo.sent.items()
        if each.span.name == gateway_span_name("/v1/chat/completions")
    }
    assert list(received.values()) == ["adviser", "adviser"]
    assert {demo.sent[each].span.parent_span_id for each in upstream} == received.keys()


def test_every_span_is_the_same_bytes_but_for_what_is_appended(demo: DemoTrace) -> None:
    for each in originals(demo.stored):
        check_only_appended_to(each, demo.sent[each.span.span_id])


def test_its_lane_has_the_form_of_a_lane(demo: DemoTrace) -> None:
    check_lane(demo.stored)


def test_what_the_engine_has_reported_lies_in_the_gateways_calls_of_it(
    demo: DemoTrace, upstream: set[bytes]
) -> None:
    lane = lane_of(demo.stored)
    listed = said(lane.root.span.attributes)[names.LLMLAT_CRITICAL_PATH_SECTIONS]
    assert isinstance(listed, list)
    by_engine = {SectionLabel.PREFILL.value, SectionLabel.DECODE.value}
    for label in by_engine:
        assert {
            bytes.fromhex(of) for what, of, *_ in map(str.split, listed) if what == label
        } == upstream
    for about in (said(each.span.attributes) for each in lane.sections):
        is_reported = about[names.LLMLAT_SECTION_EVIDENCE] == Evidence.REPORTED.value
        assert is_reported is (about[names.LLMLAT_SECTION_LABEL] in by_engine)


@pytest.mark.parametrize("service", ["adviser", SERVICE])
def test_it_is_found_by_what_dominates(service: str, loop: Loop, demo: DemoTrace) -> None:
    dominant = said(root_of(demo).span.attributes)[DOMINANT]
    found = {
        label.value: demo.trace_id in loop.jaeger.find(service, {DOMINANT: label.value})
        for label in SectionLabel
    }
    assert [label for label, is_found in found.items() if is_found] == [dominant]


def test_it_is_found_by_how_long_a_section_is(loop: Loop, demo: DemoTrace) -> None:
    lengths: dict[str, int] = {}
    for each in (each.span for each in lane_of(demo.stored).sections):
        length_us = (each.end_time_unix_nano - each.start_time_unix_nano) // 1_000
        lengths[each.name] = max(length_us, lengths.get(each.name, 0))
    assert len(lengths) > 1
    for name, longest_us in lengths.items():
        for at_least_us, is_found in ((longest_us, True), (longest_us + 1, False)):
            found = loop.jaeger.find(SERVICE, operation=name, minDuration=f"{at_least_us}us")
            assert (demo.trace_id in found) is is_found


def test_jaeger_has_no_warning_on_any_span(loop: Loop, demo: DemoTrace) -> None:
    shown = loop.jaeger.shown(demo.trace_id)["spans"]
    assert len(shown) == len(demo.stored)
    assert {each["operationName"]: each["warnings"] for each in shown if each["warnings"]} == {}


def test_all_of_it_sent_again_nothing_is_there_twice(loop: Loop, demo: DemoTrace) -> None:
    for content in demo.requests:
        loop.send(ExportTraceServiceRequest.FromString(content))
    follower = sent_as("call_worked_adviser")
    loop.send(follower.request)
    loop.stored(follower.trace_id)  # once it is there, all that was sent before it has passed
    stored = loop.jaeger.stored(demo.trace_id)
    assert Counter(map(_bytes, stored)) == Counter(map(_bytes, demo.stored))
    assert set(Counter(each.span.span_id for each in stored).values()) == {1}


def _bytes(stored: Stored) -> bytes:
    return stored.span.SerializeToString(deterministic=True)

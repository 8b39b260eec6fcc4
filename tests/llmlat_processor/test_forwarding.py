"""Spans in, the same spans out: what is added, what is never lost, and the books of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from llmlat_processor.model import Assumptions, AttributeValue, ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.service import UNEXPLAINED, Processor
from llmlat_processor.settings import Deployment, Destination, Listener, Views
from llmlat_processor.views.jaeger_warnings import WARNINGS
from llmlat_processor.views.lane import SERVICE
from llmlat_processor.window import SPAN_OVERHEAD, Limits
from llmlat_processor.written import OWN_SCOPE
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor import otlp
from tests.llmlat_processor.forwarding import (
    AT_ONCE,
    MADE_FOR_ONE_ROW,
    OURS,
    PATIENT,
    QUICK,
    assert_balanced,
    forwarding,
    lane_of,
    originals,
    send,
    span,
)
from tests.llmlat_processor.otlp import START_NS
from tests.llmlat_processor.sink import sink


def test_each_span_arrives_as_it_came_with_what_was_learned_behind_it() -> None:
    sent = [span(1, attributes={"a": 1, "b": ("c", 2.5)}), span(2, attributes={"d": True})]
    sent[0].events.add(name="mine", time_unix_nano=START_NS)
    sent[0].trace_state = "vendor=1"
    sent[1].dropped_links_count = 3

    with sink() as destination:
        with forwarding(destination, PATIENT) as processor:
            send(processor, *sent)
        arrived = [m for _, scope, m in destination.spans if scope.scope.name == "app"]

    for before, after in zip(sent, arrived, strict=True):
        count = len(before.attributes)
        assert list(after.attributes[:count]) == list(before.attributes)
        added = [pair.key for pair in after.attributes[count:]]
        assert names.LLMLAT_CRITICAL_PATH_IS_ON_PATH in added
        assert all(key.startswith(OURS) for key in added)
        del after.attributes[count:]
        assert after == before


def test_the_bytes_of_a_span_begin_with_those_it_came_with() -> None:
    with sink() as destination, forwarding(destination, PATIENT) as processor:
        send(processor, span(1), span(2))

    (content,) = destination.requests
    for message in (span(1), span(2)):
        assert message.SerializeToString() in content


def test_a_trace_gets_its_lane() -> None:
    with sink() as destination:
        with forwarding(destination) as processor:
            send(processor, span(1))
            destination.wait_for_spans(3)
        root, section = lane_of(destination)
        services = {
            pair.value.string_value
            for resource, _, _ in destination.spans
            for pair in resource.resource.attributes
            if pair.key == names.SERVICE_NAME
        }

    assert (root.name, root.parent_span_id) == ("critical path", (1).to_bytes(8, "big"))
    assert section.parent_span_id == root.span_id
    assert services == {"adviser", SERVICE}
    assert str(processor.books()) == ("1 spans received, 2 added: 3 sent; 1 traces explained")


def test_the_lane_can_be_left_out() -> None:
    with sink() as destination:
        with forwarding(destination, replace(AT_ONCE, views=Views(lane=False))) as processor:
            send(processor, span(1))
        assert lane_of(destination) == []

    assert (processor.books().traces, processor.books().added) == (1, 0)


@pytest.mark.parametrize("wanted", [False, True])
def test_findings_are_warnings_where_they_are_wanted(wanted: bool) -> None:
    backwards = span(2, end_time_unix_nano=START_NS - 1)
    settings = replace(PATIENT, views=Views(jaeger_warnings=wanted))
    with sink() as destination:
        with forwarding(destination, settings) as processor:
            send(processor, span(1), backwards)
        arrived = {message.name: message for _, _, message in destination.spans}

    warned = {
        name: [text.string_value for text in pair.value.array_value.values]
        for name, message in arrived.items()
        for pair in message.attributes
        if pair.key == WARNINGS
    }
    assert ("negative_duration" in str(warned.get("1/2"))) is wanted
    assert warned.keys() <= {"1/2"}
    assert [event.name for event in arrived["1/2"].events] != []
    assert [row.kind for row in processor.found()] == [FindingKind.NEGATIVE_DURATION]


# ── Nothing is lost ──────────────────────────────────────────────────────────────────────────────


def test_a_batch_that_comes_again_while_its_trace_is_held_is_sent_once() -> None:
    with sink() as destination:
        with forwarding(destination, PATIENT) as processor:
            for _ in range(3):
                send(processor, span(1), span(2))
        assert sorted(destination.names()) == ["1/1", "1/2", *sorted(LANE)]

    assert processor.books().repeated == 4


LANE = ["critical path", "work adviser"]


def test_two_spans_of_one_id_that_differ_both_go_on() -> None:
    richer = span(2, attributes={"more": 1})
    with sink() as destination:
        with forwarding(destination, PATIENT) as processor:
            send(processor, span(1), span(2), richer, span(2))
        assert Counter(map(bytes_of, originals(destination))) == Counter(
            map(bytes_of, [span(1), span(2), richer])
        )

    assert processor.books().repeated == 1


def bytes_of(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def test_what_is_damaged_in_time_goes_on_too() -> None:
    spans = [span(1), span(2, end_time_unix_nano=START_NS - 1), span(3, start_time_unix_nano=0)]
    with sink() as destination:
        with forwarding(destination, PATIENT) as processor:
            send(processor, *spans)
        assert sorted(map(bytes_of, originals(destination))) == sorted(map(bytes_of, spans))


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "in reverse"])
def test_the_same_bytes_leave_for_any_order_and_repetition(order: int) -> None:
    spans = [span(number, start_time_unix_nano=START_NS + number) for number in range(1, 6)]
    spans += [span(3, attributes={"another": "account"}), span(2, attributes={"one": "more"})]
    with sink() as destination:
        with forwarding(destination, PATIENT) as processor:
            for one in [*spans, *spans[2:4]][::order]:
                send(processor, one)
        sent = Counter(destination.requests)

    with sink() as destination:
        with forwarding(destination, PATIENT) as processor:
            send(processor, *spans)
        assert Counter(destination.requests) == sent


def test_a_late_span_goes_on_at_once_and_makes_no_second_lane() -> None:
    with sink() as destination:
        with forwarding(destination) as processor:
            send(processor, span(1))
            destination.wait_for_spans(1 + MADE_FOR_ONE_ROW)
            send(processor, span(2))
            destination.wait_for_spans(2 + MADE_FOR_ONE_ROW)
        assert len(lane_of(destination)) == MADE_FOR_ONE_ROW

    assert processor.books().as_they_came == {"late": 1}
    assert "; 1 traces explained, spans as they came: 1 (late)" in str(processor.books())


def test_what_comes_again_after_its_trace_was_sent_is_not_sent_again() -> None:
    with sink() as destination:
        with forwarding(destination) as processor:
            send(processor, span(1))
            destination.wait_for_spans(1 + MADE_FOR_ONE_ROW)
            send(processor, span(1), span(2))
            destination.wait_for_spans(2 + MADE_FOR_ONE_ROW)
        assert [each.span_id[-1] for each in originals(destination)] == [1, 2]

    books = processor.books()
    assert (books.received, books.sent - books.added, books.repeated) == (3, 2, 1)


def test_without_a_root_spans_go_on_as_they_came() -> None:
    impatient = replace(AT_ONCE, window=Limits(hold_max_ns=0))
    with sink() as destination:
        with forwarding(destination, impatient) as processor:
            send(processor, span(2), span(3))
            destination.wait_for_spans(2)
        assert [message for _, _, message in destination.spans] == [span(2), span(3)]

    assert processor.books().as_they_came == {"no root": 2}
    assert processor.books().traces == 0


def test_a_trace_that_is_too_large_goes_on_as_it_came() -> None:
    settings = replace(PATIENT, window=Limits(trace_spans=2))
    spans = [span(2), span(3), span(4), span(1), span(5)]
    with sink() as destination:
        with forwarding(destination, settings) as processor:
            send(processor, *spans)
        assert sorted(map(bytes_of, originals(destination))) == sorted(map(bytes_of, spans))
        assert lane_of(destination) == []

    assert processor.books().as_they_came == {"trace_full": 5}


def test_a_span_that_nothing_can_hold_goes_on_as_it_came() -> None:
    settings = replace(PATIENT, window=Limits(held_bytes=SPAN_OVERHEAD))
    with sink() as destination, forwarding(destination, settings) as processor:
        send(processor, span(1), span(2))
        destination.wait_for_spans(2)

    assert processor.books().as_they_came == {"too_large": 2}


def test_what_made_room_is_explained_as_far_as_it_came() -> None:
    size = SPAN_OVERHEAD + len(span(1).SerializeToString())
    settings = replace(PATIENT, window=Limits(held_bytes=size))
    with sink() as destination, forwarding(destination, settings) as processor:
        send(processor, span(1, trace=1), span(1, trace=2))
        destination.wait_for_spans(1 + MADE_FOR_ONE_ROW)

    assert processor.books().traces == 2


def test_what_another_processor_has_explained_passes_untouched() -> None:
    before = [span(1, attributes={names.LLMLAT_CRITICAL_PATH_IS_ON_PATH: True}), span(2)]
    with sink() as destination:
        with forwarding(destination, PATIENT) as processor:
            send(processor, *before)
            send(processor, span(7), scope=OWN_SCOPE)
        assert [message for _, _, message in destination.spans] == [*before, span(7)]

    assert processor.books().as_they_came == {"explained before": 3}


def test_a_trace_that_we_fail_at_goes_on_as_it_came(caplog: pytest.LogCaptureFixture) -> None:
    def explain(spans: Iterable[Span], assumptions: Assumptions) -> ExplainedTrace:
        received = list(spans)
        if received[0].trace_id[-1] == 1:
            raise ZeroDivisionError
        return process(received, assumptions)

    with sink() as destination:
        to = Destination(destination.address, delivery=QUICK)
        where = Deployment(grpc=Listener("127.0.0.1:0"), spans=to, settings=PATIENT)
        processor = Processor(where, explain)
        send(processor, span(1), span(2))
        send(processor, span(1, trace=2))
        processor.stop()
        sent = originals(destination)

    assert sorted(message.name for message in sent) == ["1/1", "1/2", "2/1"]
    assert processor.books().as_they_came == {UNEXPLAINED: 2}
    assert processor.books().traces == 1
    assert "could not be explained" in caplog.text
    assert_balanced(processor)


def test_stopping_sends_what_is_held() -> None:
    with sink() as destination:
        with forwarding(destination, PATIENT) as processor:
            send(processor, span(1), span(2))
            send(processor, span(2, trace=2))
            assert processor.books().held == 3
        assert sorted(message.name for message in originals(destination)) == ["1/1", "1/2", "2/2"]

    assert processor.books().as_they_came == {"no root": 1}


def test_attributes_of_every_type_are_kept() -> None:
    said: dict[str, AttributeValue] = {"n": 2**63 - 1, "t": "", "l": (1, (2.5, b"x")), "none": None}
    with sink() as destination:
        with forwarding(destination, PATIENT) as processor:
            send(processor, span(1, attributes=said))
        (content,) = destination.requests

    parsed = ExportTraceServiceRequest.FromString(content)
    first = parsed.resource_spans[0].scope_spans[0].spans[0]
    assert list(first.attributes[: len(said)]) == otlp.pairs(said)

"""OTLP over gRPC to a destination that answers in every way that there is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest

from llmlat_processor.edges.exporter import SHUTDOWN, Counts, Exporter
from llmlat_processor.edges.retrying import GIVEN_UP, REFUSED, REJECTED, TOO_LARGE
from llmlat_processor.settings import Delivery, Destination
from llmlat_processor.wire import Request
from tests.llmlat_processor.otlp import request, span
from tests.llmlat_processor.sink import (
    WAIT_S,
    Answer,
    asking_to_wait,
    failing,
    rejecting,
    saying,
    sink,
)

QUICK = Delivery(first_retry_s=0.001, longest_retry_s=0.002)


@contextmanager
def exporting(
    destination: str | Destination, delivery: Delivery = QUICK, **how: Any
) -> Iterator[Exporter]:
    if isinstance(destination, str):
        destination = Destination(destination, delivery=delivery)
    exporter = Exporter(destination, jitter=lambda: 1.0, **how)
    try:
        yield exporter
    finally:
        exporter.stop()


def of(*numbers: int) -> Request:
    return Request(
        request([span(number, name=f"span {number}") for number in numbers]).SerializeToString(),
        len(numbers),
    )


def sent_to(*answers: Answer, delivery: Delivery = QUICK) -> tuple[Counts, list[str], int]:
    """What becomes of three spans: counts, what has arrived, and after how many requests."""
    with sink(*answers) as destination:
        with exporting(destination.address, delivery) as exporter:
            exporter.put(of(1, 2, 3))
        return exporter.counts, destination.names(), len(destination.requests)


ALL_SENT = Counts(accepted=3, sent=3, queued=0, dropped={})
NAMES = ["span 1", "span 2", "span 3"]


def test_what_is_put_in_arrives_and_is_counted() -> None:
    assert sent_to() == (ALL_SENT, NAMES, 1)


RETRYABLE = [
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
]
OVERLOADED = grpc.StatusCode.RESOURCE_EXHAUSTED
FOR_GOOD = sorted(set(grpc.StatusCode) - {*RETRYABLE, OVERLOADED, grpc.StatusCode.OK}, key=str)


@pytest.mark.parametrize("code", RETRYABLE)
def test_what_may_pass_is_tried_again(code: grpc.StatusCode) -> None:
    assert sent_to(failing(code), failing(code)) == (ALL_SENT, NAMES, 3)


@pytest.mark.parametrize("code", FOR_GOOD)
def test_what_does_not_pass_is_dropped_and_counted(code: grpc.StatusCode) -> None:
    assert sent_to(failing(code)) == (Counts(3, 0, 0, {REFUSED: 3}), [], 1)


def test_an_overload_is_tried_again_only_where_it_says_when() -> None:
    """Where it does not, the request is too large: to send the same again is of no use."""
    all_that_there_are = [failing(OVERLOADED)] * 5

    assert sent_to(asking_to_wait(OVERLOADED, 0.001)) == (ALL_SENT, NAMES, 2)
    assert sent_to(*all_that_there_are) == (Counts(3, 0, 0, {TOO_LARGE: 3}), [], 5)


@pytest.mark.parametrize("bare", [False, True], ids=["in the status", "in a trailer"])
def test_a_pause_that_is_asked_for_is_kept(bare: bool) -> None:
    """It is longer than all the time there is, so keeping it means giving up."""
    asked = asking_to_wait(grpc.StatusCode.UNAVAILABLE, 3_600.5, bare=bare)

    assert sent_to(asked) == (Counts(3, 0, 0, {GIVEN_UP: 3}), [], 1)


def test_details_that_cannot_be_read_ask_for_nothing() -> None:
    def answer(context: Any) -> bytes:
        context.set_trailing_metadata((("grpc-status-details-bin", b"\xff"),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "garbled")
        return b""

    assert sent_to(answer)[0] == ALL_SENT


def test_in_time_it_gives_up() -> None:
    delivery = Delivery(first_retry_s=1, give_up_s=0.5)

    counts, _, requests = sent_to(failing(grpc.StatusCode.UNAVAILABLE), delivery=delivery)

    assert (counts, requests) == (Counts(3, 0, 0, {GIVEN_UP: 3}), 1)


PARTIAL = {
    "OT-07: an empty answer": (saying(b""), {}),
    "OT-07: an empty partial success": (rejecting(0, ""), {}),
    "OT-07: only a message": (rejecting(0, "you use an old port"), {}),
    "OT-07: two of three rejected": (rejecting(2), {REJECTED: 2}),
    "OT-07: more rejected than there were": (rejecting(9), {REJECTED: 3}),
    "OT-07: fewer than none": (rejecting(-1), {}),
    "OT-07: an answer that is none": (saying(b"\xff\xff"), {}),
}


@pytest.mark.parametrize(("answer", "dropped"), PARTIAL.values(), ids=PARTIAL)
def test_a_partial_success_is_counted_and_not_tried_again(
    answer: Answer, dropped: dict[str, int]
) -> None:
    lost = sum(dropped.values())
    counts, _, requests = sent_to(answer)

    assert (counts, requests) == (Counts(3, 3 - lost, 0, dropped), 1)


def test_each_kind_of_trouble_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    busy, wrong = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT
    sent_to(failing(busy, "no room"), failing(busy), failing(wrong, "no such field"))

    said = [record.getMessage() for record in caplog.records]
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "trying again: UNAVAILABLE, no room" in said[0]
    assert "refused by 127.0.0.1:" in said[1]
    assert "INVALID_ARGUMENT, no such field" in said[1]


def test_after_an_outage_that_was_told_it_is_told_that_spans_are_taken_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has read of the first outage hears of its end, and of one in another week."""
    monkeypatch.setattr("llmlat_processor.edges.exporter.SAID_EVERY_S", 0.0)
    busy = failing(grpc.StatusCode.UNAVAILABLE)
    with sink(busy, saying(b""), busy) as destination, exporting(destination.address) as exporter:
        exporter.put(of(1))
        destination.wait_for_requests(2)
        exporter.put(of(2))

    said = [record.getMessage().removeprefix(destination.address) for record in caplog.records]
    assert [words.split(",")[0].split("(")[0].strip() for words in said] == [
        f"not taken by {destination.address}",
        "takes what is sent again",
    ] * 2


def test_a_second_outage_of_the_same_minute_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    busy = failing(grpc.StatusCode.UNAVAILABLE)
    with sink(busy, saying(b""), busy) as destination, exporting(destination.address) as exporter:
        exporter.put(of(1))
        destination.wait_for_requests(2)
        exporter.put(of(2))

    assert len(caplog.records) == 2


def test_what_the_end_leaves_over_is_told_whole(caplog: pytest.LogCaptureFixture) -> None:
    busy = [failing(grpc.StatusCode.UNAVAILABLE)] * 9
    delivery = Delivery(first_retry_s=60, longest_retry_s=60, request_bytes=1, drain_s=0)
    with sink(*busy) as destination, exporting(destination.address, delivery) as exporter:
        exporter.put(of(1, 2))
        exporter.put(of(3))

    assert exporter.counts.dropped == {SHUTDOWN: 3}
    (said,) = [line for line in caplog.messages if "before the end" in line]
    assert said == f"3 spans could not be sent to {destination.address} before the end"


def held_up(go_on: Event) -> Answer:
    def answer(_context: Any) -> bytes:
        assert go_on.wait(WAIT_S)
        return b""

    return answer


def test_what_waits_is_sent_together() -> None:
    go_on = Event()
    with sink(held_up(go_on)) as destination:
        with exporting(destination.address) as exporter:
            exporter.put(of(1))
            destination.wait_for_requests(1)
            for number in range(2, 7):
                exporter.put(of(number))
            go_on.set()
        assert len(destination.requests) == 2
        assert destination.names() == [f"span {number}" for number in range(2, 7)]


def test_but_no_more_than_a_request_may_hold() -> None:
    go_on = Event()
    delivery = Delivery(request_bytes=2 * len(of(1).content))
    with sink(held_up(go_on)) as destination:
        with exporting(destination.address, delivery) as exporter:
            exporter.put(of(1))
            destination.wait_for_requests(1)
            for number in range(2, 7):
                exporter.put(of(number))
            go_on.set()
        assert max(map(len, destination.requests)) <= delivery.request_bytes
        assert len(destination.requests) == 4
        assert destination.names() == [f"span {number}" for number in range(2, 7)]


def test_one_request_that_is_refused_costs_its_neighbours_nothing() -> None:
    go_on = Event()
    wrong = failing(grpc.StatusCode.INVALID_ARGUMENT)
    with sink(held_up(go_on), wrong, saying(b""), wrong) as destination:
        with exporting(destination.address) as exporter:
            exporter.put(of(1))
            destination.wait_for_requests(1)
            for number in (2, 3, 4):
                exporter.put(of(number))
            go_on.set()
        assert exporter.counts == Counts(4, 3, 0, {REFUSED: 1})
        assert destination.names() == ["span 4"]


def test_it_says_when_it_is_full_and_takes_all_the_same() -> None:
    go_on = Event()
    with sink(held_up(go_on)) as destination:
        with exporting(destination.address, Delivery(queue_bytes=len(of(1).content))) as exporter:
            assert exporter.has_room
            exporter.put(of(1))
            destination.wait_for_requests(1)
            assert not exporter.has_room  # what is being sent is in the house as well
            exporter.put(of(2))
            assert exporter.counts == Counts(2, 0, 2, {})
            go_on.set()
        assert exporter.counts == Counts(2, 2, 0, {})


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_destination_that_comes_up_late_gets_all_that_waited() -> None:
    address = free_address()
    with exporting(address) as exporter:
        assert not exporter.is_reachable(0.01)
        exporter.put(of(1))
        with sink(address=address) as destination:
            destination.wait_for_spans(1)
            assert exporter.is_reachable(WAIT_S)

    assert exporter.counts == Counts(1, 1, 0, {})


def test_at_the_end_what_cannot_be_sent_is_dropped_in_bounded_time() -> None:
    with exporting(free_address(), Delivery(drain_s=0.05)) as exporter:
        exporter.put(of(1, 2))

    assert exporter.counts == Counts(2, 0, 0, {SHUTDOWN: 2})


def test_at_the_end_a_destination_that_does_not_answer_is_left() -> None:
    go_on = Event()
    with sink(held_up(go_on)) as destination:
        with exporting(destination.address, Delivery(drain_s=0.05, deadline_s=1_000)) as exporter:
            exporter.put(of(1, 2))
            destination.wait_for_requests(1)
        go_on.set()

    assert exporter.counts == Counts(2, 0, 0, {SHUTDOWN: 2})


def test_a_destination_that_does_not_answer_in_time_is_asked_again() -> None:
    go_on = Event()
    with sink(held_up(go_on)) as destination:
        with exporting(destination.address, Delivery(deadline_s=0.2)) as exporter:
            exporter.put(of(1))
            destination.wait_for_spans(1)
        go_on.set()

    assert exporter.counts == Counts(1, 1, 0, {})

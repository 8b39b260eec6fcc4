"""OTLP over HTTP to a destination that answers in every way that there is."""

from __future__ import annotations

from http import HTTPStatus
from threading import Event

import pytest

from llmlat_processor.edges.exporter import SHUTDOWN, Counts
from llmlat_processor.edges.retrying import GIVEN_UP, REFUSED, REJECTED, TOO_LARGE
from llmlat_processor.edges.sending import Signal
from llmlat_processor.settings import Compression, Delivery, Destination, Protocol
from tests.llmlat_processor.http_sink import HttpAnswer, HttpSink, Reply, http_sink
from tests.llmlat_processor.sink import WAIT_S, rejecting
from tests.llmlat_processor.test_exporter import ALL_SENT, NAMES, QUICK, exporting, free_address, of


def to(server: HttpSink, delivery: Delivery = QUICK) -> Destination:
    return Destination(server.url, Protocol.HTTP, delivery=delivery)


def sent_to(*answers: Reply | HttpAnswer) -> tuple[Counts, list[str], int]:
    """What becomes of three spans: counts, what has arrived, and after how many requests."""
    with http_sink(*answers) as server:
        with exporting(to(server)) as exporter:
            exporter.put(of(1, 2, 3))
        return exporter.counts, server.names(), len(server.requests)


def test_what_is_put_in_arrives_and_is_counted() -> None:
    assert sent_to() == (ALL_SENT, NAMES, 1)


RETRYABLE = {429, 502, 503, 504}
SPECIAL = {204, 205, 304, 413}
FOR_GOOD = sorted({*HTTPStatus} - {code for code in HTTPStatus if code < 300} - RETRYABLE - SPECIAL)


@pytest.mark.parametrize("code", sorted(RETRYABLE))
def test_what_may_pass_is_tried_again(code: int) -> None:
    assert sent_to(Reply(code), Reply(code)) == (ALL_SENT, NAMES, 3)


@pytest.mark.parametrize("code", FOR_GOOD)
def test_what_does_not_pass_is_dropped_and_counted(code: int) -> None:
    assert sent_to(Reply(code)) == (Counts(3, 0, 0, {REFUSED: 3}), [], 1)


def test_what_is_too_large_is_sent_in_halves() -> None:
    large = Reply(413)

    assert sent_to(large) == (ALL_SENT, NAMES, 3)
    assert sent_to(large, large) == (Counts(3, 2, 0, {TOO_LARGE: 1}), NAMES[1:], 3)


@pytest.mark.parametrize("pause", ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_a_pause_that_is_asked_for_is_kept(pause: str) -> None:
    """It is longer than all the time there is, so keeping it means giving up."""
    asked = Reply(503, headers={"retry-after": pause})

    assert sent_to(asked) == (Counts(3, 0, 0, {GIVEN_UP: 3}), [], 1)


def test_a_partial_success_is_counted_and_not_tried_again() -> None:
    answer = Reply(200, rejecting(2)(None), {"content-type": "application/x-protobuf"})

    assert sent_to(answer) == (Counts(3, 1, 0, {REJECTED: 2}), [], 1)


def test_a_destination_that_comes_and_goes_gets_all_of_it_in_order() -> None:
    flapping = [Reply(503), Reply(502), Reply(429, headers={"retry-after": "0"}), Reply(504)]
    delivery = Delivery(first_retry_s=0.001, longest_retry_s=0.002, request_bytes=1)
    with http_sink(*flapping) as server:
        with exporting(to(server, delivery)) as exporter:
            for number in range(1, 11):
                exporter.put(of(number))
        assert server.names() == [f"span {number}" for number in range(1, 11)]
    assert exporter.counts == Counts(10, 10, 0, {})


def held_up(go_on: Event) -> HttpAnswer:
    def answer() -> Reply:
        assert go_on.wait(WAIT_S)
        return Reply()

    return answer


def test_at_the_end_a_destination_that_does_not_answer_is_left() -> None:
    go_on = Event()
    with http_sink(held_up(go_on)) as server:
        delivery = Delivery(drain_s=0.05, deadline_s=1_000)
        with exporting(to(server, delivery)) as exporter:
            exporter.put(of(1, 2))
            server.wait_for_requests(1)
        go_on.set()

    assert exporter.counts == Counts(2, 0, 0, {SHUTDOWN: 2})


def test_a_destination_that_does_not_answer_in_time_is_asked_again() -> None:
    go_on = Event()
    with http_sink(held_up(go_on)) as server:
        with exporting(to(server, Delivery(deadline_s=0.2, first_retry_s=0.001))) as exporter:
            exporter.put(of(1))
            server.wait_for_spans(1)
        go_on.set()

    assert exporter.counts == Counts(1, 1, 0, {})


def test_where_nobody_is_spans_wait() -> None:
    delivery = Delivery(first_retry_s=0.001, drain_s=0.05)
    with exporting(Destination(free_address(), Protocol.HTTP, delivery=delivery)) as exporter:
        assert not exporter.is_reachable(0.1)
        exporter.put(of(1))

    assert exporter.counts == Counts(1, 0, 0, {SHUTDOWN: 1})
    assert "Failed to establish a new connection" in exporter.counts.last_error


def test_metrics_go_their_own_way() -> None:
    with http_sink(Reply(), Reply(413)) as server:
        destination = Destination(server.url, Protocol.HTTP, compression=Compression.GZIP)
        with exporting(destination, signal=Signal.METRICS) as exporter:
            exporter.put(of(1, 2))
            server.wait_for_requests(1)
            exporter.put(of(3, 4))
        assert server.paths == ["/v1/metrics"] * 2

    assert exporter.counts == Counts(4, 2, 0, {TOO_LARGE: 2})

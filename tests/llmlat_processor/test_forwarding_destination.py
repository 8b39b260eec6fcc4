"""Where spans are forwarded to: how much at once, while it is down, which addresses are none."""

from __future__ import annotations

import socket
import threading
from threading import Event
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest

from llmlat_processor.edges.grpc_receiver import GrpcReceiver
from llmlat_processor.settings import INLINE, Delivery, Settings
from llmlat_processor.window import SECOND_NS
from tests.llmlat_processor.forwarding import (
    AT_ONCE,
    MADE_FOR_ONE_ROW,
    PATIENT,
    assert_balanced,
    forward,
    forwarding,
    originals,
    send,
    span,
)
from tests.llmlat_processor.sink import failing, rejecting, saying, sink


def test_nothing_that_is_sent_is_larger_than_the_peer_accepts() -> None:
    limit = 4_000
    with sink() as destination:
        with forwarding(destination, PATIENT, Delivery(request_bytes=limit)) as processor:
            send(processor, *[span(number) for number in range(1, 60)])
        assert len(destination.requests) > 1
        assert max(map(len, destination.requests)) <= limit
        assert len(originals(destination)) == 59


def test_while_the_destination_is_down_spans_wait_and_then_all_arrive() -> None:
    down = [failing(grpc.StatusCode.UNAVAILABLE)] * 20
    with sink(*down) as destination, forwarding(destination) as processor:
        for trace in range(1, 6):
            send(processor, span(1, trace=trace))
        destination.wait_for_spans(5 * (1 + MADE_FOR_ONE_ROW))

    assert (processor.books().sent, processor.books().dropped) == (15, {})


def test_what_the_destination_rejects_is_in_the_books() -> None:
    with sink(rejecting(2)) as destination, forwarding(destination) as processor:
        send(processor, span(1))
        destination.wait_for_requests(1)

    books = processor.books()
    assert (books.sent, sum(books.dropped.values())) == (1, 2)
    assert "dropped (rejected by the destination)" in str(books)


def test_senders_are_asked_to_come_again_while_too_much_is_to_be_sent() -> None:
    go_on = Event()

    def held_up(context: Any) -> bytes:
        assert go_on.wait(20)
        return saying(b"")(context)

    small = Delivery(queue_bytes=1)
    with sink(held_up) as destination, forwarding(destination, AT_ONCE, small) as processor:
        send(processor, span(1))
        destination.wait_for_requests(1)
        with pytest.raises(grpc.RpcError, match="too many spans are waiting") as raised:
            send(processor, span(1, trace=2))
        assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
        assert_balanced(processor)
        go_on.set()

    assert processor.books().received == 1


def test_a_second_interrupt_ends_it_at_once_with_the_books_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop = GrpcReceiver.stop
    interrupts = [KeyboardInterrupt]

    def interrupted(receiver: GrpcReceiver) -> None:
        stop(receiver)
        while interrupts:
            raise interrupts.pop()

    with sink() as nowhere:
        address = nowhere.address
    processor = forward("127.0.0.1:0", address, PATIENT, Delivery(drain_s=1_000))
    send(processor, span(1), span(2))
    monkeypatch.setattr(GrpcReceiver, "stop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        processor.stop()

    books = processor.books()
    assert_balanced(processor)
    assert (books.held, books.queued, books.sent) == (0, 0, 0)
    assert sum(books.dropped.values()) == 2 + books.added


# ── Addresses ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("listen", [":4317", "127.0.0.1:4317", "localhost:4317", "0.0.0.0:4317"])
def test_to_send_to_oneself_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match="in a circle"):
        forward(listen, "127.0.0.1:4317")


@pytest.mark.parametrize(
    ("destination", "words"),
    [
        ("127.0.0.1", "is not an address like"),
        ("127.0.0.1:0", "is not an address like"),
        ("127.0.0.1:many", "is not an address like"),
        ("http://127.0.0.1:4319/v1/traces", "is not an address like"),
    ],
)
def test_what_is_no_destination_is_refused(destination: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        forward("127.0.0.1:0", destination)


@pytest.mark.parametrize("form", ["{}", "http://{}", "http://{}/"])
def test_a_destination_may_be_given_as_an_endpoint(form: str) -> None:
    with sink() as destination:
        processor = forward("127.0.0.1:0", form.format(destination.address))
        assert processor.destination == destination.address
        assert processor.is_connected(20)
        processor.stop()


def test_an_address_that_is_taken_leaves_no_thread_behind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match="choose another port"):
            forward(listen, "127.0.0.1:1")

    assert not [each for each in threading.enumerate() if each.name.startswith("llmlat-exporter")]


def test_it_has_not_ended_until_it_is_stopped_or_fails() -> None:
    with sink() as destination:
        processor = forward("127.0.0.1:0", destination.address, settings=AT_ONCE)
        assert not processor.has_ended(0)
        processor.stop()
        assert processor.has_ended(0)


def test_somebody_waits_so_it_holds_no_longer_than_a_minute() -> None:
    assert INLINE.window.hold_max_ns == 60 * SECOND_NS
    assert Settings().window.hold_max_ns > INLINE.window.hold_max_ns
    assert Delivery().request_bytes < 4 << 20

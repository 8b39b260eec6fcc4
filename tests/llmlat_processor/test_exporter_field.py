"""What went wrong in the field between a sender of spans and their destination."""

from __future__ import annotations

import grpc  # type: ignore[import-untyped]
import pytest

from llmlat_processor.edges.exporter import Counts, Exporter
from llmlat_processor.edges.retrying import REFUSED, REJECTED, TOO_LARGE
from llmlat_processor.settings import Delivery, Destination, Protocol
from llmlat_processor.wire import Request, decode, encode_within
from tests.llmlat_processor.http_sink import Reply, http_sink
from tests.llmlat_processor.otlp import request, span
from tests.llmlat_processor.sink import failing, rejecting, sink
from tests.llmlat_processor.test_exporter import QUICK, exporting, of

MIB = 1 << 20
SMALL = 100


def with_a_long_prompt() -> bytes:
    """One span of five megabytes among a hundred small ones."""
    spans = [span(number, name=f"small {number}") for number in range(1, SMALL + 1)]
    prompt = {"prompt": "€" * (5 * MIB // 3)}
    spans.insert(50, span(5_000, name="large", attributes=prompt))
    return request(spans).SerializeToString()


def put_all(exporter: Exporter, requests: list[Request]) -> None:
    for one in requests:
        exporter.put(one)


BY_BYTES = [*encode_within(Delivery().request_bytes, decode(with_a_long_prompt()).spans)]
AT_ONCE = [Request(with_a_long_prompt(), SMALL + 1)]


@pytest.mark.parametrize("requests", [BY_BYTES, AT_ONCE], ids=["by bytes", "at once"])
def test_ex_08_one_large_value_costs_the_small_spans_nothing(requests: list[Request]) -> None:
    """A real receiver of 4 MiB.

    What a user has written is not ours to cut: the span that is not taken is dropped, counted and
    said, and whoever wants to keep it writes less into it.
    """
    with sink() as destination:
        with exporting(destination.address) as exporter:
            put_all(exporter, requests)
        arrived = destination.names()

    assert arrived == [f"small {number}" for number in range(1, SMALL + 1)]
    assert exporter.counts == Counts(SMALL + 1, SMALL, 0, {TOO_LARGE: 1})
    assert "larger than max" in exporter.counts.last_error


@pytest.mark.parametrize(
    ("protocol", "code"),
    [(Protocol.GRPC, grpc.StatusCode.INTERNAL), (Protocol.HTTP, 500), (Protocol.HTTP, 400)],
)
def test_ex_09_a_poisoned_item_is_dropped_and_what_is_behind_it_arrives(
    protocol: Protocol, code: object
) -> None:
    """A text that was cut within a character: whoever parses it says so, and always will."""
    whole = request([span(name="€uro")]).SerializeToString()
    poisoned = Request(whole.replace("€".encode(), "€".encode()[:2] + b"u"), 1)
    delivery = Delivery(first_retry_s=0.001, request_bytes=1)  # each goes alone
    if protocol is Protocol.GRPC:
        with sink(failing(code, "invalid UTF-8")) as server:
            with exporting(server.address, delivery) as exporter:
                put_all(exporter, [poisoned, of(2), of(3)])
            arrived, attempts = server.names(), len(server.requests)
    else:
        with http_sink(Reply(int(f"{code}"))) as over_http:
            destination = Destination(over_http.url, protocol, delivery=delivery)
            with exporting(destination) as exporter:
                put_all(exporter, [poisoned, of(2), of(3)])
            arrived, attempts = over_http.names(), len(over_http.requests)

    assert (arrived, attempts) == (["span 2", "span 3"], 3)
    assert exporter.counts == Counts(3, 2, 0, {REFUSED: 1})


def test_ex_07_the_counts_say_what_became_of_the_spans_and_what_was_wrong() -> None:
    with sink(rejecting(1, "too old")) as destination:
        with exporting(destination.address) as exporter:
            assert exporter.counts.last_error == ""
            exporter.put(of(1, 2, 3))
        counts = exporter.counts

    assert counts == Counts(accepted=3, sent=2, queued=0, dropped={REJECTED: 1})
    assert counts.last_error == "too old"


def test_ex_07_a_path_that_is_not_there_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with http_sink(Reply(404), Reply(404)) as server:
        destination = Destination(f"{server.url}/wrong", Protocol.HTTP, delivery=QUICK)
        with exporting(destination) as exporter:
            exporter.put(of(1, 2))

    assert exporter.counts == Counts(2, 0, 0, {REFUSED: 2})
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"refused by {server.url}/wrong/v1/traces: HTTP 404 Not Found")
    assert "is the path right" in said
    assert "is the path right" in exporter.counts.last_error


def test_ex_07_a_protocol_that_is_not_spoken_there_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    delivery = Delivery(first_retry_s=1, give_up_s=0)
    with http_sink() as server, exporting(server.address, delivery) as exporter:
        exporter.put(of(1))
    assert "it speaks HTTP: set the protocol to http" in caplog.text

    caplog.clear()
    with sink() as other:
        destination = Destination(other.address, Protocol.HTTP, delivery=delivery)
        with exporting(destination) as exporter:
            exporter.put(of(1))
    assert "set the protocol to grpc" in caplog.text


def test_a_secret_is_never_said(caplog: pytest.LogCaptureFixture) -> None:
    with http_sink(Reply(401)) as server:
        destination = Destination(
            server.url, Protocol.HTTP, headers={"x-key": "secret"}, token="secret", delivery=QUICK
        )
        with exporting(destination) as exporter:
            exporter.put(of(1))

    assert "secret" not in caplog.text + repr(exporter.counts) + repr(destination)
    assert exporter.counts.dropped == {REFUSED: 1}

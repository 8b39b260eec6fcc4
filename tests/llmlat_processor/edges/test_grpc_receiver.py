"""OTLP over gRPC on loopback, as an exporter sees it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from llmlat_processor.edges import grpc_receiver
from llmlat_processor.edges.grpc_receiver import THREADS, GrpcReceiver
from llmlat_processor.edges.receiver import (
    POSTPONED,
    REFUSED,
    UNAUTHORIZED,
    UNDECODABLE,
    UNFINISHED,
    Take,
)
from llmlat_processor.settings import Listener
from tests.llmlat_processor.otlp import raw_request, request, span
from tests.llmlat_processor.receiving import MIB, Taken, certificates, idle_connections, many_files

EXPORT = "/opentelemetry.proto.collector.{}.v1.{}Service/Export"
TRACES = EXPORT.format("trace", "Trace")
ONE = request([span(1)]).SerializeToString()
LOOPBACK = Listener("127.0.0.1:0")


@contextmanager
def receiving(
    take: Take, listener: Listener = LOOPBACK, max_message_bytes: int = MIB, **settings: Any
) -> Iterator[GrpcReceiver]:
    receiver = GrpcReceiver(listener, take, max_message_bytes=max_message_bytes, **settings)
    try:
        yield receiver
    finally:
        receiver.stop()


def send(
    receiver: GrpcReceiver,
    content: bytes,
    method: str = TRACES,
    *,
    gzip: bool = False,
    token: str = "",
) -> ExportTraceServiceResponse:
    compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression
    shown = [("authorization", token)] if token else None
    with grpc.insecure_channel(receiver.address) as channel:
        export = channel.unary_unary(method)
        answer = export(content, timeout=10, compression=compression, metadata=shown)
    return ExportTraceServiceResponse.FromString(answer)


def send_over_tls(receiver: GrpcReceiver, credentials: grpc.ChannelCredentials) -> bytes:
    with grpc.secure_channel(receiver.address, credentials) as channel:
        answer: bytes = channel.unary_unary(TRACES)(ONE, timeout=10)
    return answer


@pytest.mark.parametrize("gzip", [False, True])
def test_spans_are_taken_and_success_is_an_empty_answer(gzip: bool) -> None:
    """OT-07: what is empty is success."""
    taken = Taken()
    content = request([span(1), span(2)]).SerializeToString()

    with receiving(taken) as receiver:
        answer = send(receiver, content, gzip=gzip)

    assert taken.numbers == [1, 2]
    assert taken[0].request == content
    assert not answer.HasField("partial_success")


def test_it_listens_on_loopback_unless_told_otherwise() -> None:
    with receiving(Taken(), Listener(":0")) as receiver:
        assert receiver.address.startswith("127.0.0.1:")
        assert not receiver.address.endswith(":0")


def test_damaged_spans_are_a_partial_success_with_one_clear_message() -> None:
    broken = span(2, trace_id=b"short")

    with receiving(Taken()) as receiver:
        answer = send(receiver, request([span(1), broken, broken]).SerializeToString())
        counts = receiver.counts

    assert answer.partial_success.rejected_spans == 2
    assert answer.partial_success.error_message == (
        "2 of 3 spans refused; first resource_spans[0].scope_spans[0].spans[1]: "
        "trace_id has 5 bytes instead of 16"
    )
    assert counts[REFUSED] == 2


def test_text_that_is_not_utf_8_costs_only_its_span() -> None:
    broken = span(2, name="chat?").SerializeToString().replace(b"chat?", b"chat\xff")
    taken = Taken()

    with receiving(taken) as receiver:
        answer = send(receiver, raw_request([span(1).SerializeToString(), broken]))

    assert taken.numbers == [1]
    assert answer.partial_success.rejected_spans == 1
    assert "UTF-8" in answer.partial_success.error_message


def test_a_batch_that_comes_twice_is_taken_twice() -> None:
    taken = Taken()

    with receiving(taken) as receiver:
        answers = [send(receiver, ONE), send(receiver, ONE)]

    assert taken.numbers == [1, 1]
    assert answers == [ExportTraceServiceResponse()] * 2


def test_other_signals_sent_as_traces_get_a_hint() -> None:
    with receiving(Taken()) as receiver:
        answer = send(receiver, request([span(trace_id=b"")]).SerializeToString())

    assert "if these are logs or metrics, send them to their own service" in (
        answer.partial_success.error_message
    )


def test_undecodable_bytes_are_an_invalid_argument() -> None:
    with receiving(Taken()) as receiver, pytest.raises(grpc.RpcError) as raised:
        send(receiver, b"nonsense")

    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "not an export of spans in protobuf" in raised.value.details()
    assert receiver.counts[UNDECODABLE] == 1


def test_an_exporter_is_asked_to_come_again_in_the_words_of_who_takes_no_more() -> None:
    with receiving(lambda _: "the disk is full") as receiver:
        with pytest.raises(grpc.RpcError) as raised:
            send(receiver, ONE)
        counts = receiver.counts

    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
    assert raised.value.details() == "the disk is full"
    trailers = dict(raised.value.trailing_metadata())
    for_python = RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"])
    assert for_python.retry_delay.seconds == 1
    for_others = RetryInfo()
    status = Status.FromString(trailers["grpc-status-details-bin"])
    status.details[0].Unpack(for_others)
    assert for_others == for_python
    assert status.message == "the disk is full"
    assert counts == {POSTPONED: 1}


@pytest.mark.parametrize(("signal", "service"), [("logs", "Logs"), ("metrics", "Metrics")])
def test_other_signals_are_thanked_for_and_dropped(signal: str, service: str) -> None:
    with receiving(Taken()) as receiver:
        answer = send(receiver, b"whatever", EXPORT.format(signal, service))

    assert answer == ExportTraceServiceResponse()
    assert receiver.counts == {signal: 1}


@pytest.mark.parametrize("gzip", [False, True])
def test_a_request_above_the_limit_is_refused_even_when_it_is_small_on_the_wire(gzip: bool) -> None:
    """A thousand bytes that are a million when they are unpacked, and more."""
    content = request([span(name="x" * 32 * MIB)]).SerializeToString()
    taken = Taken()

    with receiving(taken) as receiver:
        with pytest.raises(grpc.RpcError) as raised:
            send(receiver, content, gzip=gzip)
        send(receiver, ONE)

    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert ("Decompressed message" in raised.value.details()) == gzip  # no more is made of it
    assert taken.numbers == [1]
    assert receiver.counts == {UNFINISHED: 1}


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    with (
        receiving(Taken()) as receiver,
        pytest.raises(OSError, match="choose another port") as raised,
    ):
        GrpcReceiver(Listener(receiver.address), Taken(), max_message_bytes=MIB)

    assert f"cannot listen on {receiver.address}: Address already in use" in str(raised.value)


def test_a_host_that_has_no_address_is_named_as_such() -> None:
    with pytest.raises(OSError, match=r"nowhere\.invalid is no name of this machine"):
        GrpcReceiver(Listener("nowhere.invalid:0"), Taken(), max_message_bytes=MIB)


@pytest.mark.parametrize("listen", ["localhost", "127.0.0.1:http", "127.0.0.1:70000", ""])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match="is not an address like"):
        GrpcReceiver(Listener(listen), Taken(), max_message_bytes=MIB)


def test_after_the_stop_nobody_listens() -> None:
    with receiving(Taken()) as receiver:
        host, _, port = receiver.address.rpartition(":")

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)


@pytest.mark.parametrize("shown", ["", "Bearer other", "Basic secret", "secret"])
def test_who_shows_no_token_is_told_so(shown: str) -> None:
    taken = Taken()

    with receiving(taken, Listener("127.0.0.1:0", token="secret")) as receiver:
        with pytest.raises(grpc.RpcError, match="authorization: Bearer") as raised:
            send(receiver, ONE, token=shown)
        counts = receiver.counts

    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED
    assert not taken
    assert counts == {UNAUTHORIZED: 1}


@pytest.mark.parametrize("shown", ["Bearer secret", "bearer secret"])
def test_who_shows_the_token_is_let_in(shown: str) -> None:
    taken = Taken()

    with receiving(taken, Listener("127.0.0.1:0", token="secret")) as receiver:
        send(receiver, ONE, token=shown)

    assert taken.numbers == [1]


def test_tls_is_spoken_with_who_believes_the_certificate(tmp_path: Path) -> None:
    made = certificates(tmp_path)
    believing = grpc.ssl_channel_credentials(made.authority.read_bytes())
    taken = Taken()

    with receiving(taken, Listener("127.0.0.1:0", made.tls)) as receiver:
        send_over_tls(receiver, believing)
        with pytest.raises(grpc.RpcError):
            send(receiver, ONE)

    assert taken.numbers == [1]


def test_with_authorities_for_clients_only_their_certificates_are_let_in(tmp_path: Path) -> None:
    made = certificates(tmp_path)
    believed = made.authority.read_bytes()
    nobody = grpc.ssl_channel_credentials(believed)
    client = grpc.ssl_channel_credentials(
        believed, made.key.read_bytes(), made.certificate.read_bytes()
    )
    taken = Taken()

    with receiving(taken, Listener("127.0.0.1:0", made.mutual)) as receiver:
        with pytest.raises(grpc.RpcError) as raised:
            send_over_tls(receiver, nobody)
        send_over_tls(receiver, client)

    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
    assert taken.numbers == [1]


@contextmanager
def stalling(receiver: GrpcReceiver, count: int) -> Iterator[list[Any]]:
    """Requests that have begun, and of which nothing comes."""
    over = Event()

    def nothing() -> Iterator[bytes]:
        over.wait()
        yield from ()

    with ExitStack() as stack:
        channel = stack.enter_context(grpc.insecure_channel(receiver.address))
        stack.callback(over.set)
        export = channel.stream_unary(TRACES)
        yield [export.future(nothing()) for _ in range(count)]


def test_a_request_that_does_not_arrive_is_called_off() -> None:
    with receiving(Taken(), arrival_s=0.05) as receiver, stalling(receiver, 1) as (call,):
        assert call.code() == grpc.StatusCode.CANCELLED

    assert receiver.counts == {UNFINISHED: 1}


def test_requests_that_do_not_arrive_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_receiver, "CROWDED_S", 0.02)
    taken = Taken()

    with receiving(taken, arrival_s=600) as receiver, stalling(receiver, 2 * THREADS):
        send(receiver, ONE)

    assert taken.numbers == [1]


def test_connections_that_say_nothing_keep_nobody_out() -> None:
    taken = Taken()

    with many_files(), receiving(taken) as receiver, idle_connections(receiver.address, 2_000):
        send(receiver, ONE)

    assert taken.numbers == [1]

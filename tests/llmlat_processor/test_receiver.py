"""OTLP over gRPC on loopback, as an exporter sees it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import grpc  # type: ignore[import-untyped]
import pytest
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from llmlat_processor.edges.receiver import REFUSED, UNDECODABLE, Receiver, Take
from llmlat_processor.wire import WireSpan
from tests.llmlat_processor.otlp import request, span

EXPORT = "/opentelemetry.proto.collector.{}.v1.{}Service/Export"
TRACES = EXPORT.format("trace", "Trace")
MIB = 1 << 20


@contextmanager
def receiving(take: Take, listen: str = "127.0.0.1:0") -> Iterator[Receiver]:
    receiver = Receiver(listen, take, max_message_bytes=MIB)
    try:
        yield receiver
    finally:
        receiver.stop()


def send(
    receiver: Receiver, content: bytes, method: str = TRACES, *, gzip: bool = False
) -> ExportTraceServiceResponse:
    compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression
    with grpc.insecure_channel(receiver.address) as channel:
        answer = channel.unary_unary(method)(content, timeout=10, compression=compression)
    return ExportTraceServiceResponse.FromString(answer)


def accept(_spans: Sequence[WireSpan]) -> bool:
    return True


@pytest.mark.parametrize("gzip", [False, True])
def test_spans_are_taken_and_success_is_an_empty_answer(gzip: bool) -> None:
    taken: list[WireSpan] = []

    def take(spans: Sequence[WireSpan]) -> bool:
        taken.extend(spans)
        return True

    with receiving(take) as receiver:
        answer = send(receiver, request([span(1), span(2)]).SerializeToString(), gzip=gzip)

    assert [read.span_id[-1] for read in taken] == [1, 2]
    assert not answer.HasField("partial_success")


def test_it_listens_on_loopback_unless_told_otherwise() -> None:
    with receiving(accept, ":0") as receiver:
        assert receiver.address.startswith("127.0.0.1:")
        assert not receiver.address.endswith(":0")


def test_damaged_spans_are_a_partial_success_with_one_clear_message() -> None:
    broken = span(2, trace_id=b"short")

    with receiving(accept) as receiver:
        answer = send(receiver, request([span(1), broken, broken]).SerializeToString())
        counts = receiver.counts

    assert answer.partial_success.rejected_spans == 2
    assert answer.partial_success.error_message == (
        "2 of 3 spans refused; first resource_spans[0].scope_spans[0].spans[1]: "
        "trace_id has 5 bytes instead of 16"
    )
    assert counts[REFUSED] == 2


def test_other_signals_sent_as_traces_get_a_hint() -> None:
    with receiving(accept) as receiver:
        answer = send(receiver, request([span(trace_id=b"")]).SerializeToString())

    assert "if these are logs or metrics, send them to their own service" in (
        answer.partial_success.error_message
    )


def test_undecodable_bytes_are_an_invalid_argument() -> None:
    with receiving(accept) as receiver, pytest.raises(grpc.RpcError) as raised:
        send(receiver, b"nonsense")

    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "not an export of spans in protobuf" in raised.value.details()
    assert receiver.counts[UNDECODABLE] == 1


def test_an_exporter_is_asked_to_come_again_when_there_is_no_room() -> None:
    with receiving(lambda _spans: False) as receiver, pytest.raises(grpc.RpcError) as raised:
        send(receiver, request([span()]).SerializeToString())

    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
    trailers = dict(raised.value.trailing_metadata())
    for_python = RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"])
    assert for_python.retry_delay.seconds == 1
    for_others = RetryInfo()
    Status.FromString(trailers["grpc-status-details-bin"]).details[0].Unpack(for_others)
    assert for_others == for_python


@pytest.mark.parametrize(("signal", "service"), [("logs", "Logs"), ("metrics", "Metrics")])
def test_other_signals_are_thanked_for_and_dropped(signal: str, service: str) -> None:
    with receiving(accept) as receiver:
        answer = send(receiver, b"whatever", EXPORT.format(signal, service))

    assert answer == ExportTraceServiceResponse()
    assert receiver.counts == {signal: 1}


@pytest.mark.parametrize("gzip", [False, True])
def test_a_request_above_the_limit_is_refused_even_when_it_is_small_on_the_wire(gzip: bool) -> None:
    content = request([span(name="x" * 2 * MIB)]).SerializeToString()

    with receiving(accept) as receiver, pytest.raises(grpc.RpcError) as raised:
        send(receiver, content, gzip=gzip)

    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    with (
        receiving(accept) as receiver,
        pytest.raises(OSError, match="choose another port") as raised,
    ):
        Receiver(receiver.address, accept, max_message_bytes=MIB)

    assert f"cannot listen on {receiver.address}: Address already in use" in str(raised.value)


def test_a_host_that_has_no_address_is_named_as_such() -> None:
    with pytest.raises(OSError, match=r"nowhere\.invalid is no name of this machine"):
        Receiver("nowhere.invalid:0", accept, max_message_bytes=MIB)


@pytest.mark.parametrize("listen", ["localhost", "127.0.0.1:http", "127.0.0.1:70000", ""])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match="is not an address like"):
        Receiver(listen, accept, max_message_bytes=MIB)


def test_after_the_stop_nobody_listens() -> None:
    with receiving(accept) as receiver:
        host, _, port = receiver.address.rpartition(":")

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)

"""What a receiver on a network has to expect, done to a site."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Final

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.faults.load import ANSWER_S, Batch, batch, post
from tests.faults.processor_run import Site
from tests.llmlat_processor.receiving import connected, rest
from tests.llmlat_processor.sink import SERVICE

MIB: Final = 1 << 20
BOMB_BYTES: Final = 256 * MIB
TIMES: Final = 4
SLOW: Final = 64
CROWD: Final = 10_000

Attack = Callable[[Site], None]


def asked(
    address: str, content: bytes, compression: grpc.Compression = grpc.Compression.NoCompression
) -> grpc.StatusCode:
    """What a request over gRPC is answered with."""
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options=options) as channel:
        export = channel.unary_unary(f"/{SERVICE}/Export")
        try:
            export(content, timeout=ANSWER_S, compression=compression)
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


# ── Too much ─────────────────────────────────────────────────────────────────────────────────────


def zip_bombs_over_grpc(site: Site) -> None:
    bomb = bytes(BOMB_BYTES)
    for _ in range(TIMES):
        code = asked(site.grpc, bomb, grpc.Compression.Gzip)
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


def zip_bombs_over_http(site: Site) -> None:
    pack = zlib.compressobj(1, wbits=31)
    bomb = b"".join(pack.compress(bytes(MIB)) for _ in range(BOMB_BYTES // MIB)) + pack.flush()
    with ThreadPoolExecutor(TIMES) as threads:
        replies = threads.map(
            lambda _: post(f"http://{site.http}", bomb, {"content-encoding": "gzip"}), range(TIMES)
        )
        assert [status for status, _, _ in replies] == [413] * TIMES


def many_empty_spans(site: Site) -> None:
    """Two bytes each, and next to nothing when packed."""
    spans = b"\x12\x00" * (30 * MIB)
    scope_spans = b"\x12" + varint(len(spans)) + spans
    content = b"\x0a" + varint(len(scope_spans)) + scope_spans
    code = asked(site.grpc, content, grpc.Compression.Gzip)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    body = gzip.compress(content)
    assert post(f"http://{site.http}", body, {"content-encoding": "gzip"})[0] == 400


def varint(number: int) -> bytes:
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*content, number])


def too_large(site: Site) -> None:
    content = a_span(name="x" * (65 * MIB)).request
    assert asked(site.grpc, content) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert post(f"http://{site.http}", content)[0] == 413


# ── Too slow, too many ───────────────────────────────────────────────────────────────────────────


@contextmanager
def half_said(address: str, words: bytes) -> Iterator[Sequence[socket.socket]]:
    """Many that begin to speak."""
    with ExitStack() as stack:
        connections = [stack.enter_context(connected(address)) for _ in range(SLOW)]
        for connection in connections:
            connection.sendall(words)
        yield connections


HEAD: Final = b"POST /v1/traces HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-protobuf\r\n"
BODY: Final = HEAD + b"content-length: 60000000\r\n\r\n" + bytes(1000)
HTTP2: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"


@contextmanager
def unfinished_calls(address: str) -> Iterator[None]:
    """Many that have begun a call and send nothing in it."""
    over = Event()

    def nothing() -> Iterator[bytes]:
        over.wait()
        yield from ()

    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options=options) as channel:
        export = channel.stream_unary(f"/{SERVICE}/Export")
        calls = [export.future(nothing()) for _ in range(SLOW)]
        try:
            yield
        finally:
            over.set()
            for call in calls:
                call.cancel()


# ── Not what it should be ────────────────────────────────────────────────────────────────────────


def a_span(
    *, trace_id: bytes = bytes(range(16)), span_id: bytes = b"12345678", name: str = "errand"
) -> Batch:
    message = ExportTraceServiceRequest()
    spans = message.resource_spans.add().scope_spans.add().spans
    spans.append(Span(trace_id=trace_id, span_id=span_id, name=name))
    return batch(message)


def garbage(site: Site) -> None:
    for content in (b"\xff" * 1000, b"\x0a\xff", b"{}"):
        assert asked(site.grpc, content) is grpc.StatusCode.INVALID_ARGUMENT
        assert post(f"http://{site.http}", content)[0] == 400
    for address in (site.grpc, site.http):
        with connected(address) as connection:
            connection.sendall(b"\x16\x03\x01" + bytes(range(256)) * 8)
            connection.shutdown(socket.SHUT_WR)
            rest(connection)


def invalid_text(site: Site) -> None:
    content = a_span(name="errand").request.replace(b"errand", b"err\xff\xfed")
    for _ in range(TIMES):
        assert asked(site.grpc, content) is grpc.StatusCode.OK


def invalid_ids(site: Site) -> None:
    for one in (a_span(trace_id=bytes(16)), a_span(trace_id=b"short"), a_span(span_id=b"")):
        with grpc.insecure_channel(site.grpc) as channel:
            answer = channel.unary_unary(f"/{SERVICE}/Export")(one.request, timeout=ANSWER_S)
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
        assert partial.rejected_spans == 1
        assert partial.error_message

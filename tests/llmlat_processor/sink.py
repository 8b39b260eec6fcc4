"""A destination for spans: takes what is sent, or answers as it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Condition
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
WAIT_S = 20

Answer = Callable[[Any], bytes]


class Arrivals:
    """What has come to a server; every span that it has taken over is in `spans`, in that order."""

    def __init__(self) -> None:
        """Nothing has come."""
        self.requests: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        self.spans: list[tuple[ResourceSpans, ScopeSpans, Span]] = []
        self._changed = Condition()

    def wait_for_requests(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= count, WAIT_S)

    def wait_for_spans(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.spans) >= count, WAIT_S), self.names()

    def names(self) -> list[str]:
        return [span.name for _, _, span in self.spans]

    def has_come(self, content: bytes, headers: Mapping[str, str]) -> None:
        with self._changed:
            self.requests.append(content)
            self.headers.append(headers)
            self._changed.notify_all()

    def take(self, content: bytes) -> None:
        with self._changed:
            self.spans += _spans_of(content)
            self._changed.notify_all()


class Sink(Arrivals):
    """A server of gRPC on loopback."""

    def __init__(
        self,
        address: str = "127.0.0.1:0",
        answers: Sequence[Answer] = (),
        *,
        service: str = SERVICE,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        """Listen; the first requests get these answers, all others are taken."""
        super().__init__()
        self._answers = list(answers)
        self._threads = ThreadPoolExecutor(4)
        handler = grpc.unary_unary_rpc_method_handler(self._export)
        self._server = grpc.server(
            self._threads,
            handlers=[grpc.method_handlers_generic_handler(service, {"Export": handler})],
            options=[("grpc.so_reuseport", 0)],
        )
        port = (
            self._server.add_insecure_port(address)
            if credentials is None
            else self._server.add_secure_port(address, credentials)
        )
        self.address = f"{address.rpartition(':')[0]}:{port}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait()
        self._threads.shutdown()

    def _export(self, content: bytes, context: Any) -> bytes:
        with self._changed:
            answer = self._answers.pop(0) if self._answers else None
        self.has_come(content, dict(context.invocation_metadata()))
        if answer is not None:
            return answer(context)
        self.take(content)
        return b""


@contextmanager
def sink(*answers: Answer, address: str = "127.0.0.1:0", **how: Any) -> Iterator[Sink]:
    server = Sink(address, answers, **how)
    try:
        yield server
    finally:
        server.stop()


def _spans_of(content: bytes) -> Iterator[tuple[ResourceSpans, ScopeSpans, Span]]:
    for resource_spans in ExportTraceServiceRequest.FromString(content).resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield resource_spans, scope_spans, span


# ── Answers ──────────────────────────────────────────────────────────────────────────────────────


def failing(code: grpc.StatusCode, words: str = "told to fail") -> Answer:
    def answer(context: Any) -> bytes:
        context.abort(code, words)
        return b""

    return answer


def asking_to_wait(code: grpc.StatusCode, after_s: float, *, bare: bool = False) -> Answer:
    """With RetryInfo in the status's details, or bare in a trailer of its own."""

    def answer(context: Any) -> bytes:
        pause = Duration(seconds=int(after_s), nanos=round(after_s % 1 * 10**9))
        info = RetryInfo(retry_delay=pause)
        status = Status(code=code.value[0], message="later")
        status.details.add().Pack(info)
        trailer = (
            ("google.rpc.retryinfo-bin", info.SerializeToString())
            if bare
            else ("grpc-status-details-bin", status.SerializeToString())
        )
        context.set_trailing_metadata((trailer,))
        context.abort(code, "later")
        return b""

    return answer


def saying(content: bytes) -> Answer:
    return lambda _context: content


def rejecting(spans: int, words: str = "too old") -> Answer:
    partial = ExportTracePartialSuccess(rejected_spans=spans, error_message=words)
    return saying(ExportTraceServiceResponse(partial_success=partial).SerializeToString())

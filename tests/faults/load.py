"""Senders that behave as OTLP exporters do: each batch again and again until it is acknowledged."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Final

import grpc  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.traces import MakeTrace, llm_trace
from bench.traces import batches as whole_batches
from tests.llmlat_processor.sink import SERVICE

SpanId = tuple[bytes, bytes]
"""Ids of a trace and of a span."""

ANSWER_S: Final = 15.0
PAUSE_S: Final = 0.2

_RETRYABLE: Final = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.ABORTED,
}
_RETRYABLE_STATUS: Final = {429, 502, 503, 504}

_CHANNEL: Final = [
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_send_message_length", -1),
]


@dataclass(frozen=True, slots=True)
class Batch:
    """A serialized ExportTraceServiceRequest, and which spans are in it."""

    request: bytes
    ids: frozenset[SpanId]


def batch(request: ExportTraceServiceRequest) -> Batch:
    """Of a message."""
    ids = {
        (span.trace_id, span.span_id)
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    }
    return Batch(request.SerializeToString(), frozenset(ids))


def batches(
    count: int, *, seed: int = 1, size: int = 300, make: MakeTrace = llm_trace
) -> Sequence[Batch]:
    """At least so many: every service of a trace sends its own spans, as their exporters do."""
    made: list[Batch] = []
    whole = whole_batches(make, count, seed, size)
    for one in whole:
        for resource_spans in ExportTraceServiceRequest.FromString(one.request).resource_spans:
            made.append(batch(ExportTraceServiceRequest(resource_spans=[resource_spans])))
        if len(made) >= count:
            break
    return made


def whole_traces(count: int, *, seed: int = 1, make: MakeTrace = llm_trace) -> Sequence[Batch]:
    """Each trace in a batch of its own."""
    made = whole_batches(make, count, seed, 1)
    return [batch(ExportTraceServiceRequest.FromString(one.request)) for one in made]


def ids_of(batches: Iterable[Batch]) -> frozenset[SpanId]:
    """All spans."""
    return frozenset[SpanId]().union(*(one.ids for one in batches))


class Load:
    """Threads that send what there is."""

    def __init__(
        self, address: str, batches: Sequence[Batch], *, senders: int = 2, every_s: float = 0.0
    ) -> None:
        """Begin.

        Args:
            address: `host:port` of gRPC, or `http://host:port`.
            batches: sent once each, unless it is not acknowledged.
            senders: how many there are, each with a connection of its own.
            every_s: pause of each between two batches.
        """
        self.acknowledged: set[SpanId] = set()
        self.last_s: dict[bytes, float] = {}  # when the last span of a trace was acknowledged
        self.postponed = 0
        self.words: list[str] = []
        self._every_s = every_s
        self._left: SimpleQueue[Batch] = SimpleQueue()
        for one in batches:
            self._left.put(one)
        self._lock = Lock()
        self._over = Event()
        send = _send_by_http if address.startswith("http") else _send_by_grpc
        self._threads = [Thread(target=send, args=(address, self)) for _ in range(senders)]
        for thread in self._threads:
            thread.start()

    @property
    def is_done(self) -> bool:
        """Whether everything is acknowledged."""
        return not any(thread.is_alive() for thread in self._threads)

    def join(self, patience_s: float = 60.0) -> None:
        """Until everything is acknowledged."""
        for thread in self._threads:
            thread.join(patience_s)
        assert self.is_done, (self.postponed, self.words[-3:])

    def stop(self) -> None:
        """Give up."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def next(self) -> Iterator[Batch]:
        """For a thread: batches, until none is left."""
        while not self._over.is_set():
            try:
                yield self._left.get_nowait()
            except Empty:
                return
            if self._every_s:
                self._over.wait(self._every_s)

    def has_taken(self, one: Batch) -> bool:
        """For a thread: it is acknowledged."""
        with self._lock:
            self.acknowledged |= one.ids
            self.last_s.update(dict.fromkeys({trace for trace, _ in one.ids}, time.monotonic()))
        return True

    def has_postponed(self, words: str, after_s: float) -> bool:
        """For a thread: it comes again after a while; True where there is no point in it."""
        with self._lock:
            self.postponed += 1
            self.words.append(words)
        return self._over.wait(after_s)


@contextmanager
def load(address: str, batches: Sequence[Batch], **how: float) -> Iterator[Load]:
    running = Load(address, batches, **how)  # type: ignore[arg-type]
    try:
        yield running
    finally:
        running.stop()


def _send_by_grpc(address: str, load: Load) -> None:
    with grpc.insecure_channel(address, options=_CHANNEL) as channel:
        export = channel.unary_unary(f"/{SERVICE}/Export")
        for one in load.next():
            while not _is_sent_by_grpc(export, one, load):
                pass


def _is_sent_by_grpc(export: grpc.UnaryUnaryMultiCallable, one: Batch, load: Load) -> bool:
    try:
        export(one.request, timeout=ANSWER_S)
    except grpc.RpcError as error:
        asked_s = _asked_s(error)
        if error.code() not in _RETRYABLE and asked_s is None:
            raise
        return load.has_postponed(error.details(), PAUSE_S if asked_s is None else asked_s)
    return load.has_taken(one)


def _asked_s(error: grpc.Call) -> float | None:
    """How long the server has asked to wait, in RetryInfo."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            try:
                details = Status.FromString(value).details
            except DecodeError:
                continue
            info = RetryInfo()
            if any(detail.Unpack(info) for detail in details):
                return float(info.retry_delay.ToTimedelta().total_seconds())
    return None


def _send_by_http(address: str, load: Load) -> None:
    for one in load.next():
        while not _is_sent_by_http(address, one, load):
            pass


def _is_sent_by_http(address: str, one: Batch, load: Load) -> bool:
    try:
        status, after_s, words = post(address, one.request)
    except (OSError, http.client.HTTPException) as error:
        return load.has_postponed(str(error), PAUSE_S)
    if status == 200:
        return load.has_taken(one)
    if status not in _RETRYABLE_STATUS:
        raise ValueError(f"refused for good: {status} {words}")
    return load.has_postponed(words, after_s)


def post(
    address: str, content: bytes, headers: dict[str, str] | None = None
) -> tuple[int, float, str]:
    """Send a request over HTTP: status, seconds that are asked for, words."""
    connection = http.client.HTTPConnection(address.partition("//")[2], timeout=ANSWER_S)
    try:
        connection.request(
            "POST",
            "/v1/traces",
            content,
            {"content-type": "application/x-protobuf", **(headers or {})},
        )
        answer = connection.getresponse()
        after_s = float(answer.headers.get("retry-after") or PAUSE_S)
        return answer.status, after_s, answer.read().decode("latin-1")
    finally:
        connection.close()

"""OTLP over gRPC: sends spans on, again where that can help, and counts what it could not send.

    put ──> queue ──> one thread ──> destination
                        │   ^  not now: after a pause, longer each time, or as long as it asks for
                        │   └──┘
                        └─> not ever, or not in time: dropped, counted by reason, said once

The queue never refuses what is put in. It says when it is full, and whoever accepts spans from
outside then accepts no more: so what is bounded is what is in the house, and a worker that puts
something in never waits.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from threading import Condition
from typing import Final, Protocol

import grpc  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from llmlat_processor.edges.addresses import host_and_port, is_loopback
from llmlat_processor.settings import Delivery
from llmlat_processor.wire import Request

EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

REJECTED: Final = "rejected by the destination"
REFUSED: Final = "refused by the destination"
GIVEN_UP: Final = "given up"
SHUTDOWN: Final = "shutdown"

_RETRYABLE: Final = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""What OTLP calls so; RESOURCE_EXHAUSTED is one of them only where it says when to come again."""

_CHANNEL: Final = [
    ("grpc.max_send_message_length", -1),
    # Its own pauses grow to two minutes, in which a destination that is back is not noticed. The
    # least of them is left alone: it is also how long a destination may take to greet us.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection
]

_logger = logging.getLogger("llmlat_processor")


@dataclass(frozen=True, slots=True)
class Counts:
    """Every span that was put in: accepted = sent + queued + dropped.

    Attributes:
        accepted: spans that were put in.
        sent: spans that the destination has taken over.
        queued: spans that are still to be sent.
        dropped: spans that were not, by reason.
    """

    accepted: int
    sent: int
    queued: int
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a request was not taken.

    Attributes:
        words: status and details, for a person.
        again: whether to send it again can help.
        after_s: when at the earliest, as the destination asked for.
    """

    words: str
    again: bool
    after_s: float


class _Call(Protocol):
    """What is used of gRPC's call in flight."""

    def result(self) -> bytes:
        """Wait for the answer."""

    def cancel(self) -> bool:
        """Wait no longer."""


class Exporter:
    """Sends requests to one destination, from a thread of its own, from the moment it is made."""

    def __init__(
        self,
        destination: str,
        delivery: Delivery,
        *,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Nothing is connected yet.

        Args:
            destination: `host:port`.
            delivery: limits.
            jitter: from 0 to 1; pauses last between half of and the whole of what they may.
        """
        self.destination: Final = destination
        self._delivery = delivery
        self._jitter = jitter
        self._channel = _channel_to(destination)
        self._changed = Condition()
        self._queue: deque[Request] = deque()
        self._bytes = self._accepted = self._sent = 0
        self._dropped: Counter[str] = Counter()
        self._said: set[str] = set()
        self._call: _Call | None = None
        self._ends_s: float | None = None  # when to stop trying, once the end has been asked for
        self._has_ended = False
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="llmlat-exporter")
        self.work: Future[None] = self._threads.submit(self._run)

    def is_reachable(self, timeout_s: float) -> bool:
        """Whether somebody answers there; waits so long for it."""
        with self._changed:
            ready = grpc.channel_ready_future(self._channel)
        try:
            ready.result(timeout=timeout_s)
        except (FutureTimeoutError, grpc.FutureTimeoutError):
            return False
        finally:
            ready.cancel()
        return True

    def put(self, request: Request) -> None:
        """Have it sent; never waits, never refuses. After the end nothing is sent any more."""
        with self._changed:
            self._accepted += request.spans
            if self._has_ended:
                self._dropped[SHUTDOWN] += request.spans
                return
            self._queue.append(request)
            self._bytes += len(request.content)
            self._changed.notify_all()

    @property
    def has_room(self) -> bool:
        """Whether more should be accepted from outside."""
        with self._changed:
            return self._bytes < self._delivery.queue_bytes and self._ends_s is None

    @property
    def has_ended(self) -> bool:
        """Whether nothing is sent any more."""
        with self._changed:
            return self._has_ended

    @property
    def counts(self) -> Counts:
        """What became of every span so far."""
        with self._changed:
            dropped = dict(self._dropped)
            queued = self._accepted - self._sent - sum(dropped.values())
            return Counts(self._accepted, self._sent, queued, dropped)

    def stop(self, grace_s: float | None = None) -> None:
        """Send what there is, as long as that may take, and end; what is left is dropped.

        Args:
            grace_s: how long it may take, in seconds; None is what was set.
        """
        grace_s = self._delivery.drain_s if grace_s is None else grace_s
        with self._changed:
            self._ends_s = time.monotonic() + grace_s
            self._changed.notify_all()
        try:
            self.work.result(timeout=grace_s)
        except FutureTimeoutError:
            pass
        finally:  # also on a second Ctrl-C: the thread would keep the process
            with self._changed:
                self._ends_s = time.monotonic()
                if self._call is not None:
                    self._call.cancel()
                self._changed.notify_all()
            self._threads.shutdown()
            self._channel.close()
        self.work.result()

    # ── The thread ───────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while requests := self._take():
            self._deliver(requests)
            with self._changed:
                self._bytes -= sum(len(request.content) for request in requests)

    def _take(self) -> Sequence[Request]:
        """The next requests, as many as fit into one; none at the end."""
        with self._changed:
            while not self._queue and self._ends_s is None:
                self._changed.wait()
            taken: list[Request] = []
            room = self._delivery.request_bytes
            while self._queue and (not taken or len(self._queue[0].content) <= room):
                taken.append(self._queue.popleft())
                room -= len(taken[-1].content)
            self._has_ended = not taken
            return taken

    def _deliver(self, requests: Sequence[Request]) -> None:
        """Send several requests as one, until they are taken or it is of no use."""
        content = b"".join(request.content for request in requests)
        spans = sum(request.spans for request in requests)
        gives_up_s = time.monotonic() + self._delivery.give_up_s
        pause_s = self._delivery.first_retry_s
        while True:
            if self._is_over():
                self._drop(SHUTDOWN, spans, f"{spans} spans could not be sent before the end")
                return
            failure = self._send(content, spans)
            if failure is None:
                return
            if not failure.again:
                break
            self._say("again", f"not taken by {self.destination}, trying again: {failure.words}")
            wait_s = max(pause_s * (0.5 + self._jitter() / 2), failure.after_s)
            if time.monotonic() + wait_s > gives_up_s:
                words = f"{spans} spans not taken by {self.destination} in time: {failure.words}"
                self._drop(GIVEN_UP, spans, words)
                return
            self._pause(wait_s)
            pause_s = min(2 * pause_s, self._delivery.longest_retry_s)
        if len(requests) > 1:  # who is at fault is found by sending each alone
            for request in requests:
                self._deliver((request,))
        else:
            self._drop(REFUSED, spans, f"refused by {self.destination}: {failure.words}")

    def _send(self, content: bytes, spans: int) -> _Failure | None:
        try:
            answer = self._start(content).result()
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                self._connect_anew()
            return _failure(error)
        except grpc.FutureCancelledError:  # by the end
            return _Failure("cancelled", again=True, after_s=0)
        finally:
            self._call = None
        rejected, message = _rejected(answer)
        rejected = min(rejected, spans)
        with self._changed:
            self._sent += spans - rejected
        if rejected:
            words = f"{rejected} of {spans} spans rejected by {self.destination}: {message}"
            self._drop(REJECTED, rejected, words)
        elif message:
            self._say("message", f"{self.destination} has taken the spans and says: {message}")
        return None

    def _start(self, content: bytes) -> _Call:
        with self._changed:
            timeout_s = self._delivery.deadline_s
            if self._ends_s is not None:
                timeout_s = max(0.0, min(timeout_s, self._ends_s - time.monotonic()))
            self._call = self._channel.unary_unary(EXPORT).future(content, timeout=timeout_s)
            return self._call

    def _connect_anew(self) -> None:
        """No answer can mean that nobody is there any more: TCP needs minutes to find that out."""
        with self._changed:
            old, self._channel = self._channel, _channel_to(self.destination)
        old.close()

    def _is_over(self) -> bool:
        with self._changed:
            return self._ends_s is not None and time.monotonic() >= self._ends_s

    def _pause(self, wait_s: float) -> None:
        """Wait, unless the end is asked for: then there is no time to lose."""
        with self._changed:
            if self._ends_s is None:
                self._changed.wait_for(lambda: self._ends_s is not None, wait_s)
            else:
                left_s = max(0.0, self._ends_s - time.monotonic())
                self._changed.wait(min(wait_s, left_s, self._delivery.first_retry_s))

    def _drop(self, reason: str, spans: int, words: str) -> None:
        with self._changed:
            self._dropped[reason] += spans
        self._say(reason, words)

    def _say(self, kind: str, words: str) -> None:
        """Warn, the first time."""
        if kind not in self._said:
            self._said.add(kind)
            _logger.warning("%s (said once; the books count it)", words)


def _channel_to(destination: str) -> grpc.Channel:
    """Nothing is connected yet. Proxies of the environment are for others than this machine."""
    host, _ = host_and_port(destination)
    direct = [("grpc.enable_http_proxy", 0)] if is_loopback(host) else []
    return grpc.insecure_channel(destination, options=[*_CHANNEL, *direct])


def _failure(error: grpc.RpcError) -> _Failure:
    code = error.code()
    after_s = _retry_after_s(error.trailing_metadata() or ())
    again = code in _RETRYABLE or (
        code is grpc.StatusCode.RESOURCE_EXHAUSTED and after_s is not None
    )
    return _Failure(f"{code.name}, {error.details()}", again, after_s or 0)


def _retry_after_s(trailers: Sequence[tuple[str, str | bytes]]) -> float | None:
    """The pause that the destination asks for, in either place where one may stand."""
    for key, value in trailers:
        try:
            if key == "google.rpc.retryinfo-bin":
                return _seconds(RetryInfo.FromString(value))
            if key == "grpc-status-details-bin":
                for detail in Status.FromString(value).details:
                    info = RetryInfo()
                    if detail.Unpack(info):
                        return _seconds(info)
        except DecodeError:
            continue
    return None


def _seconds(info: RetryInfo) -> float:
    return float(info.retry_delay.seconds) + float(info.retry_delay.nanos) / 1e9


def _rejected(answer: bytes) -> tuple[int, str]:
    """How many spans were not taken, and why; an answer that cannot be read is a success."""
    try:
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return 0, ""
    return max(0, partial.rejected_spans), partial.error_message

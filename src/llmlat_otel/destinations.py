"""A destination of ours: what has become of the spans that were to go there, as its exporter says.

The OTLP exporters answer success or failure. Why they failed they only log, and what a collector
refused in a partial success they do not look at (opentelemetry-exporter-otlp 1.45); both are
overheard here. What cannot be heard is absent, never 0.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from llmlat_otel.core.guard import guarded
from llmlat_otel.core.runtime import runtime

SHUTDOWN_MS: Final = 6_000
"""How long the end of a process may take, be a collector dead and however many batches queued."""

_FAULT: Final = "export"
_LONGEST: Final = 500
_SAYINGS: Final = 3
_RESPONSE: Final = "opentelemetry.proto.collector.trace.v1.trace_service_pb2"


class _Partial(Protocol):
    """Part of a collector's answer."""

    rejected_spans: int
    error_message: str


class Exporter(Protocol):
    """What is asked of an exporter of the OpenTelemetry SDK."""

    def export(self, spans: Any, /) -> object:
        """Send spans; the result is named SUCCESS or FAILURE."""


class Processor(Protocol):
    """What is asked of a span processor of the OpenTelemetry SDK."""

    def on_end(self, span: Any, /) -> object:
        """Take a span that has ended."""

    def shutdown(self) -> object:
        """Send what is queued, and take no more."""


class Destination:
    """The account of one exporter. Spans that have ended are queued until one of these holds.

    Attributes:
        name: Of the exporter.
        endpoint: Where it sends to, if it says so; without a password.
        ended: Spans that were to go there.
        sent: Those in requests that succeeded, less those that were rejected.
        rejected: Those that the collector refused in a partial success; None if that is not heard.
        failed: Those in requests that failed for good, or were given up as the process ended.
        dropped: Those that found the queue full or shut; None if the queue cannot be seen.
        last_error: What went wrong last, and when (Unix ns).
    """

    __slots__ = (
        "dropped",
        "ended",
        "endpoint",
        "failed",
        "give_up_ns",
        "is_shut",
        "last_error",
        "name",
        "rejected",
        "sent",
    )

    def __init__(self, name: str, endpoint: str | None) -> None:
        self.name = name
        self.endpoint = endpoint
        self.ended = 0
        self.sent = 0
        self.failed = 0
        self.rejected: int | None = None
        self.dropped: int | None = None
        self.last_error: tuple[str, int] | None = None
        self.give_up_ns: int | None = None
        self.is_shut = False

    @property
    def lost(self) -> int:
        """Spans that will not arrive."""
        return self.failed + (self.rejected or 0) + (self.dropped or 0)

    @property
    def queued(self) -> int | None:
        """Spans that are still to be sent; None if those that were dropped are not known."""
        if self.dropped is None:
            return None
        return max(0, self.ended - self.sent - self.lost)

    def went_wrong(self, what: str) -> None:
        """Note the last error."""
        clock = runtime().clock
        self.last_error = (what[:_LONGEST], clock.anchor().wall_at(clock.now_ns()))

    def refused(self, partial: _Partial) -> None:
        """A collector has taken a request, but perhaps not all spans in it."""
        self.rejected = (self.rejected or 0) + partial.rejected_spans
        self.sent -= partial.rejected_spans
        if partial.rejected_spans or partial.error_message:
            self.went_wrong(partial.error_message or f"{partial.rejected_spans} spans rejected")

    def has_given_up(self) -> bool:
        """Whether the time that there was for sending is over."""
        return self.give_up_ns is not None and runtime().clock.now_ns() > self.give_up_ns


class CountedProcessor:
    """A span processor that tells a destination of each span; otherwise the one that it wraps."""

    def __init__(self, processor: Processor, destination: Destination) -> None:
        self._processor = processor
        self._destination = destination
        self._queue: Sequence[object] | None = guarded(_FAULT, _queue_of, processor)
        if self._queue is not None:
            destination.dropped = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def on_end(self, span: Any) -> None:
        """Pass a span on."""
        guarded(_FAULT, self._count, span)
        if not self._destination.is_shut:
            self._processor.on_end(span)

    def shutdown(self) -> None:
        """Send what is queued and end, in time if the processor lets itself be told."""
        batch = getattr(self._processor, "_batch_processor", None)
        is_told = guarded(_FAULT, _takes_timeout, getattr(batch, "shutdown", None))
        if batch is not None and is_told:
            batch.shutdown(timeout_millis=SHUTDOWN_MS)
        else:
            self._processor.shutdown()

    def _count(self, span: Any) -> None:
        if not span.context.trace_flags.sampled:
            return
        destination, queue = self._destination, self._queue
        destination.ended += 1
        is_full = queue is not None and len(queue) == getattr(queue, "maxlen", None)
        if is_full or destination.is_shut:
            destination.dropped = (destination.dropped or 0) + 1


class CountedExporter:
    """An exporter that tells a destination what became of each batch."""

    def __init__(self, exporter: Exporter, destination: Destination) -> None:
        self._exporter = exporter
        self._destination = destination
        self._ear = _Ear()
        guarded(_FAULT, self._ear.listen_to, type(exporter))
        if guarded(_FAULT, _hear_answers, exporter, self._answered):
            destination.rejected = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exporter, name)

    def export(self, spans: Sequence[object]) -> object:
        """Send a batch, unless the time that there was for sending is over."""
        if guarded(_FAULT, self._destination.has_given_up):
            guarded(_FAULT, self._failed, len(spans), "given up: no time was left to send them")
            return None
        guarded(_FAULT, self._ear.open)
        try:
            result = self._exporter.export(spans)
        except BaseException as error:
            guarded(_FAULT, self._failed, len(spans), f"{type(error).__name__}: {error}")
            raise
        guarded(_FAULT, self._exported, len(spans), result)
        return result

    def _exported(self, count: int, result: object) -> None:
        said = self._ear.close()
        if getattr(result, "name", None) == "SUCCESS":
            self._destination.sent += count
        else:
            self._failed(count, said or "the exporter does not say why")

    def _failed(self, count: int, why: str) -> None:
        self._destination.failed += count
        self._destination.went_wrong(why)

    def _answered(self, partial: _Partial) -> None:
        guarded(_FAULT, self._destination.refused, partial)


class _Ear(logging.Filter):
    """Hears what an exporter logs while it exports, and lets it all pass."""

    def __init__(self) -> None:
        super().__init__()
        self._thread: int | None = None
        self._said: list[str] = []

    def listen_to(self, exporter: type) -> None:
        """Listen to the loggers of the modules that an exporter's class comes from."""
        for module in {each.__module__ for each in exporter.__mro__} - {"builtins"}:
            logging.getLogger(module).addFilter(self)

    def open(self) -> None:
        """This thread begins to export."""
        self._said = []
        self._thread = threading.get_ident()

    def close(self) -> str:
        """It has exported; of what was said meanwhile, what says most."""
        self._thread = None
        return max(self._said, key=len, default="")

    def filter(self, record: logging.LogRecord) -> bool:
        """Note a warning or an error of this thread."""
        if record.levelno >= logging.WARNING and record.thread == self._thread:
            guarded(_FAULT, self._note, record)
        return True

    def _note(self, record: logging.LogRecord) -> None:
        if len(self._said) < _SAYINGS:
            self._said.append("")
        self._said[-1] = record.getMessage()


def endpoint_of(exporter: object) -> str | None:
    """Where an exporter sends to, if it says so; without the user and password of a URL."""
    endpoint = getattr(exporter, "_endpoint", None)
    if not isinstance(endpoint, str):
        return None
    parts = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().removeprefix("//")


def _takes_timeout(shutdown: Callable[..., object] | None) -> bool:
    return shutdown is not None and "timeout_millis" in inspect.signature(shutdown).parameters


def _queue_of(processor: Processor) -> Sequence[object] | None:
    """The queue of the SDK's batch processor, which nothing but its length tells of drops."""
    batch = getattr(processor, "_batch_processor", None)
    queue: Sequence[object] | None = getattr(batch, "_queue", None)
    return queue if hasattr(queue, "maxlen") else None


def _hear_answers(exporter: Any, answered: Callable[[_Partial], None]) -> bool:
    """Hear what a collector answers to each request; whether that can be done."""
    client = getattr(exporter, "_client", None)
    if hasattr(client, "Export"):  # gRPC; it makes its client anew when a connection breaks.
        make = exporter._stub
        exporter._stub = lambda channel: _HeardStub(make(channel), answered)
        exporter._client = _HeardStub(client, answered)
        return True
    for session in _sessions(exporter):

        def heard(response: Any, **_: Any) -> None:
            guarded(_FAULT, _read_answer, response, answered)

        session.hooks["response"].append(heard)
        return True
    return False


def _sessions(exporter: Any) -> Iterator[Any]:
    """The `requests` session of an OTLP exporter over HTTP, wherever this version keeps it."""
    transport = getattr(getattr(exporter, "_client", None), "_transport", None)
    for owner in (exporter, transport):
        session = getattr(owner, "_session", None)
        if isinstance(getattr(session, "hooks", {}).get("response"), list):
            yield session


def _read_answer(response: Any, answered: Callable[[_Partial], None]) -> None:
    if response.ok and response.content:
        message = import_module(_RESPONSE).ExportTraceServiceResponse
        answered(message.FromString(response.content).partial_success)


class _HeardStub:
    """A gRPC client whose answers are heard."""

    def __init__(self, client: Any, answered: Callable[[_Partial], None]) -> None:
        self._client = client
        self._answered = answered

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name != "Export":
            return found

        def export(*args: Any, **kwargs: Any) -> Any:
            answer = found(*args, **kwargs)
            guarded(_FAULT, lambda: self._answered(answer.partial_success))
            return answer

        return export

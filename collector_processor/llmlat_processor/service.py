"""Wires the receiver to the window and the window to the pipeline: spans in, finished traces out.

    gRPC threads ── decode ──> mailbox (bounded) ──> worker ── window ── process ──> on_trace

The worker alone touches the window and calls `on_trace`; a receiving thread only decodes and
either leaves its spans in the mailbox or has the exporter try again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from threading import Condition
from typing import Final

from llmlat_processor.edges.receiver import REFUSED, Receiver
from llmlat_processor.model import Assumptions, ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.settings import Settings
from llmlat_processor.window import SPAN_OVERHEAD, Released, Why, Window

_logger = logging.getLogger("llmlat_processor")

UNEXPLAINED: Final = "a fault of ours"

OnTrace = Callable[[ExplainedTrace], None]
Explain = Callable[[Iterable[Span], Assumptions], ExplainedTrace]


@dataclass(frozen=True, slots=True)
class Books:
    """Every span accounted for: received = explained + late + dropped + held + waiting.

    Attributes:
        received: spans that were accepted.
        explained: spans of traces that were handed on.
        traces: how many traces that were.
        late: spans that came after their trace was handed on.
        dropped: spans that were not kept, by reason.
        held: spans of traces that are not complete yet.
        waiting: spans that nobody has looked at yet.
        refused: spans that were damaged; their exporter was told.
        other: requests that held no spans to look at, by kind.
    """

    received: int
    explained: int
    traces: int
    late: int
    dropped: Mapping[str, int]
    held: int
    waiting: int
    refused: int
    other: Mapping[str, int]

    def __str__(self) -> str:
        counts = {
            "late": self.late,
            **{f"dropped ({why})": count for why, count in self.dropped.items()},
            "held": self.held,
            "waiting": self.waiting,
            "damaged": self.refused,
            **{f"{kind} requests": count for kind, count in self.other.items()},
        }
        rest = "".join(f", {count} {what}" for what, count in counts.items() if count)
        return f"{self.received} spans received: {self.explained} in {self.traces} traces{rest}"


def watch(listen: str, on_trace: OnTrace, *, settings: Settings | None = None) -> Watcher:
    """Receive OTLP at an address and hand on each finished trace.

    Args:
        listen: `host:port`; no host is loopback, port 0 any free one.
        on_trace: called from one thread; what it raises ends the watch, and `stop` raises it.
        settings: limits; None takes the defaults.

    Raises:
        OSError: the address cannot be had; the message says what to do.
        ValueError: `listen` is not a host and a port.
    """
    return Watcher(listen, on_trace, settings or Settings(), process)


class Watcher:
    """A receiver at work; made by `watch`."""

    def __init__(
        self, listen: str, on_trace: OnTrace, settings: Settings, explain: Explain
    ) -> None:
        self._on_trace = on_trace
        self._explain = explain
        self._tick_s = settings.tick_s
        self._window = Window(settings.window)
        self._accounts = self._window.books  # as of the worker's last round
        self._traces = 0
        self._unexplained = 0
        self._mailbox = _Mailbox(settings.waiting_bytes)
        self._receiver = Receiver(
            listen, self._mailbox.put, max_message_bytes=settings.max_message_bytes
        )
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="llmlat-worker")
        self._work = self._threads.submit(self._run)

    @property
    def address(self) -> str:
        """Host and port that it listens on."""
        return self._receiver.address

    def stop(self) -> None:
        """Take no more, hand on all that is held, and end; raises what `on_trace` has raised."""
        try:
            self._receiver.stop()
        finally:  # also on a second Ctrl-C: a worker that nobody tells of the end waits for ever
            self._mailbox.close()
        self._threads.shutdown()
        self._work.result()

    def books(self) -> Books:
        """What became of every span so far."""
        window, traces, unexplained = self._accounts, self._traces, self._unexplained
        received = self._mailbox.accepted
        other = dict(self._receiver.counts)
        return Books(
            received=received,
            explained=sum(n for why, n in window.released.items() if why is not Why.LATE)
            - unexplained,
            traces=traces,
            late=window.released.get(Why.LATE, 0),
            dropped={
                **{why.value: count for why, count in window.dropped.items()},
                **({UNEXPLAINED: unexplained} if unexplained else {}),
            },
            held=window.held,
            waiting=received - window.received,
            refused=other.pop(REFUSED, 0),
            other=other,
        )

    def _run(self) -> None:
        """The worker: ends when the mailbox is closed and empty, or when `on_trace` raises."""
        window = self._window
        try:
            while (batches := self._mailbox.take(self._tick_s)) is not None:
                now_ns = time.monotonic_ns()
                for span in chain.from_iterable(batches):
                    self._hand_on(window.feed(span, now_ns))
                self._hand_on(window.expire(now_ns))
                self._accounts = window.books
            self._hand_on(window.flush(time.monotonic_ns()))
        finally:
            self._mailbox.close()
            self._accounts = window.books

    def _hand_on(self, released: Sequence[Released]) -> None:
        for trace in released:
            if trace.why is Why.LATE:
                continue  # it was drawn without this span, and the books say so
            explained = self._explained(trace.spans)
            if explained is not None:
                self._traces += 1
                self._on_trace(explained)

    def _explained(self, spans: Sequence[Span]) -> ExplainedTrace | None:
        try:
            return self._explain(spans, Assumptions(received_ns=time.time_ns()))
        except Exception:  # one trace that we fail at must not end the watch for all the others
            self._unexplained += len(spans)
            trace_id = spans[0].trace_id.hex()
            _logger.exception("trace %s could not be explained; please report this", trace_id)
            return None


class _Mailbox:
    """Batches of spans on their way to the worker; bounded, and closed for good at the end."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._batches: list[Sequence[Span]] = []
        self._bytes = 0
        self._accepted = 0
        self._closed = False
        self._changed = Condition()

    @property
    def accepted(self) -> int:
        """Spans put in so far."""
        with self._changed:
            return self._accepted

    def put(self, spans: Sequence[Span]) -> bool:
        """Leave a batch; False where it is closed or full (an empty one takes any batch)."""
        size = sum(len(span.raw) + SPAN_OVERHEAD for span in spans)
        with self._changed:
            if self._closed or (self._batches and self._bytes + size > self._limit):
                return False
            self._batches.append(spans)
            self._bytes += size
            self._accepted += len(spans)
            self._changed.notify()
        return True

    def take(self, timeout_s: float) -> Sequence[Sequence[Span]] | None:
        """All batches, or none after the timeout; None once it is closed and empty."""
        with self._changed:
            if not self._batches and not self._closed:
                self._changed.wait(timeout_s)
            batches, self._batches, self._bytes = self._batches, [], 0
            return None if self._closed and not batches else batches

    def close(self) -> None:
        """Refuse what comes from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify()

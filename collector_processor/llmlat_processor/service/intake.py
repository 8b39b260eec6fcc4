"""Receives spans, and lets traces go as they are complete; what happens to them is for others.

    gRPC threads ── decode ──> mailbox (bounded) ──> worker ── window ──> hand_on

The worker alone touches the window and calls `hand_on`; a receiving thread only decodes and
either leaves its spans in the mailbox or has the exporter try again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from threading import Condition

from llmlat_processor import window
from llmlat_processor.edges.receiver import Receiver
from llmlat_processor.model import Span
from llmlat_processor.settings import Settings
from llmlat_processor.window import Released, Window, bare_size
from llmlat_processor.wire import WireSpan

HandOn = Callable[[Sequence[Released]], None]
HasRoom = Callable[[], bool]


def _size(span: Span) -> int:
    """Bytes that a received span takes, with its part of what it came in."""
    return bare_size(span) + (span.borne if isinstance(span, WireSpan) else 0)


def _always() -> bool:
    return True


class Intake:
    """A receiver at work, from the moment it is made."""

    def __init__(
        self, listen: str, settings: Settings, hand_on: HandOn, has_room: HasRoom = _always
    ) -> None:
        """Bind and serve.

        Args:
            listen: `host:port`; no host is loopback, port 0 any free one.
            settings: limits.
            hand_on: called from one thread with all that a round has let go, in that order;
                what it raises ends the work, and `stop` raises it.
            has_room: whether spans may come in at all now; asked from several threads.

        Raises:
            OSError: the address cannot be had; the message says what to do.
            ValueError: `listen` is not a host and a port.
        """
        self._hand_on = hand_on
        self._has_room = has_room
        self._tick_s = settings.tick_s
        self._window = Window(settings.window, _size)
        self._accounts = self._window.books
        self._mailbox = _Mailbox(settings.waiting_bytes)
        self._receiver = Receiver(listen, self._take, max_message_bytes=settings.max_message_bytes)
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="llmlat-worker")
        self.work: Future[None] = self._threads.submit(self._run)

    @property
    def address(self) -> str:
        """Host and port that it listens on."""
        return self._receiver.address

    @property
    def accepted(self) -> int:
        """Spans that were taken over so far."""
        return self._mailbox.accepted

    @property
    def accounts(self) -> window.Books:
        """The window's books, as of the worker's last round."""
        return self._accounts

    @property
    def counts(self) -> Mapping[str, int]:
        """What the receiver has refused, and what it has thanked for and dropped, by kind."""
        return self._receiver.counts

    def stop(self) -> None:
        """Take no more, hand on all that is held, and end; raises what `hand_on` has raised."""
        try:
            self._receiver.stop()
        finally:  # also on a second Ctrl-C: a worker that nobody tells of the end waits for ever
            self._mailbox.close()
        self._threads.shutdown()
        self.work.result()

    def _take(self, spans: Sequence[Span]) -> bool:
        return self._has_room() and self._mailbox.put(spans)

    def _run(self) -> None:
        """The worker: ends when the mailbox is closed and empty, or when `hand_on` raises."""
        try:
            while (batches := self._mailbox.take(self._tick_s)) is not None:
                self._round(batches)
            self._hand_on(self._window.flush(time.monotonic_ns()))
        finally:
            self._mailbox.close()
            self._accounts = self._window.books

    def _round(self, batches: Sequence[Sequence[Span]]) -> None:
        now_ns = time.monotonic_ns()
        released: list[Released] = []
        for span in chain.from_iterable(batches):
            released += self._window.feed(span, now_ns)
        released += self._window.expire(now_ns)
        self._hand_on(released)
        self._accounts = self._window.books


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
        size = sum(map(_size, spans))
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

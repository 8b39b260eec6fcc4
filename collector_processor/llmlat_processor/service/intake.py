"""Receives spans, and lets traces go as they are complete; what happens to them is for others.

    receivers ── decode ──> journal ──> mailbox (bounded) ──> worker ── window ──> hand_on
                               └── what an earlier run has left ──^

The worker alone touches the window and calls `hand_on`. A receiving thread decodes, has the
journal keep what came, and leaves it in the mailbox, or has the exporter try again.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final

from llmlat_processor.edges.journal import Entry, Journal
from llmlat_processor.edges.journal_file import JournalError
from llmlat_processor.model import Span
from llmlat_processor.service.doors import Doors, closed, opened
from llmlat_processor.service.mailbox import Mailbox
from llmlat_processor.settings import Settings
from llmlat_processor.window import SPAN_OVERHEAD, Window
from llmlat_processor.window.releases import Books, Released
from llmlat_processor.wire import Decoded, UndecodableError, WireSpan, decode, encode

FULL: Final = "too many spans are waiting; try again"
REPLAYING: Final = "what an earlier run has left is being read"

ENOUGH: Final = 1_000
"""Spans that are let go at a time, and handed on while they are in the caches of the CPU: of 50,000
at once each pass over them fetches them from memory again, which takes twice as long."""

_PLACES: Final = [*range(4_096)]
"""Positions of spans in requests: one object for each, where another would take 32 bytes a span."""

_logger = logging.getLogger("llmlat_processor")

HandOn = Callable[[Sequence[Released], Window], None]
Keep = Callable[[int, bytes], None]
HasRoom = Callable[[], bool]


def _size(span: Span) -> int:
    """Bytes that a received span takes, with its part of what it came in."""
    size = len(span.raw) + SPAN_OVERHEAD  # one call less than by `bare_size`: twice for each span
    return size + span.borne if isinstance(span, WireSpan) else size


def _always() -> bool:
    return True


def _nothing(_batch: int, _packed: bytes) -> None:
    return None


class Intake:
    """Receivers at work, from the moment it is made."""

    def __init__(
        self,
        doors: Doors,
        settings: Settings,
        hand_on: HandOn,
        has_room: HasRoom = _always,
        journal: Journal | None = None,
        keep: Keep = _nothing,
    ) -> None:
        """Bind and serve.

        Args:
            doors: where spans come in.
            settings: limits.
            hand_on: called from one thread with what is let go, some of it at a time, in that
                order, and the window; what it raises ends the work, and `stop` raises it.
            has_room: whether spans may come in at all now; asked from several threads.
            journal: keeps what was accepted, and has what an earlier run left; closed by others.
            keep: is told of skeletons that it has, and their batch.

        Raises:
            OSError: an address cannot be had; the message says what to do.
            ValueError: one of them is not a host and a port.
        """
        self._hand_on = hand_on
        self._has_room = has_room
        self._tick_s = settings.tick_s
        self._journal = journal
        self._keep = keep
        self._window = Window(settings.window, _size)
        self._accounts = self._window.books
        self._mailbox = Mailbox(settings.waiting_bytes)
        self._replayed = 0
        self._is_replaying = journal is not None
        # Before anybody can send: what comes from now on is no earlier run's.
        self._entries = iter(()) if journal is None else journal.replay()
        self._receivers = opened(doors, self._take, self.why_not_ready, settings.max_message_bytes)
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="llmlat-worker")
        self.work: Future[None] = self._threads.submit(self._run)

    @property
    def addresses(self) -> Sequence[str]:
        """Host and port of each receiver."""
        return [receiver.address for receiver in self._receivers]

    @property
    def accepted(self) -> int:
        """Spans that were taken over so far, those of an earlier run's journal among them."""
        return self._mailbox.accepted + self._replayed

    @property
    def replayed(self) -> int:
        """Spans that an earlier run had accepted and did not see the end of."""
        return self._replayed

    @property
    def waiting_bytes(self) -> int:
        """Bytes that nobody has looked at yet."""
        return self._mailbox.held_bytes

    @property
    def window(self) -> Window:
        """What holds the traces; only its figures may be read by others than the worker."""
        return self._window

    @property
    def accounts(self) -> Books:
        """The window's books, as of the worker's last round."""
        return self._accounts

    @property
    def counts(self) -> Mapping[str, int]:
        """What the receivers have refused, and what they have thanked for and dropped, by kind."""
        total: Counter[str] = Counter()
        for receiver in self._receivers:
            total.update(receiver.counts)
        return total

    def why_not_ready(self) -> str:
        """Why nobody should send spans now; empty where they may."""
        if self._is_replaying:
            return REPLAYING
        if self._journal is not None and not self._journal.is_healthy:
            return "the journal cannot be written"
        if self._journal is not None and self._journal.is_full:
            return "the journal is full"
        return "" if self._has_room() else FULL

    def stop(self) -> None:
        """Take no more, hand on all that is held, and end; raises what `hand_on` has raised."""
        with ExitStack() as stack:
            stack.push(self._end_worker)
            closed(self._receivers)

    def _end_worker(self, fault: type[BaseException] | None, *_: object) -> None:
        """A worker that nobody tells of the end waits for ever; a second Ctrl-C waits for none."""
        self._mailbox.close()
        if fault is not KeyboardInterrupt:
            self._threads.shutdown()
            self.work.result()

    # ── The receiving threads ────────────────────────────────────────────────────────────────────

    def _take(self, decoded: Decoded) -> str:
        """Take spans over, or say why not now."""
        if not decoded.spans:
            return ""
        size = sum(map(_size, decoded.spans))
        if not self._has_room() or not self._mailbox.reserve(size):
            return FULL
        try:
            spans = self._kept(decoded)
        except BaseException as error:
            self._mailbox.give_up(size)
            if isinstance(error, JournalError):
                return str(error)
            raise
        self._mailbox.put(spans, size)
        return ""

    def _kept(self, decoded: Decoded) -> Sequence[WireSpan]:
        """The spans, once they are on disk; each knows where."""
        if self._journal is None:
            return decoded.spans
        content, spans = decoded.request, decoded.spans
        if not content:
            content = encode(spans)
            spans = decode(content).spans  # in the order in which they will be read again
        batch = self._journal.append(content, len(spans))
        places = _PLACES if len(spans) <= len(_PLACES) else range(len(spans))
        for position, span in zip(places, spans):  # noqa: B905 - there are more places than spans
            span.batch = batch
            span.position = position
        return spans

    # ── The worker ───────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        """Ends when the mailbox is closed and empty, or when `hand_on` raises."""
        try:
            self._replay()
            while (batches := self._mailbox.take(self._tick_s)) is not None:
                self._round(batches)
            self._hand_on(self._window.flush(time.monotonic_ns()), self._window)
        finally:
            self._mailbox.close()
            self._accounts = self._window.books

    def _replay(self) -> None:
        """What an earlier run has left goes the way of all spans."""
        for entry in self._entries:
            while not self._has_room() and not self._mailbox.is_closed:
                self._round(self._mailbox.take(self._tick_s) or ())
            if self._mailbox.is_closed:
                return  # the rest stays where it is
            try:
                self._feed_again(entry)
            except (UndecodableError, zlib.error) as error:  # it stays, and costs no other
                _logger.warning("batch %d of the journal cannot be read: %s", entry.batch, error)
        self._is_replaying = False

    def _feed_again(self, entry: Entry) -> None:
        if entry.sent:
            self._window.restore(entry.content, time.monotonic_ns())
            self._keep(entry.batch, entry.content)
            return
        spans = _left(entry)
        self._replayed += len(spans)
        self._round([spans])

    def _round(self, batches: Sequence[Sequence[Span]]) -> None:
        now_ns = time.monotonic_ns()
        released: list[Released] = []
        for batch in batches:
            released += self._window.feed_all(batch, now_ns)
        released += self._window.expire(now_ns, ENOUGH)
        self._hand_on(released, self._window)
        while released := [*self._window.expire(now_ns, ENOUGH)]:
            self._hand_on(released, self._window)
        self._accounts = self._window.books


def _left(entry: Entry) -> Sequence[WireSpan]:
    """The spans of a batch that have not had their end, each with its place in the journal."""
    spans = decode(entry.content).spans
    for position, span in enumerate(spans):
        span.batch = entry.batch
        span.position = position
    return [span for span in spans if span.position not in entry.settled]

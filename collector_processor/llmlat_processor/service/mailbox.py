"""Batches of spans on their way from the receiving threads to the worker; bounded."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Condition

from llmlat_processor.model import Span


class Mailbox:
    """Room is asked for first and filled after: what is done between the two may take a while.

    Closed for good at the end: then nothing is let in any more, and what has room still comes.
    """

    def __init__(self, limit_bytes: int) -> None:
        """Hold at most so many bytes; a single larger batch has room where there is nothing."""
        self._limit = limit_bytes
        self._batches: list[Sequence[Span]] = []
        self._bytes = self._put_bytes = self._expected = 0
        self._accepted = 0
        self._closed = False
        self._changed = Condition()

    @property
    def accepted(self) -> int:
        """Spans put in so far."""
        with self._changed:
            return self._accepted

    @property
    def held_bytes(self) -> int:
        """Bytes of what is in there, and of what has been promised room."""
        with self._changed:
            return self._bytes

    def reserve(self, size: int) -> bool:
        """Ask for room; False where there is none now. What got it is put in or given up."""
        with self._changed:
            if self._closed or (self._bytes and self._bytes + size > self._limit):
                return False
            self._bytes += size
            self._expected += 1
        return True

    def give_up(self, size: int) -> None:
        """What room was asked for does not come."""
        with self._changed:
            self._bytes -= size
            self._expected -= 1
            self._changed.notify_all()

    def put(self, spans: Sequence[Span], size: int) -> None:
        """Leave the batch that room was reserved for."""
        with self._changed:
            self._expected -= 1
            self._put_bytes += size
            self._batches.append(spans)
            self._accepted += len(spans)
            self._changed.notify_all()

    def take(self, timeout_s: float) -> Sequence[Sequence[Span]] | None:
        """All batches, or none after the timeout; None once it is closed and nothing more comes."""
        with self._changed:
            if not self._batches and not self._is_over():
                self._changed.wait(timeout_s)
            batches, self._batches = self._batches, []
            self._bytes -= self._put_bytes
            self._put_bytes = 0
            return None if not batches and self._is_over() else batches

    @property
    def is_closed(self) -> bool:
        """Whether nothing is let in any more."""
        with self._changed:
            return self._closed

    def close(self) -> None:
        """Refuse what comes from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _is_over(self) -> bool:
        return self._closed and not self._expected

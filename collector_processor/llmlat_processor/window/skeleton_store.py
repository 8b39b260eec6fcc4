"""Keeps the skeletons of traces, packed and bounded by bytes: the oldest are forgotten first.

Both are kept here: what was let go of traces whose root has still to come, and the released ones
that late spans may still change. Measured on LLM traces, a span of a released one takes 0.5 µs and
460 bytes, one of a trace without its root 3 µs and 115 bytes: it may have to stay for hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from llmlat_processor.model import Span
from llmlat_processor.wire.skeletons import pack, unpack

TRACE_OVERHEAD: Final = 1_000
"""Bytes that a kept trace takes beside its skeletons."""

PIECE_OVERHEAD: Final = 100
SPAN_OVERHEAD: Final = 10
"""Bytes beside its skeleton: the mark by which it is known when it comes again."""


class _Kept:
    """The skeletons of one trace, a piece for each time that some were added."""

    __slots__ = ("bytes", "pieces", "spans")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.spans = 0
        self.bytes = TRACE_OVERHEAD

    def add(self, packed: bytes, spans: int) -> None:
        self.pieces.append(packed)
        self.spans += spans
        self.bytes += len(packed) + PIECE_OVERHEAD + spans * SPAN_OVERHEAD


class SkeletonStore:
    """The traces with skeletons, the one that was added to last at the end."""

    def __init__(self, limit_bytes: int) -> None:
        """Keep at most so many bytes."""
        self._limit = limit_bytes
        self._kept: dict[bytes, _Kept] = {}
        self._bytes = 0

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def held_bytes(self) -> int:
        """Bytes kept; above the limit only until `overflow` is asked."""
        return self._bytes

    def keep(self, trace_id: bytes, spans: Sequence[Span], *, tight: bool = False) -> bytes:
        """Add the skeletons of spans, and return them packed."""
        packed = pack(spans, tight=tight)
        self.keep_packed(trace_id, packed, len(spans))
        return packed

    def keep_packed(self, trace_id: bytes, packed: bytes, spans: int) -> None:
        """Add skeletons that are packed already."""
        kept = self._kept.pop(trace_id, None) or _Kept()
        self._bytes -= kept.bytes if kept.pieces else 0
        kept.add(packed, spans)
        self._kept[trace_id] = kept
        self._bytes += kept.bytes

    def skeletons(self, trace_id: bytes) -> Sequence[Span]:
        """Unpack what is kept of a trace; nothing where it was forgotten."""
        kept = self._kept.get(trace_id)
        return [*chain.from_iterable(map(unpack, kept.pieces))] if kept else ()

    def count(self, trace_id: bytes) -> int:
        """How many skeletons of a trace are kept."""
        kept = self._kept.get(trace_id)
        return kept.spans if kept else 0

    def forget(self, trace_id: bytes) -> int:
        """Forget a trace: how many skeletons that were."""
        kept = self._kept.pop(trace_id, None)
        if kept is None:
            return 0
        self._bytes -= kept.bytes
        return kept.spans

    def overflow(self) -> Iterator[tuple[bytes, int]]:
        """Forget the oldest until the rest fits: each of them, and how many skeletons it had."""
        while self._bytes > self._limit:
            oldest = next(iter(self._kept))
            yield oldest, self.forget(oldest)

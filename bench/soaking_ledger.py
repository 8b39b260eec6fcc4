"""Two ledgers of a soak, that of the sender and that of the end, and what they say together.

Both are by the number of a trace, and all instants are of the machine's own monotonic clock, which
every process of it reads alike.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from bench.soaking_load import MARK, NUMBER_BYTES, Sending

Words: TypeAlias = "array[int]"

_MARK_AT: Final = slice(NUMBER_BYTES, NUMBER_BYTES + len(MARK))


def _words(values: Sequence[int] = ()) -> Words:
    return array("Q", values)


@dataclass(slots=True)
class Sent:
    """What the sender has done, trace by trace.

    Attributes:
        spans: how many each trace has.
        at_ns: when the last request with something of it was taken over.
        again: requests that were not taken over at once, and sent again.
        seconds: how long it took to send all of it.
    """

    spans: Words = field(default_factory=_words)
    at_ns: Words = field(default_factory=_words)
    again: int = 0
    seconds: float = 0.0

    def begin(self, sending: Sending) -> None:
        """Note the traces that begin with a request."""
        self.spans.extend(sending.begun)
        _grow(self.at_ns, len(self.spans))

    def taken(self, traces: Sequence[int], now_ns: int) -> None:
        """Note that a request was taken over."""
        for number in traces:
            self.at_ns[number] = max(self.at_ns[number], now_ns)

    def write(self, path: Path) -> None:
        """Write it for `read`."""
        _write(path, [[*self.spans], [*self.at_ns], self.again, self.seconds])

    @classmethod
    def read(cls, path: Path) -> Sent:
        """What was written."""
        spans, at_ns, again, seconds = json.loads(path.read_text(encoding="utf-8"))
        return cls(_words(spans), _words(at_ns), again, seconds)


@dataclass(slots=True)
class Seen:
    """What has come to the end, trace by trace.

    Attributes:
        bits: the spans of each trace that have come, by index.
        at_ns: when the last of them came.
        repeated: spans that had come before.
        others: spans that the sender does not have, which are those of lanes.
    """

    bits: Words = field(default_factory=_words)
    at_ns: Words = field(default_factory=_words)
    repeated: int = 0
    others: int = 0

    def come(self, trace_id: bytes, span_id: bytes, now_ns: int) -> None:
        """Note a span."""
        if span_id[_MARK_AT] != MARK or span_id[:NUMBER_BYTES] != trace_id[-NUMBER_BYTES:]:
            self.others += 1
            return
        number = int.from_bytes(span_id[:NUMBER_BYTES], "big")
        if number >= len(self.bits):
            _grow(self.bits, number + 1)
            _grow(self.at_ns, number + 1)
        bit = 1 << span_id[-1]
        if self.bits[number] & bit:
            self.repeated += 1
            return
        self.bits[number] |= bit
        self.at_ns[number] = now_ns

    def write(self, path: Path) -> None:
        """Write it for `read`."""
        _write(path, [[*self.bits], [*self.at_ns], self.repeated, self.others])

    @classmethod
    def read(cls, path: Path) -> Seen:
        """What was written."""
        bits, at_ns, repeated, others = json.loads(path.read_text(encoding="utf-8"))
        return cls(_words(bits), _words(at_ns), repeated, others)


def _grow(words: Words, count: int) -> None:
    words.frombytes(bytes(words.itemsize * max(0, count - len(words))))


def _write(path: Path, told: object) -> None:
    """All of it or nothing: somebody may wait for it."""
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(told), encoding="utf-8")
    beside.replace(path)


@dataclass(frozen=True, slots=True)
class Tally:
    """What both say together.

    Attributes:
        traces: that were sent.
        sent: spans that were taken over.
        received: how many of them came to the end.
        repeated: how many came once more.
        lanes: spans that came beside them.
        delays_s: from the last of a trace that was taken over to the last that came, sorted; of
            traces of which all has come.
    """

    traces: int
    sent: int
    received: int
    repeated: int
    lanes: int
    delays_s: Sequence[float]

    @property
    def lost(self) -> int:
        """Spans that were taken over, and never came."""
        return self.sent - self.received

    def delay_s(self, percent: int) -> float:
        """The delay that so many percent of the traces do not exceed; without traces for ever."""
        if not self.delays_s:
            return float("inf")
        return self.delays_s[(len(self.delays_s) - 1) * percent // 100]


def tally(sent: Sent, seen: Seen) -> Tally:
    """Compare what was sent with what has come."""
    _grow(seen.bits, len(sent.spans))
    _grow(seen.at_ns, len(sent.spans))
    received = 0
    delays_s: list[float] = []
    for number, spans in enumerate(sent.spans):
        due = (1 << spans) - 1
        received += (seen.bits[number] & due).bit_count()
        if seen.bits[number] & due == due:
            delays_s.append((seen.at_ns[number] - sent.at_ns[number]) / 1e9)
    return Tally(
        traces=len(sent.spans),
        sent=sum(sent.spans),
        received=received,
        repeated=seen.repeated,
        lanes=seen.others,
        delays_s=sorted(delays_s),
    )

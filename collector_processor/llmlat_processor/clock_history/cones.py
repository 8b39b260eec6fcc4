"""Upper bounds of an offset that drifts: each loosens with time, and only what tightens is kept.

bound of θ
  │ ╲   i   ╱      what was proved at one instant holds at any other one, looser by the
  │  ╲  ●  ╱ ╱     most that two clocks part in between: a cone. `i` lies above the cone
  │   ╲   ╱ ╱      of `j` and tells nothing: `j` dominates it.
  │    ╲ ╱ ╱
  │     ● j        Sorted by time, those that none dominates differ from their neighbours by
  └──────────→ t   less than the drift allows, so that neighbours decide all: what an instant's
                   bound is, what a new one dominates, and whether it is dominated itself.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from llmlat_processor.model.clock_history import Witness

MILLION: Final = 1_000_000
"""Limits are compared in millionths of a nanosecond: with a drift in ppm all of it is exact."""

_TRACE: Final = 16
_SPAN: Final = 8
WITNESS_BYTES: Final = _TRACE + 2 * _SPAN
_BOUND: Final = struct.Struct(f"<qq{WITNESS_BYTES}s")


class Bound(NamedTuple):
    """The most that an offset was at one instant, and the ids of trace and spans that prove it."""

    at_ns: int
    limit_ns: int
    witness: bytes

    @property
    def trace(self) -> bytes:
        """Id of the trace."""
        return self.witness[:_TRACE]


def packed(bounds: Iterable[Bound]) -> bytes:
    """Bounds in a row, 48 bytes each, little-endian."""
    return b"".join(_BOUND.pack(*bound) for bound in bounds)


def unpacked(content: bytes) -> Iterator[Bound]:
    """Bounds that were packed; struct.error where they were not."""
    return map(Bound._make, _BOUND.iter_unpack(content))


def witness_bytes(trace_id: bytes, left: bytes, arrived: bytes) -> bytes:
    """Ids in a row, each of its fixed length; what is no id of OTLP is filled up or cut."""
    spans = (one[:_SPAN].rjust(_SPAN, b"\0") for one in (left, arrived))
    return trace_id[:_TRACE].rjust(_TRACE, b"\0") + b"".join(spans)


def witness_of(bound: Bound) -> Witness:
    """The ids of a bound."""
    whole = bound.witness
    return Witness(
        whole[:_TRACE], whole[_TRACE : _TRACE + _SPAN], whole[_TRACE + _SPAN : WITNESS_BYTES]
    )


class Cones:
    """The bounds that no other one dominates, sorted by time; arrays, since there are many."""

    __slots__ = ("_at_ns", "_drift_ppm", "_limits_ns", "_witnesses")

    def __init__(self, drift_ppm: int) -> None:
        """Know nothing yet; two clocks part by at most so much."""
        self._drift_ppm = drift_ppm
        self._at_ns = array("q")
        self._limits_ns = array("q")
        self._witnesses = bytearray()

    def __len__(self) -> int:
        return len(self._at_ns)

    def __getitem__(self, place: int) -> Bound:
        start = place * WITNESS_BYTES
        witness = bytes(self._witnesses[start : start + WITNESS_BYTES])
        return Bound(self._at_ns[place], self._limits_ns[place], witness)

    def __iter__(self) -> Iterator[Bound]:
        return (self[place] for place in range(len(self._at_ns)))

    def points(self) -> list[tuple[int, int]]:
        """Instant and limit of each, sorted by time."""
        return list(zip(self._at_ns, self._limits_ns, strict=True))

    @property
    def newest_ns(self) -> int | None:
        """The latest instant of a bound; None without any."""
        return self._at_ns[-1] if self._at_ns else None

    def limit_at(self, at_ns: int) -> int | None:
        """The least limit at an instant, in millionths of a nanosecond; None without any."""
        place, limit = bisect_left(self._at_ns, at_ns), None
        if place < len(self._at_ns):
            limit = self._reach(place, at_ns)
        if place and (limit is None or self._reach(place - 1, at_ns) < limit):
            limit = self._reach(place - 1, at_ns)
        return limit

    def tightest_at(self, at_ns: int) -> Bound | None:
        """The bound that has the least limit at an instant."""
        nearest = self._nearest(bisect_left(self._at_ns, at_ns))
        place = min(nearest, key=lambda each: self._reach(each, at_ns), default=None)
        return None if place is None else self[place]

    def add(self, bound: Bound, most: int | None = None) -> None:
        """Take a bound in; without a cap the limit of no instant ever rises.

        Args:
            bound: the new one.
            most: how many are kept; above it the one is dropped that tightens least, which lets
                limits rise, and never below what all of them together prove.
        """
        limit = self.limit_at(bound.at_ns)
        if limit is not None and limit < bound.limit_ns * MILLION:
            return
        place = bisect_left(self._at_ns, bound.at_ns)
        if limit is not None and any(
            self.dominates(self[each], bound) for each in self._nearest(place)
        ):
            return  # as tight as the other, to the last digit
        first = last = place
        while first > 0 and self.dominates(bound, self[first - 1]):
            first -= 1
        while last < len(self) and self.dominates(bound, self[last]):
            last += 1
        self._replace(first, last, (bound,))
        if most is not None and len(self) > most:
            least = self._least()
            self._replace(least, least + 1, ())

    def drop_trace(self, trace_id: bytes) -> None:
        """Forget what one trace proved."""
        for place in reversed(range(len(self))):
            if self[place].trace == trace_id:
                self._replace(place, place + 1, ())

    def drop_after(self, at_ns: int) -> None:
        """Forget what was proved later than an instant."""
        self._replace(bisect_right(self._at_ns, at_ns), len(self), ())

    def dominates(self, one: Bound, other: Bound) -> bool:
        """Whether another bound tells nothing beside one; of two that are equal the first stays."""
        drift = self._drift_ppm * abs(one.at_ns - other.at_ns)
        spare = (other.limit_ns - one.limit_ns) * MILLION - drift
        if spare or drift:
            return spare >= 0
        return (one.at_ns, one.witness) <= (other.at_ns, other.witness)

    def _nearest(self, place: int) -> range:
        """The places of the neighbours of what would be put at a place."""
        return range(max(place - 1, 0), min(place + 1, len(self._at_ns)))

    def _reach(self, place: int, at_ns: int) -> int:
        """The limit of a bound at an instant, in millionths."""
        apart_ns = abs(at_ns - self._at_ns[place])
        return self._limits_ns[place] * MILLION + self._drift_ppm * apart_ns

    def _least(self) -> int:
        """The place of the bound without which the limit at its instant would rise the least."""
        points, drift_ppm = self.points(), self._drift_ppm
        falls = [((b[1] - a[1]) * MILLION, drift_ppm * (b[0] - a[0])) for a, b in pairwise(points)]
        before = [None, *(apart - fall for fall, apart in falls)]
        after = [*(apart + fall for fall, apart in falls), None]
        gains = [
            min(gain for gain in both if gain is not None)
            for both in zip(before, after, strict=True)
        ]
        return gains.index(min(gains))

    def _replace(self, first: int, last: int, bounds: tuple[Bound, ...]) -> None:
        self._at_ns[first:last] = array("q", [bound.at_ns for bound in bounds])
        self._limits_ns[first:last] = array("q", [bound.limit_ns for bound in bounds])
        witnesses = b"".join(bound.witness for bound in bounds)
        self._witnesses[first * WITNESS_BYTES : last * WITNESS_BYTES] = witnesses

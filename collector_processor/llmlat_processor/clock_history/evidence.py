"""What messages prove of two clocks, one bound each, and whether two such accounts agree.

Both sides are upper bounds: `above` of θ, `below` of -θ. A message from the first domain to the
second is one above, an answer one below; each at the edge that the first domain's clock stamped:

    first   ●─────────────●        left_ns of the request      arrived_ns of the answer
             ╲           ╱
    second    ●─────────●
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from llmlat_processor.clock_history.cones import MILLION, Bound, Cones, witness_bytes
from llmlat_processor.model import Interval, Message

FARTHEST_NS: Final = 1 << 62
"""Readings and bounds beyond it (146 years) are none of a clock, and fit into no array."""


class Contradiction(NamedTuple):
    """Two bounds that exclude each other.

    Attributes:
        own: of the account that was compared.
        other: of the one that it was compared with.
        is_above: whether the own one is of θ, and the other of -θ.
        lacking: by how much they exclude each other, in millionths of a nanosecond; positive.
    """

    own: Bound
    other: Bound
    is_above: bool
    lacking: int


class Evidence:
    """Bounds of one pair of clocks on both sides."""

    __slots__ = ("above", "below", "drift_ppm", "messages")

    def __init__(self, drift_ppm: int) -> None:
        """Know nothing yet; two clocks part by at most so much."""
        self.drift_ppm = drift_ppm
        self.above = Cones(drift_ppm)
        self.below = Cones(drift_ppm)
        self.messages = 0

    def hear(self, trace_id: bytes, message: Message, *, is_from_first: bool) -> None:
        """Learn from one message; ValueError where its stamps are none of a clock."""
        # Either edge may be off by the tolerance, so the instant of the bound is, too.
        granted_ns = message.epsilon_ns + message.tail_ns
        limit_ns = message.bound_ns - (-granted_ns * self.drift_ppm // MILLION)
        at_ns = message.left_ns if is_from_first else message.arrived_ns
        if max(abs(at_ns), abs(limit_ns)) > FARTHEST_NS:
            raise ValueError("a stamp that no clock shows")
        witness = witness_bytes(trace_id, message.left, message.arrived)
        (self.above if is_from_first else self.below).add(Bound(at_ns, limit_ns, witness))
        self.messages += 1

    def bounds(self) -> Iterator[Bound]:
        """All bounds, first those above."""
        return chain(self.above, self.below)

    @property
    def newest_ns(self) -> int:
        """The latest instant of a bound; ValueError without any."""
        ends = (self.above.newest_ns, self.below.newest_ns)
        return max(end for end in ends if end is not None)

    def instants_ns(self) -> list[int]:
        """When each was proved."""
        return [bound.at_ns for bound in self.bounds()]

    def at_instant(self, at_ns: int) -> Evidence:
        """The tightest of each side at an instant, and no more."""
        few = Evidence(self.drift_ppm)
        few.messages = self.messages
        for side, all_of_it in ((few.above, self.above), (few.below, self.below)):
            bound = all_of_it.tightest_at(at_ns)
            if bound is not None:
                side.add(bound)
        return few


def interval_at(evidence: Iterable[Evidence], at_ns: int) -> Interval:
    """What θ can be at an instant, rounded outwards to nanoseconds."""
    above, below = [], []
    for each in evidence:
        above.append(each.above.limit_at(at_ns))
        below.append(each.below.limit_at(at_ns))
    high = min((limit for limit in above if limit is not None), default=None)
    low = min((limit for limit in below if limit is not None), default=None)
    return Interval(
        None if low is None else -low // MILLION, None if high is None else -(-high // MILLION)
    )


def contradictions(one: Evidence, other: Evidence) -> Iterator[Contradiction]:
    """The bounds of an account that another one excludes, each with what excludes it the most."""
    yield from _excluded(one.above, other.below, is_above=True)
    yield from _excluded(one.below, other.above, is_above=False)


def widest(found: Iterable[Contradiction]) -> Contradiction | None:
    """The one that lacks the most; None without any: then some θ fits both."""
    return max(found, key=lambda each: each.lacking, default=None)


def _excluded(own: Cones, others: Cones, *, is_above: bool) -> Iterator[Contradiction]:
    for place, (at_ns, limit_ns) in enumerate(own.points()):
        limit = others.limit_at(at_ns)
        if limit is None or limit_ns * MILLION + limit >= 0:
            continue
        other = others.tightest_at(at_ns)
        if other is not None:
            yield Contradiction(own[place], other, is_above, -limit_ns * MILLION - limit)

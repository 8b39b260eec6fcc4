"""Two clocks whose offset is known, and what traces tell of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from llmlat_processor.model import Interval, Message

FIRST, SECOND = "app", "engine"
MS = 1_000_000
S = 1_000 * MS
FASTEST = 200
"""ns per ms: 200 ppm."""


@dataclass(frozen=True)
class World:
    """The offset of the second clock at 0, and its rate in each second, in ns per ms (ppm)."""

    offset_ns: int
    rates: Sequence[int]

    def offset_at(self, ms: int) -> int:
        """θ at an instant of the first clock; exact, since instants are whole milliseconds."""
        whole, rest = divmod(ms, 1_000)
        passed = sum(self.rates[second % len(self.rates)] for second in range(whole))
        return self.offset_ns + passed * 1_000 + self.rates[whole % len(self.rates)] * rest

    def request(self, at_ms: int, transit_ms: int) -> Message:
        """A message from the first clock to the second."""
        arrived_ms = at_ms + transit_ms
        arrived_ns = arrived_ms * MS + self.offset_at(arrived_ms)
        return Message(FIRST, SECOND, at_ms * MS, arrived_ns, 0, 0, 0, b"caller..", b"callee..")

    def answer(self, at_ms: int, transit_ms: int) -> Message:
        """A message back; it left at an instant that the first clock did not stamp."""
        left_ns = at_ms * MS + self.offset_at(at_ms)
        arrived_ns = (at_ms + transit_ms) * MS
        return Message(SECOND, FIRST, left_ns, arrived_ns, 0, 0, 0, b"callee..", b"caller..")

    def call(self, at_ms: int, there_ms: int, work_ms: int, back_ms: int) -> list[Message]:
        """A request and its answer."""
        answered_ms = at_ms + there_ms + work_ms
        return [self.request(at_ms, there_ms), self.answer(answered_ms, back_ms)]


STILL = World(30 * MS, [0])
LATER = World(80 * MS, [0])


def trace(number: int) -> bytes:
    return number.to_bytes(16, "big")


def contains(interval: Interval, value_ns: int) -> bool:
    low_ns, high_ns = interval
    return (low_ns is None or low_ns <= value_ns) and (high_ns is None or value_ns <= high_ns)


def is_within(inner: Interval, outer: Interval) -> bool:
    """Whether an interval says at least as much as another one."""
    lows, highs = (inner.low_ns, outer.low_ns), (inner.high_ns, outer.high_ns)
    return (lows[1] is None or (lows[0] is not None and lows[0] >= lows[1])) and (
        highs[1] is None or (highs[0] is not None and highs[0] <= highs[1])
    )


WORLDS = st.builds(
    World,
    st.integers(-5 * S, 5 * S),
    st.lists(st.integers(-FASTEST, FASTEST), min_size=1, max_size=4),
)


def calls(until_ms: int, most: int) -> st.SearchStrategy[list[tuple[int, int, int, int]]]:
    """Instant, way there, work and way back of some calls, in ms."""
    way = st.integers(0, 60)
    one = st.tuples(st.integers(0, until_ms), way, st.integers(0, 500), way)
    return st.lists(one, min_size=1, max_size=most)

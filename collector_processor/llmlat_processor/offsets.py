"""What messages between clocks prove: the tightest interval of each offset, or a contradiction.

Each message says that θ of an ordered pair of domains is at most its limit. That is a system of
difference constraints: limits are lengths, the tightest bound of a pair is its shortest path, and
a cycle of negative length is a contradiction that no offsets can satisfy (Cormen et al.,
Introduction to Algorithms, section 24.4).

    a ──(≤ 5)──> b ──(≤ -9)──> a        θ_ab is at most 5 and at least 9: impossible
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from llmlat_processor.model.clocks import Clocks, Interval, Message

Pair = tuple[str, str]
"""(sender, receiver)"""

MOST_CONTRADICTIONS: Final = 16
"""Of a trace; what else contradicts itself is left out of the system without being told."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The consistent messages of a system, and the contradictions among the others.

    Attributes:
        limits_ns: per ordered pair the least limit of its consistent messages.
        contradictions: of each, the messages that go round in a circle, the limits of which sum
            to less than 0.
    """

    limits_ns: Mapping[Pair, int]
    contradictions: Sequence[tuple[Message, ...]]


def solve(messages: Iterable[Message]) -> Solution:
    """Find every contradiction among messages, and what is left without them.

    Of a contradiction it isn't known which message is wrong, so all that the domains on its circle
    told each other, next to next, is left out.
    """
    tightest = tightest_of(messages)
    contradictions: list[tuple[Message, ...]] = []
    while (cycle := _negative_cycle(tightest)) is not None:
        if len(contradictions) < MOST_CONTRADICTIONS:
            contradictions.append(tuple(tightest[pair] for pair in cycle))
        for sender, receiver in cycle:
            tightest.pop((sender, receiver), None)
            tightest.pop((receiver, sender), None)
    limits = {pair: message.limit_ns for pair, message in tightest.items()}
    return Solution(limits, contradictions)


def tightest_of(messages: Iterable[Message]) -> dict[Pair, Message]:
    """Per ordered pair, in a fixed order, the message with the least limit; of equals the least."""
    tightest: dict[Pair, Message] = {}
    limits: dict[Pair, int] = {}
    for message in messages:
        pair = (message.sender, message.receiver)
        limit = message.limit_ns
        known = limits.get(pair)
        if known is None or limit < known or (limit == known and message < tightest[pair]):
            limits[pair], tightest[pair] = limit, message
    return {pair: tightest[pair] for pair in sorted(tightest)}


def between(clocks: Clocks, one: str, other: str) -> Interval:
    """θ = clock of `other` - clock of `one`, at the start of the trace, as tightly as is proved."""
    if one == other:
        return Interval(0, 0)
    out = _distances(_lengths_from(clocks.limits_ns), one).get(other)
    back = _distances(_lengths_from(clocks.limits_ns), other).get(one)
    return Interval(None if back is None else -back, out)


def intervals_from(limits_ns: Mapping[Pair, int], reference: str) -> Mapping[str, Interval]:
    """Of each domain that a message leads to, its offset from the reference's clock."""
    high = _distances(_lengths_from(limits_ns), reference)
    reverse = {(receiver, sender): limit for (sender, receiver), limit in limits_ns.items()}
    low = _distances(_lengths_from(reverse), reference)
    known = {
        domain: Interval(-low[domain] if domain in low else None, high.get(domain))
        for domain in high.keys() | low.keys()
    }
    return known | {reference: Interval(0, 0)}


def widened(interval: Interval, by_ns: int) -> Interval:
    """The interval with so much more on either side."""
    low, high = interval
    return Interval(None if low is None else low - by_ns, None if high is None else high + by_ns)


def shifted(interval: Interval, by_ns: int) -> Interval:
    """The interval moved; what is unknown stays so."""
    low, high = interval
    return Interval(None if low is None else low + by_ns, None if high is None else high + by_ns)


def intersection(one: Interval, other: Interval) -> Interval:
    """What both allow; the low end is above the high end where there is no such offset."""
    lows = [low for low in (one.low_ns, other.low_ns) if low is not None]
    highs = [high for high in (one.high_ns, other.high_ns) if high is not None]
    return Interval(max(lows, default=None), min(highs, default=None))


_Lengths = Mapping[str, Sequence[tuple[str, int]]]


def _lengths_from(limits_ns: Mapping[Pair, int]) -> _Lengths:
    lengths: dict[str, list[tuple[str, int]]] = {}
    for (sender, receiver), limit in limits_ns.items():
        lengths.setdefault(sender, []).append((receiver, limit))
    return lengths


def _distances(lengths: _Lengths, start: str) -> dict[str, int]:
    """Shortest paths by Bellman and Ford with a queue; there is no negative cycle any more."""
    distances = {start: 0}
    queue, queued = deque([start]), {start}
    while queue:
        domain = queue.popleft()
        queued.discard(domain)
        so_far = distances[domain]
        for neighbour, length in lengths.get(domain, ()):
            reached = so_far + length
            known = distances.get(neighbour)
            if known is None or reached < known:
                distances[neighbour] = reached
                if neighbour not in queued:
                    queue.append(neighbour)
                    queued.add(neighbour)
    return distances


def _negative_cycle(tightest: Mapping[Pair, Message]) -> list[Pair] | None:
    """The pairs round a cycle of negative length, from its least domain on; None without one.

    Bellman and Ford from everywhere at once: who still gains after n rounds, one has led astray.
    """
    edges = [(sender, receiver, m.limit_ns) for (sender, receiver), m in tightest.items()]
    distances = dict.fromkeys((domain for pair in tightest for domain in pair), 0)
    came_from: dict[str, str] = {}
    gained: str | None = None
    for _ in range(len(distances) + 1):
        gained = None
        for sender, receiver, limit in edges:
            reached = distances[sender] + limit
            if reached < distances[receiver]:
                distances[receiver] = reached
                came_from[receiver] = sender
                gained = receiver
        if gained is None:
            return None
    return None if gained is None else _cycle_behind(came_from, gained, len(distances))


def _cycle_behind(came_from: Mapping[str, str], domain: str, steps: int) -> list[Pair]:
    for _ in range(steps):  # so far back, one is on the cycle
        domain = came_from[domain]
    members = [domain]
    while came_from[members[-1]] != domain:
        members.append(came_from[members[-1]])
    members.reverse()
    least = members.index(min(members))
    members = members[least:] + members[:least]
    return list(zip(members, members[1:] + members[:1], strict=True))

"""What messages between clocks prove: the tightest interval of each offset, or a contradiction.

Each message says that θ of an ordered pair of domains is at most its limit. That is a system of
difference constraints: limits are lengths, the tightest bound of a pair is its shortest path, and
a cycle of negative length is a contradiction that no offsets can satisfy (Cormen et al.,
Introduction to Algorithms, section 24.4).

    a ──(≤ 5)──> b ──(≤ -9)──> a        θ_ab is at most 5 and at least 9: impossible
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from llmlat_processor.model.clocks import Clocks, Interval, Message

Pair = tuple[str, str]
"""(sender, receiver)"""

MOST_CONTRADICTIONS: Final = 16
"""Of a trace that are told; what else contradicts itself is left out of the system in silence."""

MOST_STEPS: Final = 2_000_000
"""Messages that are looked at, again and again, for contradictions between three and more."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The consistent messages of a system, and the contradictions among the others.

    Attributes:
        limits_ns: per ordered pair the least limit of its consistent messages.
        potentials_ns: per domain a number, such that no limit is less than that of its receiver
            minus that of its sender: offsets that satisfy all messages.
        contradictions: of each, the messages that go round in a circle, the limits of which sum
            to less than 0.
        is_whole: False where there was too much to look at: then nothing is consistent.
    """

    limits_ns: Mapping[Pair, int]
    potentials_ns: Mapping[str, int]
    contradictions: Sequence[tuple[Message, ...]]
    is_whole: bool = True


def solve(messages: Iterable[Message], most_steps: int = MOST_STEPS) -> Solution:
    """Find the contradictions among messages, and what is left without them.

    Args:
        messages: in any order.
        most_steps: how often messages are looked at before it is given up.

    Of a contradiction it isn't known which message is wrong, so all that the domains on its circle
    told each other, next to next, is left out.
    """
    tightest = tightest_of(messages)
    contradictions: list[tuple[Message, ...]] = []
    steps = 0
    while True:
        search = _Search(tightest)
        circles = search.run(most_steps - steps)
        steps += search.steps
        if circles is None:
            return Solution({}, {}, contradictions, is_whole=False)
        if not circles:
            limits = {pair: message.limit_ns for pair, message in tightest.items()}
            return Solution(limits, search.potentials, contradictions)
        for circle in circles:
            if len(contradictions) < MOST_CONTRADICTIONS:
                contradictions.append(tuple(tightest[pair] for pair in circle))
            for sender, receiver in circle:
                tightest.pop((sender, receiver), None)
                tightest.pop((receiver, sender), None)


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
    return Offsets(clocks.limits_ns, clocks.potentials_ns).between(one, other)


class Offsets:
    """Answers for any two domains of one consistent system; each domain is walked from once.

    Shortest paths by Dijkstra, on lengths that potentials have made positive (Johnson 1977).

    Attributes:
        steps: messages that were looked at so far.
    """

    def __init__(self, limits_ns: Mapping[Pair, int], potentials_ns: Mapping[str, int]) -> None:
        self._potentials = potentials_ns
        self._lengths: dict[str, list[tuple[str, int]]] = {}
        for (sender, receiver), limit in limits_ns.items():
            length = limit + potentials_ns[sender] - potentials_ns[receiver]
            self._lengths.setdefault(sender, []).append((receiver, length))
        self._walked: dict[str, Mapping[str, int]] = {}
        self.steps = 0

    def between(self, one: str, other: str) -> Interval:
        """θ = clock of `other` - clock of `one`."""
        if one == other:
            return Interval(0, 0)
        back = self.reach(other).get(one)
        return Interval(None if back is None else -back, self.reach(one).get(other))

    def reach(self, start: str) -> Mapping[str, int]:
        """Per domain that messages lead to, the most that its clock can be ahead."""
        known = self._walked.get(start)
        if known is None:
            known = self._walked[start] = self._walk(start)
        return known

    def _walk(self, start: str) -> Mapping[str, int]:
        own = self._potentials.get(start, 0)
        settled: dict[str, int] = {}
        queue = [(0, start)]
        while queue:
            reached, domain = heappop(queue)
            if domain in settled:
                continue
            settled[domain] = reached
            lengths = self._lengths.get(domain, ())
            self.steps += len(lengths)
            for neighbour, length in lengths:
                if neighbour not in settled:
                    heappush(queue, (reached + length, neighbour))
        return {
            domain: reached - own + self._potentials.get(domain, 0)
            for domain, reached in settled.items()
        }


def intervals_from(solution: Solution, reference: str) -> Mapping[str, Interval]:
    """Of each domain that a message leads to or from, its offset from the reference's clock."""
    reverse = {
        (receiver, sender): limit for (sender, receiver), limit in solution.limits_ns.items()
    }
    mirrored = {domain: -potential for domain, potential in solution.potentials_ns.items()}
    high = Offsets(solution.limits_ns, solution.potentials_ns).reach(reference)
    low = Offsets(reverse, mirrored).reach(reference)
    return {
        domain: Interval(-low[domain] if domain in low else None, high.get(domain))
        for domain in high.keys() | low.keys()
    }


def widened(interval: Interval, by_ns: int) -> Interval:
    """The interval with so much more on either side."""
    low, high = interval
    return Interval(None if low is None else low - by_ns, None if high is None else high + by_ns)


def shifted(interval: Interval, by_ns: int) -> Interval:
    """The interval moved; what is unknown stays so."""
    low, high = interval
    return Interval(None if low is None else low + by_ns, None if high is None else high + by_ns)


class _Search:
    """Bellman and Ford from everywhere at once, until nobody gains or somebody goes in circles."""

    def __init__(self, tightest: Mapping[Pair, Message]) -> None:
        self._edges = [(sender, receiver, m.limit_ns) for (sender, receiver), m in tightest.items()]
        self.potentials = dict.fromkeys((domain for pair in tightest for domain in pair), 0)
        self._came_from: dict[str, str] = {}
        self.steps = 0

    def run(self, most_steps: int) -> list[list[Pair]] | None:
        """Circles of negative length that share no domain; none if there is none; None if too long.

        Whoever is its own way back to itself has been led round a circle of negative length.
        """
        self.steps = len(self._edges)
        while self.steps <= most_steps:
            if not self._gain():
                return []
            self.steps += len(self._edges)
            circles = list(self._circles())
            if circles:
                return circles
        return None

    def _gain(self) -> bool:
        potentials, came_from = self.potentials, self._came_from
        gained = False
        for sender, receiver, limit in self._edges:
            reached = potentials[sender] + limit
            if reached < potentials[receiver]:
                potentials[receiver] = reached
                came_from[receiver] = sender
                gained = True
        return gained

    def _circles(self) -> Iterator[list[Pair]]:
        seen: set[str] = set()
        for start in self._came_from:
            trail: dict[str, None] = {}
            domain: str | None = start
            while domain is not None and domain not in seen and domain not in trail:
                trail[domain] = None
                domain = self._came_from.get(domain)
            if domain is not None and domain in trail:
                yield _from_the_least(list(trail)[list(trail).index(domain) :])
            seen.update(trail)


def _from_the_least(backwards: list[str]) -> list[Pair]:
    """The pairs round a circle of domains that was walked against its messages."""
    members = backwards[::-1]
    least = members.index(min(members))
    members = members[least:] + members[:least]
    return list(zip(members, members[1:] + members[:1], strict=True))

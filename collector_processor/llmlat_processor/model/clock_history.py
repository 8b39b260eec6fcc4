"""What is known of two clocks over many traces: intervals over time, rates, and steps.

θ of a pair is the clock of its second domain minus that of its first; the domains of a pair are
sorted by name. Instants are readings of the first domain's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from llmlat_processor.model.clocks import Interval
from llmlat_processor.model.counts import FindingCount


class Witness(NamedTuple):
    """The message that proves a bound: its trace, and the spans that have its two edges."""

    trace_id: bytes
    left: bytes
    arrived: bytes


class Drift(NamedTuple):
    """How fast θ can grow, in billionths (1,000 are 1 ppm), both ends included."""

    low_ppb: int
    high_ppb: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """What the messages of one window of time prove.

    Attributes:
        first: domain.
        second: domain; the greater name.
        epoch: counts the steps of this pair of clocks before it.
        start_ns: where the window begins.
        end_ns: where it ends.
        at_ns: the instant of the window at which `interval` is narrowest.
        interval: what θ can be then, however the rates of both clocks changed within the limit.
        steady: the same if the rate was constant all through the window; None where that cannot
            be.
        drift: the rates that fit; None where none does.
        messages: how many messages were learned from.
        traces: of how many traces.
    """

    first: str
    second: str
    epoch: int
    start_ns: int
    end_ns: int
    at_ns: int
    interval: Interval
    steady: Interval | None
    drift: Drift | None
    messages: int
    traces: int


@dataclass(frozen=True, slots=True)
class Step:
    """θ jumped: what was proved before and what was proved after it exclude each other.

    Attributes:
        first: domain.
        second: domain; the greater name.
        amount_ns: by how much at least; negative where θ fell.
        after_ns: the latest instant that contradicts what came later.
        by_ns: the earliest instant that contradicts what was before; earlier than `after_ns`
            where it was the first domain's clock that was set back.
        before: who proves what was before, the tightest first.
        since: who proves what is since then, the tightest first; of two traces at least.
    """

    first: str
    second: str
    amount_ns: int
    after_ns: int
    by_ns: int
    before: tuple[Witness, ...]
    since: tuple[Witness, ...]


@dataclass(frozen=True, slots=True)
class KnownClock:
    """One domain as people know it.

    Attributes:
        domain: its whole name.
        services: that were seen on it, sorted; the first few.
        host: where it is; empty where nobody says.
        is_monotonic: whether its readings are of a monotonic clock, and no time of day; None
            where all that is known of it was learned in an earlier run.
    """

    domain: str
    services: tuple[str, ...]
    host: str
    is_monotonic: bool | None


@dataclass(frozen=True, slots=True)
class WallShift:
    """What to add to readings of both clocks to have their wall clocks, as one trace tells it.

    Attributes:
        first_ns: for the first domain, 0 where its readings are of a wall clock.
        second_ns: for the second.
    """

    first_ns: int
    second_ns: int

    @property
    def shift_ns(self) -> int:
        """What to add to θ of both clocks to have that of their wall clocks."""
        return self.second_ns - self.first_ns

    def of(self, interval: Interval) -> Interval:
        """An interval of θ as one of their wall clocks."""
        low_ns, high_ns = interval
        return Interval(
            None if low_ns is None else low_ns + self.shift_ns,
            None if high_ns is None else high_ns + self.shift_ns,
        )


@dataclass(frozen=True, slots=True)
class PairOverTime:
    """Two clocks over all that was read.

    Attributes:
        first: whose readings are the instants.
        second: whose clock is compared with it.
        stretches: in the order of time, epoch by epoch.
        shifts: per stretch, what makes wall clocks of both; None where that is not known.
        steps: in the order in which they were found.
    """

    first: KnownClock
    second: KnownClock
    stretches: Sequence[Stretch]
    shifts: Sequence[WallShift | None]
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class ClocksOverTime:
    """What a run has learned.

    Attributes:
        window_ns: length of a stretch.
        drift_ppm: how fast two clocks may part, in millionths.
        traces: how many were read.
        pairs: by the names of their domains.
        findings: of all the traces.
        messages: how many, by what became of them.
        left_out: clocks of which nothing was computed, since one trace had too many.
    """

    window_ns: int
    drift_ppm: int
    traces: int
    pairs: Sequence[PairOverTime]
    findings: Sequence[FindingCount]
    messages: Mapping[str, int]
    left_out: int

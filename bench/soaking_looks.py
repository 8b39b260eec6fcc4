"""What a soaked process is at, second by second, and whether it grows.

|── first quarter ──|── second ──|── third ──|── last ──|
  warm-up: caches,        └── their medians are ──┘
  pools and what is           what is compared
  remembered fill up
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median
from typing import Final, NamedTuple

MIB: Final = 1 << 20
QUARTERS: Final = 4
FEWEST: Final = 2 * QUARTERS

ALLOWED_SHARE: Final = 1.05
"""How much larger the last quarter's memory may be, beside a few MiB."""

_SLOPE_S: Final = 600


class Look(NamedTuple):
    """What a process is at.

    Attributes:
        at_s: when, by the monotonic clock.
        resident_bytes: its memory.
        cpu_s: CPU that it has taken so far.
        journal_bytes: the files of its journal.
        held_traces: traces that are not complete.
        held_bytes: what it holds of them, or nobody has looked at.
        kept_batches: what the journal keeps.
        received: spans that it has accepted so far.
        under_way: spans that it has accepted, and not handed over or accounted for otherwise.
        balances: whether its books do.
    """

    at_s: float
    resident_bytes: int
    cpu_s: float
    journal_bytes: int
    held_traces: int
    held_bytes: int
    kept_batches: int
    received: int
    under_way: int
    balances: bool

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left of what has come."""
        return not self.left_over

    @property
    def left_over(self) -> int:
        """What is left of it: spans, traces, bytes and batches; only 0 says anything."""
        return self.under_way + self.held_traces + self.held_bytes + self.kept_batches


@dataclass(frozen=True, slots=True)
class Course:
    """What it was at while it was under load; at least `FEWEST` looks."""

    looks: Sequence[Look]

    def quarter(self, number: int) -> Sequence[Look]:
        """The looks of a quarter of the time, from 0."""
        count = len(self.looks)
        return self.looks[count * number // QUARTERS : count * (number + 1) // QUARTERS]

    @property
    def warm(self) -> Sequence[Look]:
        """All but the first quarter."""
        return self.looks[len(self.looks) // QUARTERS :]

    @property
    def cpu_share(self) -> float:
        """CPU per second, once warm: 1 is one core."""
        return share(self.warm)

    @property
    def slope_mib(self) -> float:
        """By how much memory grows in ten minutes, once warm: a line of least squares."""
        times = [look.at_s for look in self.warm]
        line = linear_regression(times, [look.resident_bytes for look in self.warm])
        return line.slope * _SLOPE_S / MIB

    @property
    def growth_mib(self) -> float:
        """By how much the last quarter's memory exceeds 1.05 times that of the second."""
        second, last = resident_mib(self.quarter(1)), resident_mib(self.quarter(QUARTERS - 1))
        return last - ALLOWED_SHARE * second


def share(looks: Sequence[Look]) -> float:
    """CPU per second between the first of some looks and the last of them."""
    first, last = looks[0], looks[-1]
    return (last.cpu_s - first.cpu_s) / (last.at_s - first.at_s)


def resident_mib(looks: Sequence[Look]) -> float:
    """The median."""
    return median(look.resident_bytes for look in looks) / MIB

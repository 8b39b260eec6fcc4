"""What a constant rate would be: θ(t) = α + βt below all upper bounds and above all lower ones.

      θ │ ╲_        _●      the lower hull of the upper bounds
        │   ●──____●
        │  ---------------  each line between both hulls fits; the steepest and the flattest of
        │   ____●__         them are the ends of the drift (Moon, Skelly & Towsley 1999)
        │ _●       ╲_●      the upper hull of the lower bounds
        └──────────────→ t

All arithmetic is in fractions: hulls of nanoseconds since 1970 leave a float no digit to spare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

from llmlat_processor.model import Interval
from llmlat_processor.model.clock_history import Drift

_BILLION: Final = 10**9
_MILLION: Final = 10**6

Points = Sequence[tuple[int, int]]
"""Instant and limit, sorted by time."""


@dataclass(frozen=True, slots=True)
class Rates:
    """All lines that fit.

    Attributes:
        above: the hull of the upper bounds of θ.
        below: the hull of the upper bounds of -θ.
        low: the least rate, in ns per ns.
        high: the greatest.
    """

    above: Points
    below: Points
    low: Fraction
    high: Fraction

    @property
    def drift(self) -> Drift:
        """The rates, rounded outwards."""
        return Drift(math.floor(self.low * _BILLION), math.ceil(self.high * _BILLION))

    def interval(self, at_ns: int) -> Interval:
        """Where the lines that fit pass at an instant, rounded outwards."""
        below = _most(self.below, at_ns, -self.high, -self.low)
        return Interval(
            None if below is None else -below, _most(self.above, at_ns, self.low, self.high)
        )


def rates(above: Points, below: Points, drift_ppm: int) -> Rates | None:
    """The lines that fit.

    Args:
        above: upper bounds of θ.
        below: upper bounds of -θ.
        drift_ppm: no rate is greater, whatever its sign.

    Returns:
        None where no line fits.
    """
    above, below = hull(above), hull(below)
    low, high = Fraction(-drift_ppm, _MILLION), Fraction(drift_ppm, _MILLION)
    for above_ns, limit_ns in above:
        for below_ns, other_ns in below:
            # α + β·above_ns ≤ limit_ns and -α - β·below_ns ≤ other_ns; their sum has no α.
            apart_ns, room_ns = above_ns - below_ns, limit_ns + other_ns
            if apart_ns > 0:
                high = min(high, Fraction(room_ns, apart_ns))
            elif apart_ns < 0:
                low = max(low, Fraction(room_ns, apart_ns))
            elif room_ns < 0:
                return None
    return Rates(above, below, low, high) if low <= high else None


def hull(points: Points) -> list[tuple[int, int]]:
    """The corners of the lower convex hull, in the order of time (Andrew 1979)."""
    corners: list[tuple[int, int]] = []
    for point in points:
        while len(corners) > 1 and not _turns_up(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return corners


def _turns_up(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    return (b[0] - a[0]) * (c[1] - b[1]) > (b[1] - a[1]) * (c[0] - b[0])


def _most(corners: Points, at_ns: int, low: Fraction, high: Fraction) -> int | None:
    """The highest that a line below the corners can pass at an instant, with a rate in a range.

    For one rate that is the least over the corners: concave in the rate, and bent only at the
    slopes of the hull's edges, so that its greatest value is at one of these or at an end.
    """
    if not corners:
        return None
    edges = pairwise(corners)
    slopes = (Fraction(b[1] - a[1], b[0] - a[0]) for a, b in edges)
    candidates = [low, high, *(slope for slope in slopes if low < slope < high)]
    return math.ceil(
        max(
            min(limit_ns + rate * (at_ns - then_ns) for then_ns, limit_ns in corners)
            for rate in candidates
        )
    )

"""Wall clocks that were stepped: seen from the monotonic clock of the same process.

    monotonic  ├────────────────────────────┤
    wall       ├──────────┤     ├───────────┤      stepped by more than a clock can be read apart

No bound is harmed, since what tells its monotonic clock is placed by it; but everybody who looks
at wall stamps will wonder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import itemgetter
from typing import Final

from llmlat_processor.model import Finding, Span
from llmlat_processor.stages.align_clocks.placement import Anchor
from llmlat_semconv.values import FindingKind

READ_APART_NS: Final = 1_000_000
"""Two readings of the same two clocks may differ by this much without a step."""

SLEWED_PPM: Final = 500
"""NTP turns a clock forward or back this fast at most (adjtimex(2), RFC 5905)."""


def wall_steps(read: Iterable[tuple[Span, Anchor]]) -> Iterator[Finding]:
    """One finding for each two spans of a process between which its wall clock was stepped."""
    by_process: dict[tuple[str, str], list[tuple[Span, Anchor]]] = {}
    for span, anchor in read:
        by_process.setdefault((span.resource.process, anchor.domain), []).append((span, anchor))
    for readings in by_process.values():
        apart_ns = [anchor.wall_minus_monotonic_ns for _, anchor in readings]
        if max(apart_ns) - min(apart_ns) <= READ_APART_NS:
            continue  # so is every two of them
        for (at_ns, before, one), (then_ns, after, other) in pairwise(_in_order(readings)):
            step_ns = other.wall_minus_monotonic_ns - one.wall_minus_monotonic_ns
            granted_ns = READ_APART_NS + one.uncertainty_ns + other.uncertainty_ns
            granted_ns += (then_ns - at_ns) * SLEWED_PPM // 1_000_000
            if abs(step_ns) > granted_ns:
                witnesses = (after, before)
                yield Finding(FindingKind.CLOCK_STEP, after, step_ns, witnesses, granted_ns)


def _in_order(readings: Iterable[tuple[Span, Anchor]]) -> list[tuple[int, bytes, Anchor]]:
    """By the monotonic clock: its reading, the span's id, and the anchor that it makes."""
    told = [
        (span.start_ns - anchor.wall_minus_monotonic_ns, span.span_id, anchor)
        for span, anchor in readings
    ]
    return sorted(told, key=itemgetter(0, 1))

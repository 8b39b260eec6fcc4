"""Wall clocks that were stepped: seen from the monotonic clock of the same process.

    monotonic  ├────────────────────────────┤
    wall       ├──────────┤     ├───────────┤      stepped by more than a clock can be read apart

No bound is harmed, since what tells its monotonic clock is placed by it; but everybody who looks
at wall stamps will wonder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
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
    by_process: dict[tuple[str, str], list[tuple[int, bytes, Anchor]]] = {}
    for span, anchor in read:
        monotonic_ns = span.start_ns - anchor.wall_minus_monotonic_ns
        key = (span.resource.process, anchor.domain)
        by_process.setdefault(key, []).append((monotonic_ns, span.span_id, anchor))
    for readings in by_process.values():
        readings.sort(key=lambda reading: reading[:2])
        for (at_ns, before, one), (then_ns, after, other) in pairwise(readings):
            step_ns = other.wall_minus_monotonic_ns - one.wall_minus_monotonic_ns
            granted_ns = READ_APART_NS + one.uncertainty_ns + other.uncertainty_ns
            granted_ns += (then_ns - at_ns) * SLEWED_PPM // 1_000_000
            if abs(step_ns) > granted_ns:
                witnesses = (after, before)
                yield Finding(FindingKind.CLOCK_STEP, after, step_ns, witnesses, granted_ns)

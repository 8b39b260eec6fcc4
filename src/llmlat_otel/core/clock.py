"""The clock: monotonic readings, anchored to wall time with a known uncertainty."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

from llmlat_otel.core.recording import Anchor

SANDWICHES: Final = 5
"""Pairs read for one anchor; the narrowest is kept."""

STEP_NS: Final = 100_000
"""A wall clock that is further off than this, beyond what a reading can blur, has stepped.

Slewing does not show here: NTP slews CLOCK_MONOTONIC along with the wall clock.
"""


class Clock:
    """Monotonic time of one clock domain, convertible to wall time.

    Args:
        read_monotonic: Nanoseconds of the domain's monotonic clock.
        read_wall: Nanoseconds since the Unix epoch.
        domain_id: Opaque id of the domain; readings of one domain are comparable.
    """

    __slots__ = ("_anchor", "_read_wall", "domain_id", "now_ns")

    def __init__(
        self,
        read_monotonic: Callable[[], int] = time.monotonic_ns,
        read_wall: Callable[[], int] = time.time_ns,
        domain_id: str | None = None,
    ) -> None:
        self.now_ns = read_monotonic
        self._read_wall = read_wall
        self.domain_id = domain_id or host_domain_id() or uuid.uuid4().hex
        self._anchor: Anchor | None = None

    def anchor(self) -> Anchor:
        """The anchor in force now; a new one if the wall clock has stepped.

        A recording keeps the anchor that it began with, so a step never bends its durations.
        """
        known = self._anchor
        if known is None or self._may_have_stepped(known):
            pairs = [self._sandwich() for _ in range(SANDWICHES)]
            best = min(pairs, key=lambda each: each.uncertainty_ns)
            if known is None or _has_stepped(known, best):
                self._anchor = known = best
        return known

    def _may_have_stepped(self, anchor: Anchor) -> bool:
        """A first look, for each recording: two readings, and whatever came between them."""
        return abs(anchor.wall_at(self.now_ns()) - self._read_wall()) > STEP_NS

    def _sandwich(self) -> Anchor:
        """Read monotonic, wall, monotonic: the wall reading lies within the outer two."""
        before = self.now_ns()
        wall = self._read_wall()
        after = self.now_ns()
        return Anchor(
            monotonic_ns=(before + after) // 2,
            wall_ns=wall,
            uncertainty_ns=(after - before + 1) // 2,
        )


def _has_stepped(anchor: Anchor, pair: Anchor) -> bool:
    error_ns = abs(pair.wall_ns - anchor.wall_at(pair.monotonic_ns))
    return error_ns > STEP_NS + pair.uncertainty_ns + anchor.uncertainty_ns


def host_domain_id() -> str | None:
    """Id of the monotonic clock that the processes of this host share; None if unknown.

    On Linux all processes of one boot and one time namespace read the same CLOCK_MONOTONIC
    (time_namespaces(7)), containers included.
    """
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        time_namespace = Path("/proc/self/ns/time").readlink()
    except OSError:
        return None
    clock = time.get_clock_info("monotonic").implementation
    return hashlib.sha256(f"{boot_id} {time_namespace} {clock}".encode()).hexdigest()[:32]

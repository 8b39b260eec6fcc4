"""Drift: what `llmlat clocks` proves of two clocks over many traces, against what is true."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.truth.truth import HostClocks

PPB: Final = 1_000_000_000

REFERENCE: Final = "app"
DRIFTING: Final = "engine"


@dataclass(frozen=True, slots=True)
class DriftCheck:
    """How fast one clock gains on another, in billionths: the truth, and the interval for it."""

    true_ppb: int
    low_ppb: int
    high_ppb: int
    traces: int

    @property
    def is_inside(self) -> bool:
        """Whether the truth is in the interval."""
        return self.low_ppb <= self.true_ppb <= self.high_ppb

    @property
    def is_seen(self) -> bool:
        """Whether the interval excludes that there is no drift."""
        return self.low_ppb > 0 or self.high_ppb < 0


def rate_ppb(clocks: HostClocks, first_ns: int, last_ns: int) -> int:
    """By how much a host's wall clock gained between two instants of the machine's clock."""
    elapsed_ns = last_ns - first_ns
    gained_ns = clocks.wall_ns(last_ns) - clocks.wall_ns(first_ns) - elapsed_ns
    return round(gained_ns * PPB / elapsed_ns)


def drift_checks(true_ppb: int, document: Mapping[str, Any]) -> list[DriftCheck]:
    """What is said of the drifting clock, stretch by stretch.

    Args:
        true_ppb: what its clock really gained on the app's.
        document: what `llmlat clocks --json` says.
    """
    return [
        DriftCheck(true_ppb, low_ppb, high_ppb, traces)
        for low_ppb, high_ppb, traces in _stretches(document)
    ]


def _stretches(document: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    for pair in document["pairs"]:
        services = [pair[side]["services"] for side in ("first", "second")]
        if services not in ([[REFERENCE], [DRIFTING]], [[DRIFTING], [REFERENCE]]):
            continue
        for stretch in pair["stretches"]:
            drift = stretch["drift_ppb"]
            if drift is None:
                continue
            low_ppb, high_ppb = drift["low"], drift["high"]
            if services[0] == [DRIFTING]:
                low_ppb, high_ppb = -high_ppb, -low_ppb
            yield low_ppb, high_ppb, stretch["traces"]

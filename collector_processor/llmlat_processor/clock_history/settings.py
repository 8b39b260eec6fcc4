"""What the history of clocks takes for granted, and how much it holds at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """Assumptions and bounds.

    Attributes:
        window_ns: length of a window: a rate may be constant for so long. The newest window of
            each pair and the one before it are kept.
        drift_ppm: how fast two clocks may part, in millionths.
        bounds: most bounds of one window, on each side; 32 for both windows.
        pairs: most pairs of domains; above it those go that nobody told of for the longest.
        held: most traces of a pair that are held because they contradict the rest.
        steps: most steps that are remembered; the first go first.
    """

    window_ns: int = 120_000_000_000
    drift_ppm: int = 200
    bounds: int = 16
    pairs: int = 10_000
    held: int = 4
    steps: int = 1_000


DEFAULTS: Final = HistorySettings()
